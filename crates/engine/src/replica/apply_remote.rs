//! What other replicas have appended becomes our state, and its effects happen here.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use laneway_core::{Backoff, Command, Event, LiveTaskView, Owner, ReplicaId, Scheduler, TaskId, Timestamp};
use laneway_store::{Batch as StoredBatch, ErrorKind, Head, Log, StoreError, Version};
use tokio::time::Instant;

use crate::driver::batch::Batch;
use crate::driver::effects::Grant;
use crate::driver::engine::Engine;
use crate::driver::mailbox::{Ending, ReplyTo, Request, Waiters};
use crate::driver::outbox::Delivery;
use crate::error::Error;
use crate::events::update::Update;
use crate::journal::recovery::Found;
use crate::options::SettingsOf;
use crate::replica::follower::News;
use crate::replica::log_loss::LostWork;
use crate::replica::{Replica, author_of};
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
        self.replica.as_ref().and(self.storage.journal.log()).cloned()
    }

    /// Loads the log for the first time.
    pub(crate) async fn join(&mut self, settings: Option<SettingsOf>) -> Result<Option<Found>, Error> {
        self.load().await?;
        let settings = self.settings_of(settings);
        self.begin();
        self.check_kinds()?;
        self.settle(settings, Vec::new()).await
    }

    fn begin(&mut self) {
        let Some(replica) = &mut self.replica else { return };
        replica.rollback.begin(&self.scheduler);
        let tasks: Vec<LiveTaskView> = self.scheduler.tasks().collect();
        replica.begin(tasks.iter());
        replica.follower.has_read(self.storage.head.version);
    }

    /// Acts on news of the follower.
    pub(crate) async fn on_news(&mut self, news: News) {
        let remote_batches = match news {
            News::Grown(version) if self.storage.outage.is_none() && self.storage.broken.is_none() => {
                self.catch_up(Some(version)).await.map(drop)
            }
            News::Trouble(error) if self.storage.outage.is_none() && error.kind() != ErrorKind::Conflict => {
                Err(error)
            }
            News::Trouble(error) if error.kind() == ErrorKind::Conflict => {
                self.catch_up(None).await.map(drop)
            }
            _ => Ok(()),
        };
        if let Err(error) = remote_batches {
            self.give_up(error, Vec::new());
        }
    }

    /// Reads everything that was stored before a query.
    pub(crate) async fn catch_up_to_look(&mut self) {
        if self.storage.outage.is_none()
            && self.storage.broken.is_none()
            && let Err(error) = self.catch_up(None).await
        {
            self.give_up(error, Vec::new());
        }
    }

    /// Reads what was appended since, up to this version or to the end; whether there was anything. The state must be that of
    /// the log: see [`go_back`](Engine::go_back).
    pub(crate) async fn catch_up(&mut self, to: Option<Version>) -> Result<bool, StoreError> {
        let Some(log) = self.shared_log() else { return Ok(false) };
        let mut is_news = false;
        while to.is_none_or(|to| self.storage.head.version < to) {
            let batches = match log.read(self.storage.head).await {
                Ok(batches) => batches,
                Err(StoreError::Trimmed { .. }) => {
                    self.start_over().await?;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.on_log_loss().await?;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            };
            if batches.is_empty() {
                break;
            }
            is_news = true;
            batches.into_iter().for_each(|(head, stored)| self.apply_remote(head, stored));
        }
        Ok(is_news)
    }

    /// Forgets what was decided and not stored, and reads what was stored instead.
    pub(crate) async fn go_back(&mut self, to: Option<Version>) -> Result<(), StoreError> {
        self.rollback();
        self.catch_up(to).await.map(drop)
    }

    /// Forgets what was decided and not stored.
    pub(super) fn rollback(&mut self) {
        let Some(replica) = &self.replica else { return };
        self.scheduler = replica.rollback.scheduler(self.resources.ids.seed());
        self.scheduler.collect_counts();
        self.scheduler.collect_ended();
        self.scheduler.run_as(self.resources.id);
        if self.closing.is_some() {
            self.scheduler.stop_granting();
        }
        self.index_dead_letter_payloads();
    }

    fn apply_remote(&mut self, head: Head, stored: StoredBatch) {
        let author = author_of(stored.id);
        let mut batch = Box::new(Batch { at: stored.at, ..Batch::default() });
        let is_watched = self.resources.hub.is_listening();
        for event in &stored.events {
            self.scheduler.apply(stored.at, event);
            batch.take_changes(&mut self.scheduler, is_watched);
        }
        self.scheduler.advance_to(stored.at);
        batch.events = stored.events;
        batch.is_remote = true;
        // The author counts it.
        drop(self.scheduler.take_counts());
        self.storage.head = head;
        self.note(author, &batch);
        self.note_dead_letter_payloads(&batch);
        self.tell_waiters_later(&batch);
        self.publish(&mut Vec::new(), batch);
    }

    /// Notes a batch that is in the log, ours or another's.
    pub(crate) fn note(&mut self, author: ReplicaId, batch: &Batch) {
        let Some(replica) = &mut self.replica else { return };
        self.clock.reach(batch.at);
        replica.note(author, batch);
        replica.follower.has_read(self.storage.head.version);
    }

    /// Remembers a batch, so that the next decision can be rolled back.
    pub(crate) fn remember(&mut self, at: Timestamp, events: impl FnOnce() -> Vec<Event>) {
        if let Some(replica) = &mut self.replica {
            replica.rollback.note(at, events(), &self.scheduler);
        }
    }

    /// The owner of the attempts that run here.
    pub(crate) fn owner(&self) -> Owner {
        Owner::Replica(self.resources.id)
    }

    /// Answers callers that wait for tasks that ended elsewhere, once the results are read.
    fn tell_waiters_later(&mut self, batch: &Batch) {
        let mut told = Vec::new();
        if self.callers.waiters.is_empty() {
            return;
        }
        let views: HashMap<TaskId, &LiveTaskView> =
            batch.departed.iter().map(|view| (view.id, view)).collect();
        for event in &batch.events {
            let Event::Ended { task, end } = event else { continue };
            let Some(waiters) = self.callers.waiters.remove(task) else { continue };
            told.push((*task, waiters, Ending::new(end.clone(), views.get(task).copied(), batch.at)));
        }
        if let (Some(log), false) = (self.storage.journal.log().cloned(), told.is_empty()) {
            self.spawner.spawn(tell_results(log, told));
        }
    }

    /// The log no longer holds the batches that follow our head: loads the snapshot.
    async fn start_over(&mut self) -> Result<(), StoreError> {
        self.reload_from_store().await?;
        self.start_missed();
        self.tell_missed_ends(&HashSet::new()).await
    }

    /// Starts what was granted to us in batches that we have not read.
    fn start_missed(&mut self) {
        let is_missed = |view: &LiveTaskView| {
            let run = view.running.as_ref().filter(|run| run.owner == self.owner() && !view.is_slot());
            run.is_some_and(|run| self.runs.get(view.id, run.fence).is_none())
        };
        let missed: Vec<LiveTaskView> = self.scheduler.tasks().filter(is_missed).collect();
        for view in missed {
            self.start_view(&view);
        }
        self.begin_runs();
    }

    /// Starts an attempt that is ours by the log.
    pub(crate) fn start_view(&mut self, view: &LiveTaskView) {
        let Some(run) = &view.running else { return };
        let settings = view.lanes.first().map(|home| self.scheduler.settings_for(home));
        let lease = settings.map_or(run.lease_until.since(run.started), |settings| settings.lease);
        let (fence, timeout_at) = (run.fence, run.timeout_at);
        let grant = Grant { task: view.id, fence, attempt: view.attempts, lease, timeout_at };
        self.start(grant, run.started, &[]);
    }

    async fn reload_from_store(&mut self) -> Result<(), StoreError> {
        self.load().await?;
        self.begin();
        for (task, fence) in self.runs.attempts() {
            let running = self.scheduler.task(task).and_then(|view| view.running);
            if running.is_none_or(|run| run.fence != fence) {
                self.runs.remove(task, Stopped::Revoked);
            }
        }
        let waited_for: Vec<TaskId> = self.callers.slots.keys().copied().collect();
        for task in waited_for {
            if let Some(view) = self.scheduler.task(task) {
                self.start_view(&view);
            }
        }
        self.begin_runs();
        Ok(())
    }

    /// The log does not hold what we have read from it: it lost writes, or was restored from a backup. Restores what was accepted
    /// here, and publishes what is gone.
    pub(super) async fn on_log_loss(&mut self) -> Result<(), StoreError> {
        // First, because nothing has changed yet if the store does not answer.
        self.forget_kept().await?;
        let known = self.storage.head;
        let empty = Scheduler::new(self.resources.ids.seed());
        let before = std::mem::replace(&mut self.scheduler, empty);
        if let Err(error) = self.reload_from_store().await {
            (self.storage.head, self.scheduler) = (known, before);
            return Err(error);
        }
        let lost_work = self.lost_work(&before);
        let LostWork { asked, ended } = lost_work;
        let is_lost =
            |view: &LiveTaskView| self.scheduler.task(view.id).is_none() && !asked.contains(&view.id);
        let lost = before.tasks().filter(is_lost).map(|view| view.id).collect();
        let sorted = |tasks: &HashSet<TaskId>| {
            let mut tasks: Vec<TaskId> = tasks.iter().copied().collect();
            tasks.sort_unstable();
            tasks
        };
        let (restored, ends_restored) = (sorted(&asked), sorted(&ended));
        let (known, found) = (known.version, self.storage.head.version);
        let update = Update::LogLost { known, found, lost, restored, ends_restored };
        self.resources.hub.publish_store(update);
        drop(before);
        self.tell_missed_ends(&asked.union(&ended).copied().collect()).await
    }

    /// The commands that follow from the silence of other replicas. Reads the log first: we may be the one that was silent.
    pub(crate) async fn reap_dead(&mut self, now: Timestamp) -> Vec<Command> {
        let is_due = |replica: &Replica| replica.next_check().is_some_and(|at| at <= now);
        if !self.replica.as_ref().is_some_and(|replica| is_due(replica)) {
            return Vec::new();
        }
        let asked = Instant::now();
        if let Err(error) = self.catch_up(None).await {
            self.give_up(error, Vec::new());
            return Vec::new();
        }
        let Some(replica) = &mut self.replica else { return Vec::new() };
        if !replica.is_quick(asked.elapsed()) {
            replica.reset_liveness();
        }
        let running = self.scheduler.running_owners().filter_map(Owner::replica).collect();
        let dead = replica.find_dead(now, &running);
        dead.into_iter().map(|replica| Command::ReplicaGone { replica }).collect()
    }

    /// Drops the commands about replicas that were taken for dead and have appended meanwhile.
    pub(crate) fn spare_the_living(&self, requests: &mut Vec<Request>) {
        let is_alive = |replica| self.replica.as_ref().is_some_and(|this| this.is_alive(replica));
        requests.retain(|request| match request.command {
            Command::ReplicaGone { replica } => !is_alive(replica),
            _ => true,
        });
    }

    /// Ends what still runs here, and cancels the slots that callers here wait for.
    pub(crate) async fn leave(&mut self) {
        if self.replica.is_some() && self.storage.outage.is_none() && self.storage.broken.is_none() {
            let command = Command::ReplicaGone { replica: self.resources.id };
            self.decide_and_store(&mut vec![Request::new(command, ReplyTo::NoCaller)]).await;
        }
    }

    /// Updates the payloads of dead letters after a batch of another replica.
    pub(super) fn note_dead_letter_payloads(&mut self, batch: &Batch) {
        let dead_lettered: HashSet<TaskId> = batch.events.iter().filter_map(dead_lettered).collect();
        for view in batch.departed.iter().filter(|view| dead_lettered.contains(&view.id)) {
            self.storage.dead_letter_payloads.extend(view.payload.map(|payload| (view.id, payload)));
        }
        for event in &batch.events {
            if let Event::DeadLetterRemoved { dead_letter, .. } = event {
                self.storage.dead_letter_payloads.remove(dead_letter);
            }
        }
    }
}

/// Reads the results of tasks, for as long as it takes, and answers the callers that wait for them.
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
            Delivery::Ending(waiter, Box::new(ending)).send();
        }
    }
}

fn dead_lettered(event: &Event) -> Option<TaskId> {
    match event {
        Event::DeadLettered { task, .. } => Some(*task),
        _ => None,
    }
}
