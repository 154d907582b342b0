//! What an error of Redis means to the caller.

use laneway_store::{Damage, StoreError};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// An error of Redis: an answer that makes no sense stops the caller, everything else (a broken connection, a full
/// memory, a failover) may pass.
pub(crate) fn from_redis(store: &str, error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::UnexpectedReturnType => unreadable(store, error),
        ErrorKind::Extension if error.code() == Some("WRONGTYPE") => unreadable(store, error),
        ErrorKind::Extension if error.code() == Some("OOM") => {
            unavailable(store, &format!("there is no room left ({error})"))
        }
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            unavailable(store, &"it is a replica now, and takes no writes")
        }
        _ => unavailable(store, error),
    }
}

/// Whether the connection is of no use any more.
pub(crate) fn breaks_connection(error: &RedisError) -> bool {
    let is_elsewhere = matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::Moved | ServerErrorKind::MasterDown)
    );
    is_elsewhere || error.is_io_error() || error.is_unrecoverable_error()
}

pub(crate) fn unavailable(store: &str, reason: &dyn ToString) -> StoreError {
    StoreError::Unavailable { store: store.into(), reason: reason.to_string().into() }
}

pub(crate) fn unfit(store: &str, reason: &dyn ToString) -> StoreError {
    StoreError::Unfit { store: store.into(), reason: reason.to_string().into() }
}

pub(crate) fn unreadable(store: &str, reason: &dyn ToString) -> StoreError {
    let damage = Damage::Unreadable { reason: reason.to_string().into() };
    StoreError::Corrupt { store: store.into(), record: None, damage }
}

/// What a caller is told when the runtime that should do it has gone.
pub(crate) fn closed(store: &str) -> StoreError {
    unavailable(store, &"it was closed")
}
