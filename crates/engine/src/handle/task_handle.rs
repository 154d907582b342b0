//! A task that was accepted, to wait for or to cancel.

use laneway_core::{CancelReason, Command, Reply, TaskId};
use serde_json::Value;

use crate::driver::mailbox::{Accepted, Ending, Report, Waiter};
use crate::error::{Error, RunError};
use crate::handle::Handle;
use crate::handle::submission::Standing;

/// What becomes of a task when its handle is dropped before it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrop {
    /// It goes on.
    #[default]
    Detach,
    /// This caller leaves; when the last caller under the same key has left, the task is cancelled.
    Cancel,
}

/// A task that was accepted.
#[must_use = "wait for the task, or `detach` it"]
pub struct TaskHandle {
    id: TaskId,
    joined: bool,
    waiter: Option<Waiter>,
    on_drop: OnDrop,
    standing: Standing,
    handle: Handle,
}

impl TaskHandle {
    pub(super) fn new(accepted: Accepted, handle: Handle) -> TaskHandle {
        let Accepted { task, joined, waiter, standing } = accepted;
        TaskHandle { id: task, joined, waiter, on_drop: OnDrop::Detach, standing, handle }
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Whether an earlier request under the same key had brought it.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// How it stood when it was accepted, together with all that was decided at the same time.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Says what becomes of the task when this is dropped. Default: it goes on.
    pub fn on_drop(mut self, on_drop: OnDrop) -> TaskHandle {
        self.on_drop = on_drop;
        self
    }

    /// Lets the task go on without this handle.
    pub fn detach(mut self) {
        self.on_drop = OnDrop::Detach;
    }

    /// Waits for the end and returns what it produced, or why it produced nothing.
    pub async fn wait(self) -> Result<Value, RunError> {
        self.ending().await?.into_result()
    }

    /// Waits for the end, also if it is a failure.
    pub async fn ending(mut self) -> Result<Ending, Error> {
        self.ended().await
    }

    /// The same for a caller that may stop waiting.
    pub async fn ended(&mut self) -> Result<Ending, Error> {
        let ending = match &mut self.waiter {
            Some(waiter) => waiter.await.map(|ending| *ending).map_err(|_| Error::Closed),
            None => self.handle.ending_of(self.id).await,
        };
        // The answer comes once; later calls look it up.
        self.waiter = None;
        self.on_drop = OnDrop::Detach;
        ending
    }

    /// Cancels the task: a waiting one leaves the line, a running one gets a stop signal.
    pub async fn cancel(&self) -> Result<Reply, Error> {
        self.handle.ask(Command::Cancel { task: self.id, reason: CancelReason::Caller }).await
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Cancel {
            self.handle.report(Report::Leave { task: self.id });
        }
    }
}
