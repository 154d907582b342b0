//! Bringing the state back to that of the log: at the start, after an outage, after a lost race.

use std::collections::{BTreeSet, HashSet};
use std::pin::Pin;
use std::time::Duration;

use laneway_core::{
    Backoff, Block, CancelReason, Command, End, Handler, LaneSettings, LiveTaskView, Millis, Name, Pattern,
    ReplicaId, TaskId, Timestamp,
};
use laneway_store::{ErrorKind, Log, StoreError};
use tokio::sync::oneshot;

use crate::driver::engine::Engine;
use crate::driver::mailbox::{Ending, ReplyTo, Request};
use crate::driver::outbox::Delivery;
use crate::error::{Error, RunError};
use crate::events::update::Update;
use crate::options::{SettingsOf, UnknownKinds};
use crate::runs::stop::Stopped;
use crate::runs::table::AttemptStart;

/// The pauses before a store that is away is asked again.
const OUTAGE_BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
/// Another replica may have decided a batch this long after the store stopped answering here. The batch is stored when the store
/// goes on.
const LATE_BATCHES: Millis = Millis(2000);

/// The store cannot be reached: nothing is decided, runs go on.
pub(crate) struct Outage {
    began: Timestamp,
    error: StoreError,
    /// Asks until the store answers; `None`: it has answered.
    question: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Outage {
    fn new(began: Timestamp, error: StoreError, log: Option<&Log>) -> Outage {
        let question =
            log.cloned().map(|log| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(ask(log)) });
        Outage { began, error, question }
    }

    /// Waits until the store answers again. Cancel safe.
    pub(crate) async fn over(outage: &mut Option<Outage>) {
        let Some(Outage { question: question @ Some(_), .. }) = outage else {
            return std::future::pending().await;
        };
        if let Some(question) = question {
            question.await;
        }
        *question = None;
    }
}

async fn ask(log: Log) {
    let mut backoff = OUTAGE_BACKOFF;
    loop {
        tokio::time::sleep(backoff.next_wait()).await;
        match log.store().head().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            _ => return,
        }
    }
}

/// Blocks of settings, by name or pattern.
pub(crate) type Found = Vec<(Pattern, LaneSettings)>;

impl Engine {
    /// Loads the store for the first time, under these settings if any are given. Attempts of the former process are over.
    pub(crate) async fn recover(&mut self, settings: Option<SettingsOf>) -> Result<Option<Found>, Error> {
        self.load().await?;
        let settings = self.settings_of(settings);
        self.check_kinds()?;
        let mut commands = Vec::new();
        if self.resources.id == ReplicaId::SOLE {
            commands.push(Command::ReplicaGone { replica: ReplicaId::SOLE });
        }
        self.settle(settings, commands).await
    }

    /// The settings for the loaded state, if any are given.
    pub(crate) fn settings_of(&self, settings: Option<SettingsOf>) -> Option<Vec<Block>> {
        settings.zip(self.handle()).map(|(settings_of, handle)| settings_of(&self.scheduler, &handle))
    }

    /// Applies these settings, if any are given, and decides further commands, all before anything is granted. Returns the settings that held before, if there
    /// were any and they changed.
    pub(crate) async fn settle(
        &mut self,
        settings: Option<Vec<Block>>,
        commands: Vec<Command>,
    ) -> Result<Option<Found>, Error> {
        let held = self.scheduler.blocks().map(|(lanes, settings)| (lanes.clone(), settings.clone()));
        let held: Found = held.collect();
        let changes = settings.map(|wanted| changes(&held, &wanted));
        let is_changed = !held.is_empty() && changes.as_ref().is_some_and(|changes| !changes.is_empty());
        let (answer, mut settled) = oneshot::channel();
        let configure = Command::Configure(changes.unwrap_or_default());
        let mut requests = vec![Request::new(configure, ReplyTo::Reply(answer))];
        requests.extend(commands.into_iter().map(|command| Request::new(command, ReplyTo::NoCaller)));
        for request in &mut requests {
            request.reported = Some(self.scheduler.now());
        }
        self.decide_and_store(&mut requests).await;
        std::mem::take(&mut self.callers.outbox).send();
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
        self.storage.broken.as_ref().or(self.storage.outage.as_ref().map(|outage| &outage.error)).cloned()
    }

