//! When the state here is not that of the log: at the start, after an outage, when somebody else was faster.
//!
//! There is one way back: load the state and go on from there. Nothing is undone.

use std::time::Duration;

use laneway_core::{CancelReason, Command, Name, Selector, TaskView};
use laneway_store::{ErrorKind, StoreError};
use tokio::time::Instant;

use crate::call::{Ask, Ending, Wants};
use crate::effects::Grant;
use crate::engine::Engine;
use crate::error::{Error, RunError};
use crate::outbox::Told;
use crate::stop::Stopped;
use crate::task::SLOT_KIND;

/// How long to wait before the store is tried again, at first and at most.
const OUTAGE_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The store cannot be reached: nothing is decided, what runs goes on.
pub(crate) struct Outage {
    pub(crate) retry_at: Instant,
    pause: Duration,
    error: StoreError,
}

impl Engine {
    /// Takes up what the store holds, for the first time. Whatever ran here then is dead.
    pub(crate) async fn recover(&mut self) -> Result<(), Error> {
        self.load().await?;
        let dead: Vec<TaskView> = self.scheduler.tasks().filter(runs_here).collect();
        let mut commands = Vec::new();
        if let Ok(kind) = Name::new(SLOT_KIND) {
            // First, so that none of them is granted: their callers are gone.
            let which = Selector { kind: Some(kind), ..Selector::default() };
            commands.push(Command::CancelWaiting { which, reason: CancelReason::Caller });
        }
        for view in dead {
            let Some(running) = view.running else { continue };
            if view.kind.as_str() == SLOT_KIND {
                // Cancelled and not lost, so that it leaves no dead letter that nobody could run.
                commands.push(Command::Cancel { task: view.id, reason: CancelReason::Caller });
            }
            commands.push(Command::Lapse { task: view.id, fence: running.fence });
        }
        let asks = commands.into_iter().map(|command| Ask::new(command, Wants::Nothing)).collect();
        self.decide_and_keep(asks).await;
        self.trouble().map_or(Ok(()), Err)
    }

    /// Why nothing can be decided now.
    pub(crate) fn trouble(&self) -> Option<Error> {
        let broken = self.broken.as_ref().or(self.outage.as_ref().map(|outage| &outage.error));
        broken.cloned().map(Error::from)
    }

    async fn load(&mut self) -> Result<(), StoreError> {
        let Some(log) = self.journal.log() else { return Ok(()) };
        let (head, mut scheduler) = log.restore(self.tools.ids.seed()).await?;
        scheduler.keep_departed();
        self.is_watched = true;
        (self.head, self.scheduler) = (head, scheduler);
        self.flow.pass(self.scheduler.now());
        if self.closing.is_some() {
            self.scheduler.stop_granting();
        }
        let letters = self.scheduler.dead_letters();
        self.letters = letters.filter_map(|dead| Some((dead.task, dead.spec.payload?))).collect();
        Ok(())
    }

    /// Takes up what the log holds in place of what was believed here, and makes good what was missed.
    pub(crate) async fn reload(&mut self) -> Result<(), StoreError> {
        self.load().await?;
        let now = self.flow.now();
        let running: Vec<TaskView> = self.scheduler.tasks().filter(runs_here).collect();
        for (task, fence) in self.runs.attempts() {
            let is_live = |view: &TaskView| view.running.as_ref().is_some_and(|run| run.fence == fence);
            if !running.iter().any(|view| view.id == task && is_live(view)) {
                self.runs.remove(task, Stopped::Revoked);
            }
        }
        for view in running {
            let Some(run) = &view.running else { continue };
            if self.runs.get(view.id, run.fence).is_none() {
                // The grant was kept, and the answer that said so was lost.
                let settings = view.lanes.first().map(|home| self.scheduler.settings_for(home));
                let lease = settings.map_or(run.lease_until.since(run.started), |settings| settings.lease);
                let (fence, timeout_at) = (run.fence, run.timeout_at);
                self.start(Grant { task: view.id, fence, attempt: view.attempts, lease, timeout_at }, now);
            }
            if run.stopping {
                let is_late = run.timeout_at.is_some_and(|at| at <= now);
                let reason =
                    if is_late { Stopped::Timeout } else { Stopped::Cancelled(CancelReason::Caller) };
                self.runs.tell(view.id, run.fence, reason);
            }
        }
        self.tell_missed_ends().await
    }

