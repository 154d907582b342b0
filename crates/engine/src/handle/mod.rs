//! The handle of a queue, through which a program does everything.

pub(crate) mod acquire;
pub(crate) mod history;
pub(crate) mod lanes;
pub(crate) mod message;
pub(crate) mod notes;
pub(crate) mod open;
pub(crate) mod register;
pub(crate) mod sessions;
pub(crate) mod submission;
pub(crate) mod task;
pub(crate) mod task_handle;
pub(crate) mod tasks;
pub(crate) mod workers;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use laneway_core::{BlobId, Command, LaneSettings, Pattern, ReplicaId, Reply, Scheduler, TaskId};
use laneway_store::Durability;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::driver::faults::Faults;
use crate::driver::ids::Ids;
use crate::driver::in_memory::InMemory;
use crate::driver::mailbox::{Call, Mailbox, Query, ReplyTo, Report, Request, Room};
use crate::error::Error;
use crate::events::hub::Hub;
use crate::events::subscription::{Filter, Since, Subscription};
use crate::journal::Journal;
use crate::replica::append_counts::{AppendTimes, Appends, OwnStats, Tally};
use crate::replica::broadcast::Broadcast;
use crate::runs::handler::Handlers;
use crate::runs::tool_lanes::ToolCalls;
use crate::runs::tools::Tools;

/// A queue that runs. Clones are the same queue.
///
/// It ends with [`shutdown`](Handle::shutdown), or when the last handle, slot and run is gone; all methods return
/// [`Error::Closed`] after that. A handler that holds a clone of its own keeps the queue alive for ever:
/// [`Context::handle`](crate::Context::handle) is there for it.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

/// What all handles of a queue share.
pub(crate) struct Shared {
    mailbox: Mailbox,
    pub(crate) resources: Resources,
    pub(crate) durability: Durability,
    /// The settings that held before this engine began with others.
    found: OnceLock<Vec<(Pattern, LaneSettings)>>,
}

impl Shared {
    /// The engine, where there is no loop.
    pub(crate) fn in_memory(&self) -> Option<&InMemory> {
        match &self.mailbox {
            Mailbox::InMemory(driver) => Some(driver),
            Mailbox::Loop { .. } => None,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.in_memory().is_some() {
            // The engine goes with this, so nothing more happens.
            self.resources.hub.close();
        }
    }
}

/// What handles and the engine share. The engine holds no handle, so that it ends with the last one.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) ids: Arc<Ids>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) hub: Hub,
    /// Taken at the end, so that the store is closed although handles are left.
    pub(crate) journal: Arc<Mutex<Result<Journal, Error>>>,
    /// Which replica this engine is.
    pub(crate) id: ReplicaId,
    /// Others share the log, and it follows what they append.
    pub(crate) is_replica: bool,
    /// Notified when a worker may find something to claim.
    pub(crate) offers: Arc<Notify>,
    /// How the calls of tools are run.
    pub(crate) tool_calls: Arc<Mutex<Arc<ToolCalls>>>,
    /// How long a payload may be that is remembered with a finished task.
    pub(crate) payloads_kept_max: usize,
    /// How appending went.
    pub(crate) appends: Arc<Tally>,
    /// Where several engines share the log.
    pub(crate) broadcast: Option<Broadcast>,
    /// Only in a simulation.
    pub(crate) faults: Option<Arc<dyn Faults>>,
}

impl Handle {
    pub(crate) fn resources(&self) -> &Resources {
        &self.0.resources
    }

    pub(crate) fn downgrade(&self) -> std::sync::Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Handle {
        Handle(shared)
    }

    pub(crate) fn payloads_kept_max(&self) -> usize {
        self.0.resources.payloads_kept_max
    }

    /// What has become of a task when it is accepted.
    pub fn durability(&self) -> Durability {
        self.0.durability
    }

    /// The tool lanes of a session.
    pub fn tools(&self, session: impl Into<Arc<str>>) -> Tools {
        Tools::new(self.clone(), session.into())
    }

    /// How often this replica appended to its log, and how often that was in vain.
    pub fn appends(&self) -> Appends {
        self.0.resources.appends.read()
    }

    /// How long this replica's appends took.
    pub fn append_times(&self) -> AppendTimes {
        self.0.resources.appends.times()
    }

    /// What the lanes have counted in batches of this replica since it started. The parts of all replicas add up. `None`: it is
    /// the only one, and the state has all.
    pub fn own_stats(&self) -> Option<OwnStats> {
        self.0.resources.is_replica.then(|| self.0.resources.appends.own())
    }

    /// The hub that numbers and passes on all events of this engine.
    pub fn hub(&self) -> &Hub {
        &self.0.resources.hub
    }

    /// Events that match the filter, from now on.
    pub fn subscribe(&self, filter: Filter) -> Subscription {
        self.hub().subscribe(filter, Since::Now)
    }

    /// Answers a question about the state, after everything that was asked before. The question should be quick: nothing is
    /// decided meanwhile.
    pub async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, told) = oneshot::channel();
        let query = Query::State(Box::new(move |state: Result<&Scheduler, Error>| {
            // A caller that has gone needs no answer.
            drop(answer.send(state.map(question)));
        }));
        self.call(Call::Query(query)).await?;
        told.await.map_err(|_| Error::Closed)?
    }

    /// Has a command decided and stored, and returns the answer.
    pub async fn ask(&self, command: Command) -> Result<Reply, Error> {
        let (answer, reply) = oneshot::channel();
        self.send(Request::new(command, ReplyTo::Reply(answer))).await?;
        reply.await.map_err(|_| Error::Closed)?
    }

    pub(crate) fn send(&self, request: Request) -> impl Future<Output = Result<(), Error>> {
        self.call(Call::Request(request))
    }

    pub(crate) async fn call(&self, call: Call) -> Result<(), Error> {
        self.room().await?.call(call)
    }

    pub(crate) fn room(&self) -> impl Future<Output = Result<Room<'_>, Error>> {
        self.0.mailbox.room()
    }

    pub(crate) fn report(&self, report: Report) {
        self.0.mailbox.report(report);
    }

    /// Reports from inside the engine, which is looked at again before it is left.
    pub(crate) fn report_later(&self, report: Report) {
        self.0.mailbox.report_later(report);
    }

    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        self.0.resources.journal()
    }

    pub(crate) fn offered(&self) -> Notified<'_> {
        self.0.resources.offers.notified()
    }

    /// An id that no task had before: see [`submit_spec`](Handle::submit_spec).
    pub fn new_id(&self) -> TaskId {
        self.0.resources.ids.task()
    }

    pub(crate) fn new_blob(&self) -> BlobId {
        self.0.resources.ids.blob()
    }
}

impl Resources {
    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What callers read from, or why they cannot read now.
    pub(crate) fn set_journal(&self, journal: Result<Journal, Error>) {
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = journal;
    }
}