    /// Whether something here runs every task that no worker does.
    pub(crate) fn check_kinds(&self) -> Result<(), Error> {
        let is_unknown = |kind: &Name| self.resources.handlers.get(kind).is_none();
        // Looking at each task takes a while, and is seldom needed.
        if !self.scheduler.kinds().any(is_unknown) {
            return Ok(());
        }
        let here = self.scheduler.tasks().filter(|view| view.handler != Handler::External && !view.is_slot());
        let kinds: BTreeSet<Name> = here.map(|view| view.kind).filter(is_unknown).collect();
        if kinds.is_empty() || self.run_options.unknown_kinds == UnknownKinds::Fail {
            Ok(())
        } else {
            Err(Error::NoHandlers { kinds: kinds.into_iter().collect() })
        }
    }

    /// Loads the state of the log and returns the attempts that are this engine's.
    pub(crate) async fn load(&mut self) -> Result<Vec<LiveTaskView>, StoreError> {
        let Some(log) = self.storage.journal.log() else { return Ok(Vec::new()) };
        let (head, mut scheduler) = log.restore(self.resources.ids.seed()).await?;
        scheduler.collect_ended();
        if self.replica.is_some() {
            scheduler.collect_counts();
        }
        scheduler.run_as(self.resources.id);
        self.is_watched = true;
        (self.storage.head, self.scheduler) = (head, scheduler);
        match self.replica {
            Some(_) => self.clock.reach(self.scheduler.now()),
            None => self.clock.pass(self.scheduler.now()),
        }
        if self.closing.is_some() {
            self.scheduler.stop_granting();
        }
        self.index_dead_letter_payloads();
        self.scan_tasks().await
    }

    /// The payloads of dead letters, as the state has them.
    pub(crate) fn index_dead_letter_payloads(&mut self) {
        let dead_letters = self.scheduler.dead_letters();
        self.storage.dead_letter_payloads =
            dead_letters.filter_map(|dead| Some((dead.task, dead.spec.payload?))).collect();
    }

    /// Looks at all tasks once: the attempts so far, and what runs.
    async fn scan_tasks(&mut self) -> Result<Vec<LiveTaskView>, StoreError> {
        self.runs.forget_elsewhere();
        let (mut tried, mut running) = (Vec::new(), Vec::new());
        for view in self.scheduler.tasks().filter(|view| view.attempts > 0) {
            if view.attempts > 1 || view.running.is_none() {
                tried.push(view.id);
            }
            if let Some(run) = &view.running {
                let (fence, started) = (run.fence, run.started);
                self.runs.note(view.id, AttemptStart { fence, started, worker: run.worker().cloned() });
                let is_own = run.owner == self.owner();
                running.extend(is_own.then_some(view));
            }
        }
        self.recall_tries(tried).await?;
        Ok(running)
    }

