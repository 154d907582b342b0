//! What a program holds in its hand.

pub(crate) mod acquire;
pub(crate) mod history;
pub(crate) mod message;
pub(crate) mod register;
pub(crate) mod sessions;
pub(crate) mod submission;
pub(crate) mod task;
pub(crate) mod task_handle;
pub(crate) mod views;
pub(crate) mod workers;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{BlobId, Command, LaneSettings, Name, Pattern, Reply, Scheduler, TaskId};
use laneway_store::{Durability, Log, Store};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::driver::engine_loop::Engine;
use crate::driver::ids::Ids;
use crate::driver::in_memory::InMemory;
use crate::driver::mailbox::{Ask, Call, Ending, Look, Mailbox, Report, Wants};
use crate::driver::spawner::Tasks;
use crate::error::Error;
use crate::events::refusals::{Counts, Refusals};
use crate::events::watch::{Filter, Updates, Watchers};
use crate::handle::task::Task;
use crate::handle::task_handle::TaskHandle;
use crate::journal::Journal;
use crate::options::Options;
use crate::replica::append_counts::{Appends, Tally};
use crate::replica::broadcast::Voice;
use crate::replica::store_clock::StoreClock;
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

/// What all handles and the loop share.
pub(crate) struct Shared {
    mailbox: Mailbox,
    pub(crate) tools: Toolbox,
    pub(crate) updates_max: usize,
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
            self.tools.watchers.close();
        }
    }
}

/// What the loop needs of what is shared. It does not hold the rest, so that it ends when nobody else does.
#[derive(Clone)]
pub(crate) struct Toolbox {
    pub(crate) ids: Arc<Ids>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) watchers: Arc<Watchers>,
    /// Taken when the loop ends, so that the store is closed although handles are left.
    pub(crate) journal: Arc<Mutex<Option<Journal>>>,
    /// The kind of slots, and as whom tasks are run, where several engines share the log.
    pub(crate) slot_kind: Option<Name>,
    pub(crate) runner: Option<Name>,
    /// Told when a worker may find something.
    pub(crate) offers: Arc<Notify>,
    /// How the calls of tools are run.
    pub(crate) tool_calls: Arc<Mutex<Arc<ToolCalls>>>,
    /// How long a payload may be that is remembered with a finished task.
    pub(crate) payloads_kept_max: usize,
    /// What was refused, and how often.
    pub(crate) refusals: Arc<Mutex<Counts>>,
    /// How appending went.
    pub(crate) appends: Arc<Tally>,
    /// Where several engines share the log.
    pub(crate) voice: Option<Voice>,
}

impl Handle {
    /// A queue that forgets everything with the process.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, like [`tokio::spawn`]. The runtime needs its timer.
    pub fn in_memory(options: Options) -> Handle {
        let journal = Journal::in_memory(options.history_max, options.history_for);
        let (engine, handle) = Engine::new(journal, options, Durability::Memory);
        if let Some(driver) = handle.0.in_memory() {
            driver.adopt(engine, Arc::downgrade(&handle.0));
        }
        handle
    }

