//! When the state here is not that of the log: at the start, after an outage, when somebody else was faster.
//!
//! There is one way back: load the state and go on from there. Nothing is undone.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use laneway_core::{
    Backoff, Block, CancelReason, Command, End, Handler, LaneSettings, Name, Pattern, Selector, TaskId,
    TaskView,
};
use laneway_store::{ErrorKind, StoreError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::driver::engine_loop::Engine;
use crate::driver::mailbox::{Ask, Ending, Wants};
use crate::driver::outbox::Told;
use crate::error::{Error, RunError};
use crate::events::watch::Update;
use crate::handle::task::{SLOT_KIND, is_slot};
use crate::options::UnknownKinds;
use crate::runs::stop::Stopped;
use crate::runs::table::Begun;

/// The waits before the store is tried again.
const OUTAGE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// The store cannot be reached: nothing is decided, what runs goes on.
pub(crate) struct Outage {
    pub(crate) retry_at: Instant,
    backoff: Backoff,
    error: StoreError,
    /// How many batches of others had been read when it began.
    heard: u64,
}

impl Outage {
    fn new(mut backoff: Backoff, error: StoreError, heard: u64) -> Outage {
        Outage { retry_at: Instant::now() + backoff.next_wait(), backoff, error, heard }
    }
}

/// Blocks of settings, by name or pattern.
pub(crate) type Found = Vec<(Pattern, LaneSettings)>;

impl Engine {
    /// Takes up what the store holds, for the first time, under these settings if any are given. Whatever ran here then
    /// is dead.
    pub(crate) async fn recover(&mut self, settings: Option<Vec<Block>>) -> Result<Option<Found>, Error> {
        let dead = self.load().await?;
        self.check_kinds()?;
        let mut commands = Vec::new();
        if let (None, Ok(kind)) = (&self.runner, Name::new(SLOT_KIND)) {
            // First, so that none of them is granted: their callers are gone. In a shared store they may be another's.
            let which = Selector { kind: Some(kind), ..Selector::default() };
            commands.push(Command::CancelWaiting { which, reason: CancelReason::Caller });
        }
        for view in dead {
            let Some(running) = view.running else { continue };
            if is_slot(&view.kind) {
                // Cancelled and not lost, so that it leaves no dead letter that nobody could run.
                commands.push(Command::Cancel { task: view.id, reason: CancelReason::Caller });
            }
            commands.push(Command::Lapse { task: view.id, fence: running.fence });
        }
        self.settle(settings, commands).await
    }

    /// Changes what is held to these settings, if any are given, and does what else is to be done at the start. Returns
    /// what held before, if there was anything and it was changed.
    pub(crate) async fn settle(
        &mut self,
        settings: Option<Vec<Block>>,
        commands: Vec<Command>,
    ) -> Result<Option<Found>, Error> {
        let held = self.scheduler.blocks().map(|(lanes, settings)| (lanes.clone(), settings.clone()));
        let held: Found = held.collect();
        let changes = settings.map(|wanted| changes(&held, &wanted));
        let is_changed = !held.is_empty() && changes.as_ref().is_some_and(|changes| !changes.is_empty());
        // First of all, so that nothing is granted under others.
        let (answer, mut settled) = oneshot::channel();
        let configure = Command::Configure(changes.unwrap_or_default());
        let mut asks = vec![Ask::new(configure, Wants::Reply(answer))];
        asks.extend(commands.into_iter().map(|command| Ask::new(command, Wants::Nothing)));
        self.decide_and_keep(&mut asks).await;
        std::mem::take(&mut self.outbox).send();
        self.trouble().map_or(Ok(()), Err)?;
        settled.try_recv().map_err(|_| Error::Closed)??;
        Ok(is_changed.then_some(held))
    }

    /// Why nothing can be decided now.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.store_trouble().map(Error::from)
    }

    /// Why the store cannot be used now.
    pub(crate) fn store_trouble(&self) -> Option<StoreError> {
        self.broken.as_ref().or(self.outage.as_ref().map(|outage| &outage.error)).cloned()
    }

    /// Whether something here runs every task that no worker does.
    pub(crate) fn check_kinds(&self) -> Result<(), Error> {
        let is_unknown = |kind: &Name| !is_slot(kind) && self.tools.handlers.get(kind).is_none();
        // Looking at each task takes a while, and is seldom needed.
        if !self.scheduler.kinds().any(is_unknown) {
            return Ok(());
        }
        let here = self.scheduler.tasks().filter(|view| view.handler != Handler::External);
        let kinds: BTreeSet<Name> = here.map(|view| view.kind).filter(is_unknown).collect();
        match kinds.is_empty() || self.unknown_kinds == UnknownKinds::Fail {
            true => Ok(()),
            false => Err(Error::NoHandlers { kinds: kinds.into_iter().collect() }),
        }
    }

    /// Takes up the state of the log and returns which attempts by it are this engine's.
    pub(crate) async fn load(&mut self) -> Result<Vec<TaskView>, StoreError> {
        let Some(log) = self.journal.log() else { return Ok(Vec::new()) };
        let (head, mut scheduler) = log.restore(self.tools.ids.seed()).await?;
        scheduler.keep_departed();
        scheduler.run_as(self.runner.clone());
        self.is_watched = true;
        (self.head, self.scheduler) = (head, scheduler);
        match self.replica {
            Some(_) => self.flow.reach(self.scheduler.now()),
            None => self.flow.pass(self.scheduler.now()),
        }
        if self.closing.is_some() {
            self.scheduler.stop_granting();
        }
        self.recall_letters();
        self.take_stock().await
    }

    /// The payloads of dead letters, as the state has them.
    pub(crate) fn recall_letters(&mut self) {
        let letters = self.scheduler.dead_letters();
        self.letters = letters.filter_map(|dead| Some((dead.task, dead.spec.payload?))).collect();
    }

    /// Goes over all tasks once: what has been tried, and what runs.
    async fn take_stock(&mut self) -> Result<Vec<TaskView>, StoreError> {
        self.runs.forget_elsewhere();
        let (mut tried, mut running) = (Vec::new(), Vec::new());
        for view in self.scheduler.tasks().filter(|view| view.attempts > 0) {
            if view.attempts > 1 || view.running.is_none() {
                tried.push(view.id);
            }
            if let Some(run) = &view.running {
                let (fence, started) = (run.fence, run.started);
                self.runs.note(view.id, Begun { fence, started, worker: run.worker.clone() });
                let is_own = view.handler != Handler::External && run.worker == self.runner;
                running.extend(is_own.then_some(view));
            }
        }
        self.recall_tries(tried).await?;
        Ok(running)
    }

    /// Takes up what the log holds in place of what was believed here, and makes good what was missed.
    pub(crate) async fn reload(&mut self) -> Result<(), StoreError> {
        if self.replica.is_some() {
            return self.go_back(None).await;
        }
        let running = self.load().await?;
        let now = self.flow.now();
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
                self.start_view(&view, now);
            }
            if run.stopping {
                let is_late = run.timeout_at.is_some_and(|at| at <= now);
                let reason =
                    if is_late { Stopped::Timeout } else { Stopped::Cancelled(CancelReason::Caller) };
                self.runs.tell(view.id, run.fence, reason);
            }
        }
        self.begin_runs();
        self.tell_missed_ends(&HashSet::new()).await
    }

    /// Tells those who wait for tasks that ended without our hearing of it, but for those that are about to be asked for again.
    pub(crate) async fn tell_missed_ends(&mut self, again: &HashSet<TaskId>) -> Result<(), StoreError> {
        let is_over = |task: &&TaskId| self.scheduler.task(**task).is_none() && !again.contains(task);
        let over: Vec<_> = self.waiters.keys().filter(is_over).copied().collect();
        for task in over {
            match self.journal.finished(task).await? {
                Some((finished, result)) => {
                    let ending = Ending::of_finished(finished, result);
                    self.tell_waiters(task, || ending.clone());
                }
                None => self.tell_waiters(task, Ending::lost),
            }
        }
        let scheduler = &self.scheduler;
        for (_, answer) in
            self.slots.extract_if(|task, _| scheduler.task(*task).is_none() && !again.contains(task))
        {
            self.outbox.push(Told::Slot(answer, Err(RunError::Ended(End::Lost))));
        }
        Ok(())
    }

    /// The store cannot be used: tells everybody who asked, and keeps what the runs reported.
    pub(crate) fn give_up(&mut self, error: StoreError, asks: Vec<Ask>) {
        for ask in asks {
            match (&ask.wants, &ask.command) {
                // The next one comes anyway.
                (Wants::Nothing, Command::Heartbeat { .. } | Command::Tick) => {}
                #[cfg(feature = "planted")]
                (Wants::Nothing, _) if crate::planted::is(crate::planted::Bug::OutcomeDropped) => {}
                (Wants::Nothing | Wants::PutBack(_), _) => self.kept.push(ask),
                _ => ask.wants.refuse(error.clone().into()),
            }
        }
        if self.outage.is_none() && self.broken.is_none() {
            self.tools.watchers.tell(&Update::StoreAway { reason: error.to_string().into() }, |_| false);
        }
        match error.kind() {
            ErrorKind::Corrupt => self.broken = Some(error),
            _ => {
                let heard = self.outage.as_ref().map_or(self.heard(), |outage| outage.heard);
                self.outage = Some(Outage::new(OUTAGE_BACKOFF, error, heard));
            }
        }
    }

    /// Whether something can be decided; tries the store again if it is time.
    pub(crate) async fn outage_is_over(&mut self) -> bool {
        let Some(outage) = &self.outage else { return self.broken.is_none() };
        if outage.retry_at > Instant::now() {
            return false;
        }
        let (backoff, heard) = (outage.backoff, outage.heard);
        match self.reload().await {
            Ok(()) => {
                self.outage = None;
                self.tools.watchers.tell(&Update::StoreBack, |_| false);
                if let Some(replica) = &mut self.replica {
                    replica.forgive();
                }
                self.make_up(heard == self.heard()).await;
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                (self.broken, self.outage) = (Some(error), None);
            }
            Err(error) => {
                self.outage = Some(Outage::new(backoff, error, heard));
            }
        }
        self.outage.is_none() && self.broken.is_none()
    }
}