    /// Replaces the state by that of the log, and makes up for what was missed.
    pub(crate) async fn reload(&mut self) -> Result<(), StoreError> {
        if self.replica.is_some() {
            return self.go_back(None).await;
        }
        let running = self.load().await?;
        let now = self.clock.now();
        for (task, fence) in self.runs.attempts() {
            let is_live = |view: &LiveTaskView| view.running.as_ref().is_some_and(|run| run.fence == fence);
            if !running.iter().any(|view| view.id == task && is_live(view)) {
                self.runs.remove(task, Stopped::Revoked);
            }
        }
        for view in running {
            let Some(run) = &view.running else { continue };
            if self.runs.get(view.id, run.fence).is_none() {
                // The grant was stored, and its answer was lost.
                self.start_view(&view);
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

    /// Answers callers that wait for tasks whose ends were missed, except for those that are restored.
    pub(crate) async fn tell_missed_ends(&mut self, again: &HashSet<TaskId>) -> Result<(), StoreError> {
        let is_over = |task: &&TaskId| self.scheduler.task(**task).is_none() && !again.contains(task);
        let over: Vec<_> = self.callers.waiters.keys().filter(is_over).copied().collect();
        for task in over {
            match self.storage.journal.finished(task).await? {
                Some((finished, result)) => {
                    let ending = Ending::of_finished(finished, result);
                    self.tell_waiters(task, || ending.clone());
                }
                None => self.tell_waiters(task, Ending::lost),
            }
        }
        let scheduler = &self.scheduler;
        for (_, answer) in
            self.callers.slots.extract_if(|task, _| scheduler.task(*task).is_none() && !again.contains(task))
        {
            self.callers.outbox.push(Delivery::Slot(answer, Err(RunError::Ended(End::Lost))));
        }
        Ok(())
    }

    /// The store cannot be used: answers the requests with an error, and defers what runs have reported.
    pub(crate) fn give_up(&mut self, error: StoreError, requests: Vec<Request>) {
        for mut request in requests {
            request.reported.get_or_insert(self.scheduler.now());
            match (&request.reply_to, &request.command) {
                // The next one comes anyway.
                (
                    ReplyTo::NoCaller,
                    Command::Heartbeat { .. } | Command::RenewLeases { .. } | Command::ReplicaGone { .. },
                ) => {}
                (ReplyTo::NoCaller | ReplyTo::Restored(_), _) => self.storage.deferred.push(request),
                _ => request.reply_to.refuse(error.clone().into()),
            }
        }
        if self.storage.outage.is_none() && self.storage.broken.is_none() {
            self.resources.hub.publish_store(Update::StoreAway { reason: error.to_string().into() });
        }
        self.resources.set_journal(Err(error.clone().into()));
        match error.kind() {
            ErrorKind::Corrupt => self.storage.broken = Some(error),
            _ => self.begin_outage(error),
        }
    }

    fn begin_outage(&mut self, error: StoreError) {
        let began = self.storage.outage.as_ref().map_or_else(|| self.clock.now(), |outage| outage.began);
        self.storage.outage = Some(Outage::new(began, error, self.storage.journal.log()));
    }

    /// Whether the engine can decide; loads the log again if the store has answered.
    pub(crate) async fn outage_is_over(&mut self) -> bool {
        let Some(outage) = &self.storage.outage else { return self.storage.broken.is_none() };
        if outage.question.is_some() {
            return false;
        }
        let began = outage.began;
        match self.reload().await {
            Ok(()) => {
                self.storage.outage = None;
                self.resources.set_journal(Ok(self.storage.journal.clone()));
                self.resources.hub.publish_store(Update::StoreBack);
                if let Some(replica) = &mut self.replica {
                    replica.reset_liveness();
                }
                self.live_through_outage(began);
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                (self.storage.broken, self.storage.outage) = (Some(error), None);
            }
            Err(error) => self.begin_outage(error),
        }
        self.storage.outage.is_none() && self.storage.broken.is_none()
    }

    /// Sees to it that the next batch begins with the deferred reports and renewed leases, before what became due during the
    /// outage. If that came first, every lease would lapse.
    fn live_through_outage(&mut self, began: Timestamp) {
        // If the log stood still, the store was away for the others too, and their leases are renewed as well.
        let is_log_still = self.scheduler.now() <= began + LATE_BATCHES;
        let was_away_for_all = self.replica.is_none() || is_log_still;
        let replica = (!was_away_for_all).then_some(self.resources.id);
        let deferred = &mut self.storage.deferred;
        deferred.push(Request::new(Command::RenewLeases { replica }, ReplyTo::NoCaller));
        for request in deferred.iter_mut() {
            request.reported.get_or_insert(self.scheduler.now());
        }
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
