//! What callers tell the loop, and what they want to hear.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, Command, End, Fence, Outcome, Reply, Scheduler, SessionCommand, TaskId};
use smallvec::SmallVec;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::{Error, RunError};
use crate::handle::workers::Claim;
use crate::runs::slot::Slot;

/// How a task ended and what it produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Which end.
    pub end: End,
    /// How many attempts there were.
    pub attempts: u32,
    /// What it produced, as JSON.
    pub result: Option<Bytes>,
}

/// Told over the bounded channel: whoever asks waits for room.
pub(crate) enum Call {
    Ask(Box<Ask>),
    Look(Look),
    Shutdown { deadline: Instant, done: oneshot::Sender<()> },
}

/// A question about the state.
pub(crate) type Look = Box<dyn FnOnce(Result<&Scheduler, Error>) + Send>;

/// Told over a channel without a bound of its own, because `Drop` cannot wait for room. There is at most one
/// report of each attempt and of each handle, so that what is alive bounds it.
pub(crate) enum Report {
    Finish {
        task: TaskId,
        fence: Fence,
        outcome: Outcome,
        result: Option<Bytes>,
        /// What it was to do, if that is to be remembered.
        work: Option<Bytes>,
    },
    /// Somebody who waited for a slot, or for a task that he wanted to be cancelled without him, has gone.
    Leave { task: TaskId },
}

/// A command with all that belongs to it.
pub(crate) struct Ask {
    pub(crate) command: Command,
    /// The payloads that the command refers to.
    pub(crate) payloads: Vec<(BlobId, Bytes)>,
    /// What the attempt that this ends produced.
    pub(crate) result: Option<Bytes>,
    /// What it was to do, if that is to be remembered.
    pub(crate) work: Option<Bytes>,
    pub(crate) wants: Wants,
}

/// Who wants to hear what of a command.
pub(crate) enum Wants {
    /// Nobody; it is done again after an outage.
    Nothing,
    /// Nobody, but somebody may wait for this task, which the log has lost.
    PutBack(TaskId),
    Reply(oneshot::Sender<Result<Reply, Error>>),
    Slot(oneshot::Sender<Result<Slot, RunError>>),
    Task(oneshot::Sender<Result<Accepted, Error>>),
    /// The same for whoever does not wait for the end.
    Acceptance(oneshot::Sender<Result<Accepted, Error>>),
    Batch(oneshot::Sender<Result<Vec<Waiter>, Error>>),
    Claim(oneshot::Sender<Result<Vec<Claim>, Error>>),
}

/// A task that was accepted, or that an earlier request under the same key had brought.
pub(crate) struct Accepted {
    pub(crate) task: TaskId,
    pub(crate) joined: bool,
    /// Tells of the end; `None`: it has ended already, or nobody waits for that.
    pub(crate) waiter: Option<Waiter>,
    pub(crate) standing: crate::handle::submission::Standing,
}

/// Somebody who waits for the end of a task. Boxed, because there is room for it from the acceptance on, and a million tasks
/// may wait.
pub(crate) type Waiter = oneshot::Receiver<Box<Ending>>;

/// Those who wait for the end of one task: most often one.
pub(crate) type Waiters = SmallVec<[oneshot::Sender<Box<Ending>>; 1]>;

impl Ask {
    pub(crate) fn new(command: Command, wants: Wants) -> Ask {
        Ask { command, payloads: Vec::new(), result: None, work: None, wants }
    }

    /// Whether this would bring new work.
    pub(crate) fn is_new_work(&self) -> bool {
        match &self.command {
            Command::Submit { .. }
            | Command::SubmitBatch(_)
            | Command::Redrive { .. }
            | Command::Claim { .. }
            | Command::ClaimThese { .. } => true,
            Command::Session(command) => {
                matches!(**command, SessionCommand::Send(_) | SessionCommand::Resend { .. })
            }
            _ => false,
        }
    }
}

impl Call {
    /// Whether something may have to be kept because of it.
    pub(crate) fn may_append(&self) -> bool {
        !matches!(self, Call::Look(_))
    }
}

impl Wants {
    pub(crate) fn refuse(self, error: Error) {
        // Whoever does not listen any more need not be told.
        let _gone = match self {
            Wants::Nothing | Wants::PutBack(_) => Ok(()),
            Wants::Reply(answer) => answer.send(Err(error)).map_err(drop),
            Wants::Slot(answer) => answer.send(Err(error.into())).map_err(drop),
            Wants::Task(answer) | Wants::Acceptance(answer) => answer.send(Err(error)).map_err(drop),
            Wants::Batch(answer) => answer.send(Err(error)).map_err(drop),
            Wants::Claim(answer) => answer.send(Err(error)).map_err(drop),
        };
    }
}

impl Ending {
    /// The end as a result: what it produced, or why it produced nothing.
    pub fn into_result(self) -> Result<serde_json::Value, RunError> {
        match (self.end, self.result) {
            (End::Completed, None) => Ok(serde_json::Value::Null),
            (End::Completed, Some(result)) => serde_json::from_slice(&result).map_err(|error| {
                let reason: Arc<str> = error.to_string().into();
                RunError::Refused(Error::Json(reason))
            }),
            (end, _) => Err(RunError::Ended(end)),
        }
    }
}
