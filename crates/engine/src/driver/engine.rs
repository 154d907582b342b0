//! The engine: everything that one queue needs to decide, store and answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use laneway_core::{BlobId, Command, Millis, Outcome, ReplicaId, ReturnTimes, Scheduler, TaskId, Timestamp};
use laneway_store::{Durability, Head, StoreError, Try};
use tokio::sync::{Notify, oneshot};

use crate::driver::batch::Batch;
use crate::driver::clock::{EngineClock, millis};
use crate::driver::effects::Start;
use crate::driver::ids::{ByTask, Ids};
use crate::driver::mailbox::{Call, Inbox, Mailbox, Query, Receivers, ReplyTo, Report, Request, Waiters};
use crate::driver::outbox::{Delivery, Outbox};
use crate::driver::shutdown::Closing;
use crate::driver::spawner::Spawner;
use crate::error::{Error, RunError};
use crate::events::hub::Hub;
use crate::events::positions::Positions;
use crate::handle::{Handle, Resources, Shared};
use crate::journal::Journal;
use crate::journal::recovery::Outage;
use crate::journal::snapshotter::Snapshotter;
use crate::options::{Options, UnknownKinds};
use crate::replica::Replica;
use crate::replica::broadcast::Broadcast;
use crate::replica::follower::Follower;
use crate::runs::slot::Slot;
use crate::runs::stop::Stopped;
use crate::runs::table::{LATE, Run, Runs};

/// The shortest silence after which a replica counts as dead.
const REPLICA_LEASE_MIN: Millis = Millis(100);

/// One queue. Either its loop owns it, or the lock of a queue in memory.
pub(crate) struct Engine {
    pub(crate) scheduler: Scheduler,
    pub(crate) clock: EngineClock,
    pub(crate) resources: Resources,
    pub(super) shared: Weak<Shared>,
    pub(crate) spawner: Spawner,
    /// What the timer is set to.
    pub(super) alarm: Option<Timestamp>,
    /// What callers of a queue in a store send.
    pub(crate) mail: Option<Receivers>,
    pub(super) buffers: Buffers,
    pub(crate) callers: Callers,
    pub(crate) storage: Storage,
    pub(crate) runs: Runs,
    pub(crate) run_options: RunOptions,
    /// Granted attempts whose handlers start after the grant was published.
    pub(super) starts: Vec<Start>,
    /// There was a watcher when the last batch was decided.
    pub(crate) is_watched: bool,
    pub(crate) positions: Positions,
    pub(crate) closing: Option<Closing>,
    /// Where other engines share the log.
    pub(crate) replica: Option<Box<Replica>>,
}

/// Buffers that keep their room from batch to batch.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) inbox: Inbox,
    pub(super) requests: Vec<Request>,
    pub(super) batch: Option<Box<Batch>>,
}

/// The callers that wait for something.
#[derive(Default)]
pub(crate) struct Callers {
    /// Those that wait for a slot.
    pub(crate) slots: ByTask<oneshot::Sender<Result<Slot, RunError>>>,
    /// Those that wait for the end of a task.
    pub(crate) waiters: ByTask<Waiters>,
    /// Those that were refused.
    pub(super) return_times: ReturnTimes,
    pub(crate) outbox: Outbox,
}

/// The journal, and how it stands.
pub(crate) struct Storage {
    pub(crate) journal: Journal,
    /// The place in the log that the state is of.
    pub(crate) head: Head,
    pub(crate) snapshotter: Snapshotter,
    /// The payloads of dead letters.
    pub(crate) dead_letter_payloads: HashMap<TaskId, BlobId>,
    /// The attempts of live tasks after which another followed.
    pub(crate) tries: HashMap<TaskId, Vec<Try>>,
    /// Decided as soon as the store can be reached.
    pub(crate) deferred: Vec<Request>,
    pub(crate) outage: Option<Outage>,
    /// What cannot be read, so that nothing more is decided.
    pub(crate) broken: Option<StoreError>,
}

/// How tasks run here.
pub(crate) struct RunOptions {
    pub(crate) unknown_kinds: UnknownKinds,
    pub(super) stop_grace: Duration,
}

impl Storage {
    fn new(journal: Journal, snapshotter: Snapshotter) -> Storage {
        Storage {
            journal,
            head: Head::EMPTY,
            snapshotter,
            dead_letter_payloads: HashMap::new(),
            tries: HashMap::new(),
            deferred: Vec::new(),
            outage: None,
            broken: None,
        }
    }
}

