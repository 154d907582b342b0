//! What can go wrong: refused, unavailable, ended otherwise.

use std::fmt;
use std::sync::Arc;

use laneway_core::{CancelReason, End, LaneName, Name, NameError, Rejection};
use laneway_store::StoreError;

/// Why something that was asked of the engine was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Understood and refused; nothing changed.
    Rejected(Rejection),
    /// A lane, kind, group or worker cannot be called that.
    Name(NameError),
    /// A task that runs a closure or holds a slot cannot have this; only one of a named handler that does the work can.
    NotForClosures(&'static str),
    /// Nothing here runs tasks of this kind, and their lane hands nothing to workers.
    NoHandler {
        /// The kind.
        kind: Name,
    },
    /// The store holds tasks of these kinds, and nothing here runs them.
    NoHandlers {
        /// The kinds.
        kinds: Vec<Name>,
    },
    /// The lane hands its work to workers, and a closure cannot leave this program.
    ExternalLane {
        /// The lane.
        lane: LaneName,
    },
    /// A payload or a result cannot be written or read as JSON.
    Json(Arc<str>),
    /// The store cannot be reached. Whether it was done is not known; asking again under an idempotency key is safe.
    Unavailable(StoreError),
    /// The store holds something that cannot be read, so that nothing more is decided.
    Broken(StoreError),
    /// The engine was shut down.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Rejected(rejection) => rejection.fmt(f),
            Error::Name(error) => error.fmt(f),
            Error::NotForClosures(what) => {
                write!(f, "only a task of a named handler that does the work itself can have {what}")
            }
            Error::NoHandler { kind } => write!(f, "nothing here runs tasks of kind {kind}"),
            Error::NoHandlers { kinds } => {
                let kinds: Vec<&str> = kinds.iter().map(Name::as_str).collect();
                let kinds = kinds.join(", ");
                write!(
                    f,
                    "the store holds tasks of kind {kinds}, which nothing here runs; open it with their handlers"
                )
            }
            Error::ExternalLane { lane } => {
                write!(f, "lane {lane} hands its work to workers, so nothing runs here in it")
            }
            Error::Json(reason) => write!(f, "not readable as JSON: {reason}"),
            Error::Unavailable(error) | Error::Broken(error) => error.fmt(f),
            Error::Closed => write!(f, "the engine was shut down"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Error {
        Error::Rejected(rejection)
    }
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Error {
        Error::Name(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error.kind() {
            laneway_store::ErrorKind::Corrupt => Error::Broken(error),
            _ => Error::Unavailable(error),
        }
    }
}

/// Why somebody who waited for work to be done got no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// It was not accepted, or nobody can say what became of it.
    Refused(Error),
    /// It was accepted and came to another end than completion.
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

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Refused(error) => error.fmt(f),
            RunError::Ended(end) => match end {
                End::Completed => write!(f, "completed"),
                End::Failed { error } => write!(f, "failed: {error}"),
                End::TimedOut => write!(f, "took too long"),
                End::Cancelled { reason } => write!(f, "cancelled: {}", because(*reason)),
                End::Expired => write!(f, "its deadline passed while it waited"),
                End::WaitTimeout => write!(f, "waited for longer than it was allowed to"),
                End::Lost => write!(f, "lost: whoever ran it is gone, and it may not run again"),
            },
        }
    }
}

fn because(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Caller => "its caller did not want it any more",
        CancelReason::Cleared => "the line was cleared",
        CancelReason::Released => "its slot was taken away",
        CancelReason::Parent => "the task that asked for it ended",
        CancelReason::Interrupted => "a newer message interrupted it",
        CancelReason::Steered => "a message for the turn came first",
    }
}

impl std::error::Error for RunError {}

impl From<Error> for RunError {
    fn from(error: Error) -> RunError {
        RunError::Refused(error)
    }
}

/// Why an attempt of a handler did not succeed. Any error becomes one with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub error: String,
    /// Whether another attempt could help, if the lane allows one.
    pub retryable: bool,
}

impl Failure {
    /// Another attempt could help.
    pub fn new(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), retryable: true }
    }

    /// No other attempt could help: do not retry.
    pub fn fatal(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), retryable: false }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::new(error)
    }
}
