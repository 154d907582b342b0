//! What a handler knows of its attempt, and what it can do.

use std::sync::Arc;

use laneway_core::{Fence, LaneName, Scheduler, TaskId, Timestamp, TurnMessage};

use crate::error::{Error, RunError};
use crate::events::subscription::Filter;
use crate::events::update::Update;
use crate::handle::Handle;
use crate::handle::task::Task;
use crate::handle::task_handle::TaskHandle;
use crate::runs::stop::StopSignal;
use crate::runs::tools::Tools;
use crate::runs::turn_payload::SteeringMessage;

/// One attempt of a task, as its handler sees it.
#[derive(Clone)]
pub struct Context {
    pub(crate) task: TaskId,
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    pub(crate) timeout_at: Option<Timestamp>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) lanes: Arc<[LaneName]>,
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) stop: StopSignal,
    pub(crate) handle: Handle,
    /// A call of a tool that runs directly, outside any task, cannot be a parent.
    pub(crate) is_task: bool,
}

impl Context {
    /// The task.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Larger than that of any earlier attempt, so that other systems can refuse an attempt that lost its lease.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Which attempt, counted from one.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When this attempt will have taken too long.
    pub fn timeout_at(&self) -> Option<Timestamp> {
        self.timeout_at
    }

    /// The task's deadline, its parents' counted in.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The lanes that the task named, the home lane first.
    pub fn lanes(&self) -> &[LaneName] {
        &self.lanes
    }

    /// The trace that the task belongs to.
    pub fn trace(&self) -> Option<&str> {
        self.trace.as_deref()
    }

    /// Tells when to stop: at a cancellation, a timeout, a shutdown. A handler that goes on is dropped after a
    /// short while.
    pub fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// The engine, for everything else.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Publishes how far it is. Not stored.
    pub fn progress(&self, value: serde_json::Value) {
        self.report(None, value);
    }

    /// Publishes an event of its own under a name. Not stored.
    pub fn event(&self, name: impl Into<Arc<str>>, value: serde_json::Value) {
        self.report(Some(name.into()), value);
    }

    fn report(&self, name: Option<Arc<str>>, value: serde_json::Value) {
        let (task, fence, value) = (self.task, self.fence, Arc::new(value));
        self.tell(&Update::Progress { task, fence, name, value });
    }

    /// Publishes a piece of the text that it produces. Not stored.
    pub fn delta(&self, text: impl Into<Arc<str>>) {
        self.tell(&Update::Delta { task: self.task, fence: self.fence, text: text.into() });
    }

    fn tell(&self, update: &Update) {
        self.handle.hub().publish_output(update, &self.lanes);
        if let Some(broadcast) = self.handle.resources().broadcast.as_ref().filter(|_| self.is_task) {
            broadcast.publish_of_run(update, &self.lanes);
        }
    }

    /// Asks for another task and may wait for it: meanwhile it lends the child the slots of lanes that both name,
    /// and if this task ends first the child is cancelled.
    pub async fn submit(&self, task: Task) -> Result<TaskHandle, Error> {
        self.handle.submit(self.child(task, false)).await
    }

    /// Asks for another task that goes its own way.
    pub async fn submit_detached(&self, task: Task) -> Result<TaskHandle, Error> {
        self.handle.submit(self.child(task, true)).await
    }

    /// Runs a future as a child of this task.
    pub async fn run<F: Future>(&self, task: Task, future: F) -> Result<F::Output, RunError> {
        self.handle.run(self.child(task, false), future).await
    }

    fn child(&self, task: Task, detached: bool) -> Task {
        if self.is_task { task.parent(self.task, detached) } else { task }
    }

    /// Says whether this turn takes steering from now on: messages of that mode then come into it. What was accepted
    /// for it and not taken when it says no waits for a turn of its own.
    pub async fn set_steering(&self, open: bool) -> Result<(), Error> {
        self.handle.set_steering(self.task, self.fence, open).await
    }

    /// Takes the messages that were accepted for this turn: to be called where the attempt can react to them, between two
    /// tool calls, say. A call that is dropped loses nothing: what it took, the next one returns.
    pub async fn take_steering(&self) -> Result<Vec<SteeringMessage>, Error> {
        let (task, fence) = (self.task, self.fence);
        let query =
            move |lanes: &Scheduler| (lanes.offered_steering(task, fence), lanes.taken_steering(task, fence));
        let (offered, taken) = self.handle.read(query).await?;
        // A call before this one may have been dropped when its messages were taken already.
        let mut remote_batches = std::mem::take(&mut *self.stop.on_the_way());
        remote_batches.retain(|message| taken.iter().any(|id| id.to_string() == message.id));
        if !remote_batches.is_empty() {
            return Ok(remote_batches);
        }
        // Asked also with nothing to take: an attempt that lost its lease gets an error.
        let ids = offered.iter().map(|message| message.id).collect();
        *self.stop.on_the_way() = offered.iter().map(SteeringMessage::from).collect();
        let mut taken = self.handle.take_some(task, fence, Some(ids)).await?;
        // A clone of this context may have returned some of them meanwhile.
        let on_the_way = std::mem::take(&mut *self.stop.on_the_way());
        taken.retain(|message| on_the_way.iter().any(|known| known.id == message.id));
        Ok(taken)
    }

    /// Waits for messages for this turn and takes them. Only a turn that takes steering gets any. May be dropped at any
    /// time, in a `select!`, say: nothing is lost with it.
    pub async fn next_steering(&self) -> Result<Vec<SteeringMessage>, Error> {
        let mut updates = self.handle.subscribe(Filter::task(self.task));
        loop {
            let taken = self.take_steering().await?;
            if !taken.is_empty() {
                return Ok(taken);
            }
            if updates.next().await.is_none() {
                return Err(Error::Closed);
            }
        }
    }

    /// Waits for messages for this turn without taking them, so that none is lost if they cannot be passed on. They stay on
    /// offer until [`confirm_steering`](Context::confirm_steering) takes them.
    pub async fn offered_steering(&self) -> Result<Vec<TurnMessage>, Error> {
        let mut updates = self.handle.subscribe(Filter::task(self.task));
        let (task, fence) = (self.task, self.fence);
        loop {
            let offered = self.handle.read(move |lanes| lanes.offered_steering(task, fence)).await?;
            if !offered.is_empty() {
                return Ok(offered);
            }
            if updates.next().await.is_none() {
                return Err(Error::Closed);
            }
        }
    }

    /// Takes messages that were offered to this turn.
    pub async fn confirm_steering(&self, offered: &[TurnMessage]) -> Result<(), Error> {
        let ids = offered.iter().map(|message| message.id).collect();
        self.handle.take_some(self.task, self.fence, Some(ids)).await.map(drop)
    }

    /// The tool lanes of a session; their calls are children of this task.
    pub fn tools(&self, session: impl Into<Arc<str>>) -> Tools {
        self.handle.tools(session).parent(self.clone())
    }
}
