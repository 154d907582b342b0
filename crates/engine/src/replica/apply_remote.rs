//! What others have appended: it becomes our state, and what follows from it here is done here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use laneway_core::{
    Backoff, Block, CancelReason, Command, Event, Handler, Name, Scheduler, Selector, TaskId, TaskView,
    Timestamp,
};
use laneway_store::{Batch, ErrorKind, Head, Log, StoreError, Version};

use crate::driver::batch::Turn;
use crate::driver::effects::Grant;
use crate::driver::engine_loop::Engine;
use crate::driver::ids::Ids;
use crate::driver::mailbox::{Ask, Ending, Waiters, Wants};
use crate::driver::outbox::Told;
use crate::error::Error;
use crate::events::watch::Update;
use crate::handle::task::is_slot;
use crate::journal::recovery::Found;
use crate::replica::follower::News;
use crate::replica::log_loss::PutBack;
use crate::replica::{Replica, ReplicaId};
use crate::runs::stop::Stopped;

/// The next news, for an engine that shares its log.
pub(crate) async fn news(replica: &mut Option<Box<Replica>>) -> News {
    match replica {
        Some(replica) => replica.follower.news().await,
        None => std::future::pending().await,
    }
}

impl Engine {
    /// The log, where others share it.
    fn shared_log(&self) -> Option<Log> {
        self.replica.as_ref().and(self.journal.log()).cloned()
    }

    /// Takes up the log as it is, for the first time.
    pub(crate) async fn join(&mut self, settings: Option<Vec<Block>>) -> Result<Option<Found>, Error> {
        self.load().await?;
        self.begin();
        self.check_kinds()?;
        self.settle(settings, Vec::new()).await
    }

    fn begin(&mut self) {
        let Some(replica) = &mut self.replica else { return };
        replica.rewind.begin(&self.scheduler);
        let tasks: Vec<TaskView> = self.scheduler.tasks().collect();
        replica.begin(tasks.iter());
        replica.follower.has_read(self.head.version);
    }

    /// Heeds what the follower has heard.
    pub(crate) async fn hear(&mut self, news: News) {
        let heard = match news {
            News::Grown(version) if self.outage.is_none() && self.broken.is_none() => {
                self.catch_up(Some(version)).await.map(drop)
            }
            News::Trouble(error) if self.outage.is_none() && error.kind() != ErrorKind::Conflict => {
                Err(error)
            }
            News::Trouble(error) if error.kind() == ErrorKind::Conflict => {
                self.catch_up(None).await.map(drop)
            }
            _ => Ok(()),
        };
        if let Err(error) = heard {
            self.give_up(error, Vec::new());
        }
    }

    /// Whoever looks sees everything that was kept before, whoever kept it.
    pub(crate) async fn catch_up_to_look(&mut self) {
        if self.outage.is_none()
            && self.broken.is_none()
            && let Err(error) = self.catch_up(None).await
        {
            self.give_up(error, Vec::new());
        }
    }

