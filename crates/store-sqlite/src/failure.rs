//! What an error of SQLite or of the file system means to the caller.

use std::io;
use std::path::Path;

use laneway_store::{Damage, StoreError};
use rusqlite::ErrorCode;

/// An error of SQLite: a damaged file stops the caller, everything else (a full disk, a broken one) may pass.
pub(crate) fn from_sqlite(store: &str, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => unreadable(store, error),
        Some(ErrorCode::DiskFull) => unavailable(store, &format!("there is no room left ({error})")),
        Some(_) => unavailable(store, error),
        // Not from the engine: a value of the wrong type or length in a row.
        None => unreadable(store, error),
    }
}

/// An error of the file system, at this path.
pub(crate) fn from_io(store: &str, path: &Path, error: &io::Error) -> StoreError {
    unavailable(store, &format!("{}: {error}", path.display()))
}

pub(crate) fn unavailable(store: &str, reason: &dyn ToString) -> StoreError {
    StoreError::Unavailable { store: store.into(), reason: reason.to_string().into() }
}

pub(crate) fn unreadable(store: &str, reason: &dyn ToString) -> StoreError {
    damaged(store, Damage::Unreadable { reason: reason.to_string().into() })
}

pub(crate) fn damaged(store: &str, damage: Damage) -> StoreError {
    StoreError::Corrupt { store: store.into(), record: None, damage }
}

/// What a caller is told when the thread that should do it has gone.
pub(crate) fn closed(store: &str) -> StoreError {
    unavailable(store, &"it was closed")
}
