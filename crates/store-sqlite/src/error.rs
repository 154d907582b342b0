//! What an error of SQLite or of the file system means to the caller.

use std::io;
use std::path::Path;

use laneway_store::StoreError;
use rusqlite::ErrorCode;

/// A damaged file stops the caller. Everything else (a full disk, a broken one) may pass.
pub(crate) fn from_sqlite(store: &str, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::unreadable(store, error),
        Some(ErrorCode::DiskFull) => {
            StoreError::unavailable(store, format!("there is no room left ({error})"))
        }
        Some(_) => StoreError::unavailable(store, error),
        // Not from SQLite: a value of the wrong type or length in a row.
        None => StoreError::unreadable(store, error),
    }
}

/// An error of the file system, at this path.
pub(crate) fn from_io(store: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::unavailable(store, format!("{}: {error}", path.display()))
}