impl Engine {
    pub(crate) fn new(journal: Journal, options: Options, durability: Durability) -> (Engine, Handle) {
        let (mailbox, mail) = match journal {
            Journal::Memory(_) => (Mailbox::InMemory(Box::default()), None),
            Journal::Kept(_) => Mailbox::of_loop(options.calls_max),
        };
        let ids = options.seed.map_or_else(Ids::new, Ids::seeded);
        let spawner = Spawner::new(options.spawner);
        let is_shared = options.shares.is_some() || journal.log().is_some_and(|log| log.store().is_shared());
        let id = if is_shared { ids.replica() } else { ReplicaId::SOLE };
        let mut scheduler = Scheduler::new(ids.seed());
        scheduler.collect_ended();
        scheduler.run_as(id);
        let lease = millis(options.replica_lease).max(REPLICA_LEASE_MIN);
        let hub = Hub::new(options.clock.now(), options.updates_max);
        let broadcast = options.shares.as_ref().map(|store| {
            let (broadcast, relay) = Broadcast::new(id.0, store, hub.clone());
            spawner.spawn(relay.run());
            broadcast
        });
        let replica = options.shares.map(|store| Replica::new(id, lease, Follower::new(store)));
        let resources = Resources {
            id,
            is_replica: replica.is_some(),
            ids: Arc::new(ids),
            handlers: options.handlers,
            hub,
            journal: Arc::new(Mutex::new(Ok(journal.clone()))),
            offers: Arc::new(Notify::new()),
            tool_calls: Arc::default(),
            payloads_kept_max: options.payloads_kept_max,
            appends: Arc::default(),
            broadcast,
            faults: options.faults,
        };
        let handle = Handle::new(mailbox, resources.clone(), durability);
        let snapshotter = Snapshotter::new(
            options.snapshot_every,
            options.history_max,
            options.history_for,
            replica.is_some(),
            spawner.clone(),
        );
        let (unknown_kinds, stop_grace) = (options.unknown_kinds, options.stop_grace);
        let engine = Engine {
            scheduler,
            clock: EngineClock::new(options.clock),
            resources,
            shared: handle.downgrade(),
            spawner,
            alarm: None,
            mail,
            buffers: Buffers::default(),
            callers: Callers::default(),
            storage: Storage::new(journal, snapshotter),
            runs: Runs::default(),
            run_options: RunOptions { unknown_kinds, stop_grace },
            starts: Vec::new(),
            is_watched: true,
            positions: Positions::default(),
            closing: None,
            replica: replica.map(Box::new),
        };
        (engine, handle)
    }

    /// A handle for an attempt; `None` at the end, when no handle is left.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.shared.upgrade().map(Handle::from_shared)
    }

    /// What is to be decided now: what is in the inbox, what was deferred, and the renewals that are due.
    pub(super) fn gather(
        &mut self,
        now: Timestamp,
        inbox: &mut Inbox,
        requests: &mut Vec<Request>,
        queries: &mut Vec<Query>,
    ) {
        requests.append(&mut self.storage.deferred);
        requests.extend(inbox.reports.drain(..).filter_map(|report| self.on_report(report)));
        self.sort(&mut inbox.calls, requests, queries);
        // A shutdown that begins defers something.
        requests.append(&mut self.storage.deferred);
        let renewals = self.runs.renewals(now);
        requests.extend(renewals.into_iter().map(|command| Request::new(command, ReplyTo::NoCaller)));
    }

    /// Answers a question about the state, or says why nothing is known of it.
    pub(super) fn answer_query(&mut self, query: Query) {
        match query {
            Query::State(look) => look(self.readable()),
            Query::End { task, answer } => {
                let is_live = self.readable().map(|state| state.status(task).is_some());
                let waiter = is_live.map(|is_live| is_live.then(|| self.wait_for(task)));
                self.callers.outbox.push(Delivery::Awaited(answer, waiter));
            }
        }
    }

    /// The state, if it is that of the log.
    fn readable(&self) -> Result<&Scheduler, Error> {
        self.trouble().map_or(Ok(&self.scheduler), Err)
    }

    pub(super) fn sort(
        &mut self,
        calls: &mut Vec<Call>,
        requests: &mut Vec<Request>,
        queries: &mut Vec<Query>,
    ) {
        for call in calls.drain(..) {
            match call {
                // Its caller has gone, and has said so before.
                Call::Request(Request { reply_to: ReplyTo::Slot(answer), .. }) if answer.is_closed() => {}
                Call::Request(request) => requests.push(request),
                Call::Query(query) => queries.push(query),
                Call::Shutdown { deadline, done } => self.close(deadline, done),
            }
        }
    }

    /// The command that a report stands for.
    pub(super) fn on_report(&mut self, report: Report) -> Option<Request> {
        match report {
            Report::Leave { task } => Some(Request::new(Command::Leave { task }, ReplyTo::NoCaller)),
            Report::Finish { task, fence, outcome, result, work, at } => {
                let is_shutdown = |run: &Run| run.stop.reason() == Some(Stopped::Shutdown);
                // It ends with the program and was not stopped: the lane's rule decides, as after a crash.
                let command = match outcome {
                    Outcome::Stopped if self.runs.get(task, fence).is_some_and(is_shutdown) => {
                        Command::Lapse { task, fence }
                    }
                    outcome => Command::Finish { task, fence, taken: Vec::new(), outcome },
                };
                let mut request = Request::new(command, ReplyTo::NoCaller);
                (request.result, request.work) = (result, work);
                let ago = millis(at.elapsed());
                request.reported = (ago > LATE).then(|| Timestamp(self.clock.now().0.saturating_sub(ago.0)));
                Some(request)
            }
        }
    }
}