    /// Tells those who wait for tasks that ended without our hearing of it.
    async fn tell_missed_ends(&mut self) -> Result<(), StoreError> {
        let is_over = |task: &&laneway_core::TaskId| self.scheduler.task(**task).is_none();
        let over: Vec<_> = self.waiters.keys().filter(is_over).copied().collect();
        for task in over {
            match self.journal.finished(task).await? {
                Some((finished, result)) => {
                    let (end, attempts) = (finished.end, finished.attempts);
                    self.tell_waiters(task, || Ending { end: end.clone(), attempts, result: result.clone() });
                }
                None => drop(self.waiters.remove(&task)),
            }
        }
        let scheduler = &self.scheduler;
        for (_, answer) in self.slots.extract_if(|task, _| scheduler.task(*task).is_none()) {
            self.outbox.push(Told::Slot(answer, Err(RunError::Ended(laneway_core::End::Lost))));
        }
        Ok(())
    }

    /// The store cannot be used: tells everybody who asked, and keeps what the runs reported.
    pub(crate) fn give_up(&mut self, error: StoreError, asks: Vec<Ask>) {
        for ask in asks {
            match (&ask.wants, &ask.command) {
                // The next one comes anyway.
                (Wants::Nothing, Command::Heartbeat { .. } | Command::Tick) => {}
                (Wants::Nothing, _) => self.kept.push(ask),
                _ => ask.wants.refuse(error.clone().into()),
            }
        }
        match error.kind() {
            ErrorKind::Corrupt => self.broken = Some(error),
            _ => {
                let pause = OUTAGE_PAUSES.0;
                self.outage = Some(Outage { retry_at: Instant::now() + pause, pause, error });
            }
        }
    }

    /// Whether something can be decided; tries the store again if it is time.
    pub(crate) async fn outage_is_over(&mut self) -> bool {
        let Some(outage) = &self.outage else { return self.broken.is_none() };
        if outage.retry_at > Instant::now() {
            return false;
        }
        let pause = (outage.pause * 2).min(OUTAGE_PAUSES.1);
        match self.reload().await {
            Ok(()) => {
                self.outage = None;
                self.make_up().await;
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                (self.broken, self.outage) = (Some(error), None);
            }
            Err(error) => self.outage = Some(Outage { retry_at: Instant::now() + pause, pause, error }),
        }
        self.outage.is_none() && self.broken.is_none()
    }
}

/// The most steps in which the time of an outage is lived through again.
const MAKE_UP_MAX: u32 = 1000;

impl Engine {
    /// Lives through the time of an outage: what runs here was alive all along, but its signs of life could not be
    /// kept. Were the time to jump, every lease would have lapsed. What the runs have reported comes first.
    async fn make_up(&mut self) {
        let (now, mut at) = (self.flow.now(), self.scheduler.now());
        let mut asks = std::mem::take(&mut self.kept);
        for _ in 0..MAKE_UP_MAX {
            let (signs, least) = self.runs.signs_of_life();
            if at >= now || signs.is_empty() && asks.is_empty() {
                break;
            }
            asks.extend(signs.into_iter().map(|command| Ask::new(command, Wants::Nothing)));
            self.flow.hold(Some(at));
            self.decide_and_keep(std::mem::take(&mut asks)).await;
            self.flow.hold(None);
            if self.outage.is_some() || self.broken.is_some() {
                return;
            }
            at = (at + least).min(now);
        }
        self.kept.extend(asks);
    }
}

/// Whether an attempt of the task runs, and not at a worker.
fn runs_here(view: &TaskView) -> bool {
    view.running.as_ref().is_some_and(|running| running.worker.is_none())
}