    /// Reads what was appended since, up to this version or to the end; whether there was anything. The state must be
    /// that of the log: see [`go_back`](Engine::go_back).
    pub(crate) async fn catch_up(&mut self, to: Option<Version>) -> Result<bool, StoreError> {
        let Some(log) = self.shared_log() else { return Ok(false) };
        let mut is_news = false;
        while to.is_none_or(|to| self.head.version < to) {
            let batches = match log.read(self.head).await {
                Ok(batches) => batches,
                Err(StoreError::Trimmed { .. }) => {
                    self.start_over().await?;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.set_back().await?;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            };
            if batches.is_empty() {
                break;
            }
            is_news = true;
            #[cfg(feature = "planted")]
            let batches = self.skip_some(batches);
            batches.into_iter().for_each(|(head, batch)| self.take_over(head, batch));
        }
        Ok(is_news)
    }

    /// What planted bugs leave of what was read.
    #[cfg(feature = "planted")]
    fn skip_some(&mut self, mut batches: Vec<(Head, Batch)>) -> Vec<(Head, Batch)> {
        use crate::planted::{Bug, is};
        let own = self.replica.as_ref().map(|replica| replica.id);
        if is(Bug::TailSkipped) && batches.len() > 1 {
            batches.remove(0);
        }
        if is(Bug::OwnBatchSkipped) && batches.len() == 1 && own == Some(ReplicaId::of_batch(batches[0].1.id))
        {
            batches[0].1.events.clear();
        }
        batches
    }

    /// Forgets what was decided and not kept, and reads what was kept instead.
    pub(crate) async fn go_back(&mut self, to: Option<Version>) -> Result<(), StoreError> {
        self.rewind();
        self.catch_up(to).await.map(drop)
    }

    /// Forgets what was decided and not kept.
    pub(crate) fn rewind(&mut self) {
        let Some(replica) = &self.replica else { return };
        self.scheduler = replica.rewind.scheduler(self.tools.ids.seed());
        self.scheduler.keep_departed();
        self.scheduler.run_as(self.runner.clone());
        if self.closing.is_some() {
            self.scheduler.stop_granting();
        }
        self.recall_letters();
    }

    fn take_over(&mut self, head: Head, batch: Batch) {
        let author = ReplicaId::of_batch(batch.id);
        let mut turn = Turn { at: batch.at, ..Turn::default() };
        let is_watched = !self.tools.watchers.is_empty();
        for event in &batch.events {
            self.scheduler.apply(batch.at, event);
            turn.take_changes(&mut self.scheduler, is_watched);
        }
        self.scheduler.reach(batch.at);
        turn.events = batch.events;
        self.head = head;
        self.note(author, &turn);
        self.note_letters(&turn);
        self.tell_waiters_later(&turn);
        self.publish(&mut Vec::new(), turn);
    }

    /// Takes note of a batch that is in the log, ours or another's.
    pub(crate) fn note(&mut self, author: ReplicaId, turn: &Turn) {
        let Some(replica) = &mut self.replica else { return };
        self.flow.reach(turn.at);
        replica.note(author, turn);
        for event in &turn.events {
            let Event::Granted { task, fence, worker, .. } = event else { continue };
            // Most grants are of no slot, or nobody else has any.
            let origin = || {
                let of_slot = self.scheduler.kind_of(*task).and_then(ReplicaId::of_kind);
                of_slot.or_else(|| Ids::replica_of(worker.as_ref()?))
            };
            if (author != replica.id || replica.has_others())
                && let Some(origin) = origin()
            {
                replica.note_grant(author, origin, *task, *fence);
            }
        }
        replica.follower.has_read(self.head.version);
    }

    /// Remembers what has led to the state as it is now, for the way back from the next decision.
    pub(crate) fn remember(&mut self, at: Timestamp, events: impl FnOnce() -> Vec<Event>) {
        if let Some(replica) = &mut self.replica {
            replica.rewind.note(at, events(), &self.scheduler);
        }
    }

    /// Whether what was granted is to be run here.
    pub(crate) fn is_for_us(&self, task: TaskId, runner: Option<&Name>) -> bool {
        let is_ours = runner == self.runner.as_ref();
        let Some(replica) = &self.replica else { return is_ours };
        match self.scheduler.kind_of(task).and_then(ReplicaId::of_kind) {
            Some(origin) => origin == replica.id,
            None => is_ours,
        }
    }

    /// Tells those who wait for tasks that ended elsewhere, as soon as what those produced has been read.
    fn tell_waiters_later(&mut self, turn: &Turn) {
        let mut told = Vec::new();
        if self.waiters.is_empty() {
            return;
        }
        let views: HashMap<TaskId, &TaskView> = turn.departed.iter().map(|view| (view.id, view)).collect();
        for event in &turn.events {
            let Event::Ended { task, end } = event else { continue };
            let Some(waiters) = self.waiters.remove(task) else { continue };
            told.push((*task, waiters, Ending::new(end.clone(), views.get(task).copied(), turn.at)));
        }
        if let (Some(log), false) = (self.journal.log().cloned(), told.is_empty()) {
            self.tasks.spawn(tell_results(log, told));
        }
    }

    /// What we have read is not kept any more as batches: begins anew with the snapshot.
    async fn start_over(&mut self) -> Result<(), StoreError> {
        self.take_up_anew().await?;
        self.start_missed();
        self.tell_missed_ends(&HashSet::new()).await
    }

    /// Starts what others have granted us in batches that we have not read.
    fn start_missed(&mut self) {
        let is_missed = |view: &TaskView| {
            let run = view.running.as_ref().filter(|run| run.worker == self.runner && !is_slot(&view.kind));
            run.is_some_and(|run| self.runs.get(view.id, run.fence).is_none())
        };
        let missed: Vec<TaskView> = self
            .scheduler
            .tasks()
            .filter(|view| view.handler != Handler::External && is_missed(view))
            .collect();
        for view in missed {
            self.start_view(&view, self.scheduler.now());
        }
        self.begin_runs();
    }

    /// Starts the attempt of a task that is ours by the log.
    pub(crate) fn start_view(&mut self, view: &TaskView, now: Timestamp) {
        let Some(run) = &view.running else { return };
        let settings = view.lanes.first().map(|home| self.scheduler.settings_for(home));
        let lease = settings.map_or(run.lease_until.since(run.started), |settings| settings.lease);
        let (fence, timeout_at) = (run.fence, run.timeout_at);
        let grant = Grant { task: view.id, fence, attempt: view.attempts, lease, timeout_at };
        self.start(grant, now, &[]);
    }

    async fn take_up_anew(&mut self) -> Result<(), StoreError> {
        self.load().await?;
        self.begin();
        for (task, fence) in self.runs.attempts() {
            let running = self.scheduler.task(task).and_then(|view| view.running);
            if running.is_none_or(|run| run.fence != fence) {
                self.runs.remove(task, Stopped::Revoked);
            }
        }
        let waited_for: Vec<TaskId> = self.slots.keys().copied().collect();
        for task in waited_for {
            if let Some(view) = self.scheduler.task(task) {
                self.start_view(&view, self.scheduler.now());
            }
        }
        self.begin_runs();
        Ok(())
    }

    /// The log does not hold what we have read from it: the engine lost writes, or was restored from a backup. Never
    /// goes on as if nothing had happened: what was accepted here is put back, and everybody who watches is told what is gone.
    pub(crate) async fn set_back(&mut self) -> Result<(), StoreError> {
        // First, because nothing has changed yet if the store does not answer.
        self.forget_kept().await?;
        let known = self.head;
        let empty = Scheduler::new(self.tools.ids.seed());
        let before = std::mem::replace(&mut self.scheduler, empty);
        if let Err(error) = self.take_up_anew().await {
            (self.head, self.scheduler) = (known, before);
            return Err(error);
        }
        let put_back = self.put_back(&before);
        let PutBack { asked, ended } = put_back;
        let is_lost = |view: &TaskView| self.scheduler.task(view.id).is_none() && !asked.contains(&view.id);
        let lost = before.tasks().filter(is_lost).map(|view| view.id).collect();
        let sorted = |tasks: &HashSet<TaskId>| {
            let mut tasks: Vec<TaskId> = tasks.iter().copied().collect();
            tasks.sort_unstable();
            tasks
        };
        let (put_back, recounted) = (sorted(&asked), sorted(&ended));
        let (known, found) = (known.version, self.head.version);
        let update = Update::SetBack { known, found, lost, put_back, recounted };
        self.tools.watchers.tell(&update, |_| true);
        drop(before);
        self.tell_missed_ends(&asked.union(&ended).copied().collect()).await
    }

    /// What follows from the silence of others. Only after a look: we may be the one who was silent, and not have heard.
    pub(crate) async fn bury(&mut self, now: Timestamp) -> Vec<Command> {
        let is_due = |replica: &Replica| replica.next_death().is_some_and(|at| at <= now);
        if !self.replica.as_ref().is_some_and(|replica| is_due(replica)) {
            return Vec::new();
        }
        if let Err(error) = self.catch_up(None).await {
            self.give_up(error, Vec::new());
            return Vec::new();
        }
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::DeadNotBuried) {
            return Vec::new();
        }
        let Some(replica) = &mut self.replica else { return Vec::new() };
        let (mut commands, dead) = replica.bury(now);
        if dead.is_empty() {
            return commands;
        }
        // Whoever was connected to one that is dead has gone. What others wait for too goes on, wherever.
        let mut homes = BTreeSet::new();
        let mut left = Vec::new();
        for view in self.scheduler.tasks() {
            let Some(home) =
                view.home.filter(|home| Ids::replica_of(home).is_some_and(|id| dead.contains(&id)))
            else {
                continue;
            };
            homes.insert(home);
            left.extend(view.running.is_none().then_some(Command::Leave { task: view.id }));
        }
        commands.extend(homes.into_iter().map(|home| Command::Unbind { home }));
        commands.extend(left);
        commands
    }