/// The most steps in which the time of an outage is lived through again.
const MAKE_UP_MAX: u32 = 1000;

impl Engine {
    /// Lives through the time of an outage: what runs here was alive all along, but its signs of life could not be
    /// kept. Were the time to jump, every lease would have lapsed. What the runs have reported comes first.
    ///
    /// If nobody else was heard of, the store was away for all who share it, and so for what runs there.
    async fn make_up(&mut self, is_silent: bool) {
        let (now, mut at) = (self.flow.now(), self.scheduler.now());
        let mut asks = std::mem::take(&mut self.kept);
        for _ in 0..MAKE_UP_MAX {
            let (signs, least) = self.signs_of_life(is_silent);
            if at >= now || signs.is_empty() && asks.is_empty() {
                break;
            }
            asks.extend(signs.into_iter().map(|command| Ask::new(command, Wants::Nothing)));
            self.flow.hold(Some(at));
            self.decide_and_keep(&mut asks).await;
            self.flow.hold(None);
            if self.outage.is_some() || self.broken.is_some() {
                return;
            }
            at = (at + least).min(now);
        }
        self.kept.extend(asks);
    }
}

/// What to change so that `wanted` holds in place of `held`, and nothing else.
pub(crate) fn changes(held: &[(Pattern, LaneSettings)], wanted: &[Block]) -> Vec<Block> {
    let is_wanted = |lanes: &Pattern| wanted.iter().any(|block| block.lanes == *lanes);
    let gone = held.iter().filter(|(lanes, _)| !is_wanted(lanes));
    let gone = gone.map(|(lanes, _)| Block { lanes: lanes.clone(), settings: None });
    let is_held = |block: &&Block| {
        let is_same = |(lanes, settings): &(Pattern, LaneSettings)| {
            *lanes == block.lanes && Some(settings) == block.settings.as_ref()
        };
        !held.iter().any(is_same)
    };
    gone.chain(wanted.iter().filter(is_held).cloned()).collect()
}
