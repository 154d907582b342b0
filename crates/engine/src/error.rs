//! Errors: refused, unavailable, ended otherwise.

use std::fmt;
use std::sync::Arc;

use laneway_core::{CancelReason, End, LaneName, Name, NameError, Rejection};
use laneway_store::StoreError;

/// Why something that was asked of the engine was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Understood and refused; nothing changed.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// A lane, kind, group or worker cannot be called that.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A task that runs a closure or holds a slot cannot have this; only one of a named handler that does the work can.
    #[error("only a task of a named handler that does the work itself can have {0}")]
    NotForClosures(&'static str),
    /// Nothing here runs tasks of this kind, and their lane hands nothing to workers.
    #[error("nothing here runs tasks of kind {kind}")]
    NoHandler {
        /// The kind.
        kind: Name,
    },
    /// The store holds tasks of these kinds, and nothing here runs them.
    #[error(
        "the store holds tasks of kind {}, which nothing here runs; open it with their handlers",
        list(kinds)
    )]
    NoHandlers {
        /// The kinds.
        kinds: Vec<Name>,
    },
    /// The lane hands its work to workers, and a closure cannot leave this program.
    #[error("lane {lane} hands its work to workers, so nothing runs here in it")]
    ExternalLane {
        /// The lane.
        lane: LaneName,
    },
    /// A payload or a result cannot be written or read as JSON.
    #[error("not readable as JSON: {0}")]
    Json(Arc<str>),
    /// The store cannot be reached. Whether it was done is not known; asking again under an idempotency key is safe.
    #[error(transparent)]
    Unavailable(StoreError),
    /// The store holds something that cannot be read, so that nothing more is decided.
    #[error(transparent)]
    Broken(StoreError),
    /// The engine was shut down.
    #[error("the engine was shut down")]
    Closed,
}

impl Error {
    /// A stable name of the kind of error, the same on every surface.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Rejected(rejection) => rejection.code(),
            Error::Name(_)
            | Error::NotForClosures(_)
            | Error::NoHandler { .. }
            | Error::NoHandlers { .. }
            | Error::ExternalLane { .. }
            | Error::Json(_) => "INVALID",
            Error::Unavailable(error) | Error::Broken(error) => error.kind().code(),
            Error::Closed => "DRAINING",
        }
    }
}

fn list(kinds: &[Name]) -> String {
    kinds.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error.kind() {
            laneway_store::ErrorKind::Corrupt => Error::Broken(error),
            _ => Error::Unavailable(error),
        }
    }
}

/// Why a caller that waited for work got no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was not accepted, or its end is unknown.
    #[error(transparent)]
    Refused(#[from] Error),
    /// It was accepted and came to another end than completion.
    #[error("{}", describe(.0))]
    Ended(End),
}

impl RunError {
    /// A stable name of the kind of error, the same on every surface.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::Refused(error) => error.code(),
            RunError::Ended(End::Completed) => "COMPLETED",
            RunError::Ended(End::Failed { .. }) => "RUN_FAILED",
            RunError::Ended(End::TimedOut) => "RUN_TIMED_OUT",
            RunError::Ended(End::Cancelled { .. }) => "CANCELLED",
            RunError::Ended(End::Expired) => "EXPIRED",
            RunError::Ended(End::WaitTimeout) => "WAIT_TIMEOUT",
            RunError::Ended(End::Lost) => "LOST",
        }
    }
}

fn describe(end: &End) -> String {
    match end {
        End::Completed => "completed".to_owned(),
        End::Failed { error } => format!("failed: {error}"),
        End::TimedOut => "took too long".to_owned(),
        End::Cancelled { reason } => format!("cancelled: {}", because(*reason)),
        End::Expired => "its deadline passed while it waited".to_owned(),
        End::WaitTimeout => "waited for longer than it was allowed to".to_owned(),
        End::Lost => "lost: what ran it is gone, and it may not run again".to_owned(),
    }
}

fn because(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Caller => "its caller cancelled it",
        CancelReason::Cleared => "the line was cleared",
        CancelReason::Released => "its slot was taken away",
        CancelReason::Parent => "the task that asked for it ended",
        CancelReason::Interrupted => "a newer message interrupted it",
        CancelReason::Steered => "a message for the turn came first",
        CancelReason::AgentRemoved => "its agent was removed",
    }
}

/// Why an attempt of a handler did not succeed. Any error becomes one with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub error: String,
    /// Whether another attempt could help, if the lane allows one.
    pub retryable: bool,
    /// What it produced all the same, such as the output of a command that failed.
    pub output: Option<serde_json::Value>,
}

impl Failure {
    /// Another attempt could help.
    pub fn new(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), retryable: true, output: None }
    }

    /// No other attempt could help: do not retry.
    pub fn fatal(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), retryable: false, output: None }
    }

    /// Keeps what the attempt produced all the same.
    pub fn with_output(self, output: impl Into<serde_json::Value>) -> Failure {
        Failure { output: Some(output.into()), ..self }
    }

    /// The output as bytes.
    pub(crate) fn output_bytes(&self) -> Option<bytes::Bytes> {
        // Any JSON value can be written.
        self.output.as_ref().and_then(|output| serde_json::to_vec(output).ok()).map(bytes::Bytes::from)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error)
    }
}