    /// The queue in this store. What was accepted there goes on; attempts that a former process left behind are
    /// over, since only one process has the store: the lane's rule decides whether they are retried or `lost`.
    ///
    /// Tasks that are there start at once, so their handlers must be among the [`Options`]: a kind that has none is an
    /// error, unless [`Options::unknown_kinds`] says otherwise.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Handle, Error> {
        if store.is_shared() {
            // Others may be at it already: whoever believed to be alone would end their runs.
            return Handle::join(store, options).await;
        }
        let durability = store.durability();
        let settings = options.settings.clone();
        let (mut engine, handle) = Engine::new(Journal::Kept(Log::new(store)), options, durability);
        handle.keep_found(engine.recover(settings).await?);
        let tasks = engine.tasks.clone();
        tasks.spawn(engine.run());
        Ok(handle)
    }

    /// The queue in a store that other engines share: all of them together keep to each limit. Any of them can be asked
    /// anything; what was accepted by one that dies goes on at the others.
    ///
    /// A slot or closure runs here. A task of a named handler runs wherever a slot becomes free for it, so all engines
    /// should have the same handlers. The time is that of the store.
    pub async fn join(store: Arc<dyn Store>, mut options: Options) -> Result<Handle, Error> {
        let durability = store.durability();
        if let Some(clock) = StoreClock::ask(&*store).await? {
            let tasks = Tasks::new(options.tasks.clone());
            tasks.spawn(clock.clone().keep_right(Arc::downgrade(&store)));
            options.clock = Box::new(clock);
        }
        options.shares = Some(Arc::clone(&store));
        let settings = options.settings.clone();
        let (mut engine, handle) = Engine::new(Journal::Kept(Log::new(store)), options, durability);
        handle.keep_found(engine.join(settings).await?);
        let tasks = engine.tasks.clone();
        tasks.spawn(engine.run());
        Ok(handle)
    }

    pub(crate) fn new(
        mailbox: Mailbox,
        tools: Toolbox,
        updates_max: usize,
        durability: Durability,
    ) -> Handle {
        Handle(Arc::new(Shared { mailbox, tools, updates_max, durability, found: OnceLock::new() }))
    }

    fn keep_found(&self, found: Option<Vec<(Pattern, LaneSettings)>>) {
        if let Some(found) = found {
            self.0.found.get_or_init(|| found);
        }
    }

    /// The blocks of settings that the store held when this engine began with [others](Options::settings); `None` where it
    /// began with those, or with none, or in memory.
    pub fn blocks_found(&self) -> Option<&[(Pattern, LaneSettings)]> {
        self.0.found.get().map(Vec::as_slice)
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.0.tools
    }

    pub(crate) fn downgrade(&self) -> std::sync::Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Handle {
        Handle(shared)
    }

    pub(crate) fn payloads_kept_max(&self) -> usize {
        self.0.tools.payloads_kept_max
    }

    /// What has become of a task when it is accepted.
    pub fn durability(&self) -> Durability {
        self.0.durability
    }

    /// Accepts a task for the handler of its kind, or for a worker. It is kept, as far as the store keeps
    /// anything, when this returns.
    pub async fn submit(&self, task: Task) -> Result<TaskHandle, Error> {
        let (mut spec, payload) = task.for_handler()?;
        let mut payloads = Vec::new();
        if let Some(payload) = payload {
            let blob = self.new_blob();
            spec.payload = Some(blob);
            payloads.push((blob, payload));
        }
        self.accept(Command::Submit { task: self.new_id(), spec }, payloads).await
    }

    pub(crate) async fn accept(
        &self,
        command: Command,
        payloads: Vec<(BlobId, Bytes)>,
    ) -> Result<TaskHandle, Error> {
        let (answer, accepted) = oneshot::channel();
        let mut ask = Ask::new(command, Wants::Task(answer));
        ask.payloads = payloads;
        self.send(ask).await?;
        let accepted = accepted.await.map_err(|_| Error::Closed)??;
        Ok(TaskHandle::new(accepted, self.clone()))
    }

    /// The tool lanes of a conversation.
    pub fn tools(&self, session: impl Into<Arc<str>>) -> Tools {
        Tools::new(self.clone(), session.into())
    }

    /// How often something was refused by this process, by lane and reason.
    pub fn refusals(&self) -> Vec<Refusals> {
        self.0.tools.refusals.lock().unwrap_or_else(PoisonError::into_inner).list()
    }

    /// How often this process appended to its log, and how often that was in vain.
    pub fn appends(&self) -> Appends {
        self.0.tools.appends.read()
    }

    /// Says whether somebody here wants to hear what runs at other engines that share the log say
    /// ([`Update::Delta`](crate::Update), [`Update::Progress`](crate::Update)): else only what is said here is heard. It costs
    /// a connection to the engine and, at each of the others, nothing.
    pub fn overhear(&self, is_wanted: bool) {
        if let Some(voice) = &self.0.tools.voice {
            voice.overhear(is_wanted);
        }
    }

    /// Everything that happens from now on and fits the filter.
    pub fn subscribe(&self, filter: Filter) -> Updates {
        self.0.tools.watchers.subscribe(filter, self.0.updates_max)
    }

    /// Waits for the end of a task that is live or remembered; [`NotLive`](laneway_core::Rejection::NotLive) if
    /// it is neither.
    pub async fn wait_for(&self, task: TaskId) -> Result<Ending, Error> {
        let (answer, waiter) = oneshot::channel();
        self.call(Call::Look(Look::End { task, answer })).await?;
        match waiter.await.map_err(|_| Error::Closed)?? {
            Some(waiter) => waiter.await.map(|ending| *ending).map_err(|_| Error::Closed),
            None => self.ending_of(task).await,
        }
    }

    /// How a task that is over and remembered ended.
    pub async fn ending_of(&self, task: TaskId) -> Result<Ending, Error> {
        let found = self.journal()?.finished(task).await?;
        let not_live = Error::Rejected(laneway_core::Rejection::NotLive { task });
        found.map(|(finished, result)| Ending::of_finished(finished, result)).ok_or(not_live)
    }

    /// A payload, as JSON.
    pub async fn payload(&self, payload: BlobId) -> Result<Option<Bytes>, Error> {
        Ok(self.journal()?.payload(payload).await?)
    }

    /// Takes nothing new, lets what runs here finish for as long as `patience`, then stops it. What waits is kept
    /// where the store keeps it; else those who wait are told [`Error::Closed`]. Returns when everything has
    /// ended and the store is closed.
    pub async fn shutdown(&self, patience: Duration) {
        let (done, closed) = oneshot::channel();
        let deadline = Instant::now() + patience;
        if self.call(Call::Shutdown { deadline, done }).await.is_ok() {
            // An answer that never comes means that the loop has ended too.
            drop(closed.await);
        }
    }

    /// Looks at the state. Waits for decisions that are being kept.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, told) = oneshot::channel();
        let look = Look::State(Box::new(move |lanes: Result<&Scheduler, Error>| {
            // Whoever does not listen any more need not be told.
            drop(answer.send(lanes.map(question)));
        }));
        self.call(Call::Look(look)).await?;
        told.await.map_err(|_| Error::Closed)?
    }

    /// Has a command decided and kept, and returns the answer: the way for whoever makes commands of its own.
    pub async fn ask(&self, command: Command) -> Result<Reply, Error> {
        let (answer, reply) = oneshot::channel();
        self.send(Ask::new(command, Wants::Reply(answer))).await?;
        reply.await.map_err(|_| Error::Closed)?
    }

    pub(crate) async fn send(&self, ask: Ask) -> Result<(), Error> {
        self.call(Call::Ask(ask)).await
    }

    pub(crate) async fn call(&self, call: Call) -> Result<(), Error> {
        self.0.mailbox.call(call).await
    }

    pub(crate) fn report(&self, report: Report) {
        self.0.mailbox.report(report);
    }

    /// Reports from inside the engine, which is looked at again before it is left.
    pub(crate) fn report_later(&self, report: Report) {
        self.0.mailbox.report_later(report);
    }

    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        self.0.tools.journal().ok_or(Error::Closed)
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.0.tools.watchers
    }

    pub(crate) fn offered(&self) -> Notified<'_> {
        self.0.tools.offers.notified()
    }

    /// An id that no task had before: see [`submit_spec`](Handle::submit_spec).
    pub fn new_id(&self) -> TaskId {
        self.0.tools.ids.task()
    }

    pub(crate) fn new_blob(&self) -> BlobId {
        self.0.tools.ids.blob()
    }
}

impl Toolbox {
    pub(crate) fn count_refusal(&self, error: &Error, scheduler: &Scheduler) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).add(error, scheduler);
    }

    pub(crate) fn journal(&self) -> Option<Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