    /// Leaves nothing behind that waits for us.
    pub(crate) async fn leave(&mut self) {
        let Some(replica) = &self.replica else { return };
        if let Ok(kind) = Name::new(replica.id.slot_kind())
            && self.outage.is_none()
            && self.broken.is_none()
        {
            let which = Selector { kind: Some(kind), ..Selector::default() };
            let command = Command::CancelWaiting { which, reason: CancelReason::Caller };
            self.decide_and_keep(&mut vec![Ask::new(command, Wants::Nothing)]).await;
        }
    }

    /// Remembers the payloads of dead letters that a batch made, and forgets those of letters that are gone.
    pub(crate) fn note_letters(&mut self, turn: &Turn) {
        let lettered: HashSet<TaskId> = turn.events.iter().filter_map(lettered).collect();
        for view in turn.departed.iter().filter(|view| lettered.contains(&view.id)) {
            self.letters.extend(view.payload.map(|payload| (view.id, payload)));
        }
        for event in &turn.events {
            if let Event::LetterGone { letter, .. } = event {
                self.letters.remove(letter);
            }
        }
    }
}

/// Reads what tasks produced, for as long as it takes, and tells those who wait for them.
async fn tell_results(log: Log, told: Vec<(TaskId, Waiters, Ending)>) {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
    let results = loop {
        match log.results(told.iter().map(|(task, ..)| *task).collect()).await {
            Ok(results) => break results,
            Err(error) if error.kind() == ErrorKind::Corrupt && told.len() == 1 => break vec![None],
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                // One of them cannot be read: the others can.
                for one in told {
                    Box::pin(tell_results(log.clone(), vec![one])).await;
                }
                return;
            }
            Err(_) => tokio::time::sleep(backoff.next_wait()).await,
        }
    };
    for ((_, waiters, ending), result) in told.into_iter().zip(results) {
        for waiter in waiters {
            let ending = Ending { result: result.clone(), ..ending.clone() };
            Told::Ending(waiter, Box::new(ending)).tell();
        }
    }
}

fn lettered(event: &Event) -> Option<TaskId> {
    match event {
        Event::DeadLettered { task, .. } => Some(*task),
        _ => None,
    }
}
