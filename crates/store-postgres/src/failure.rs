//! What an error of Postgres means to the caller.

use laneway_store::{Damage, StoreError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// An error of Postgres: tables that are damaged or gone stop the caller, everything else (a broken connection, a full
/// disk, a failover) may pass.
pub(crate) fn from_postgres(store: &str, error: &Error) -> StoreError {
    let Some(database) = error.as_db_error() else {
        let said = chain(error);
        return match tls_hint(&said) {
            Some(hint) => unavailable(store, &format!("{said}; {hint}")),
            None => unavailable(store, &said),
        };
    };
    match *database.code() {
        SqlState::DATA_CORRUPTED
        | SqlState::INDEX_CORRUPTED
        | SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN => unreadable(store, &database.message()),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if database.message().contains("no encryption") => {
            let hint = "if it asks for TLS, add sslmode=verify-full (or require) to its address";
            unavailable(store, &format!("{}; {hint}", database.message()))
        }
        SqlState::DISK_FULL => unavailable(store, &format!("there is no room left ({})", database.message())),
        _ => unavailable(store, &database.message()),
    }
}

/// What would be right, where TLS did not come about. The driver has no code for these.
fn tls_hint(said: &str) -> Option<&'static str> {
    if said.contains("invalid peer certificate") {
        Some(
            "if an authority of your own signed it, name that with sslrootcert=/path/to/ca.pem; nothing was sent \
             without TLS",
        )
    } else if said.contains("does not support TLS") {
        Some("turn on ssl there, or, on a network that you trust, use sslmode=prefer")
    } else {
        None
    }
}

/// Whether the connection is of no use any more.
pub(crate) fn breaks_connection(error: &Error) -> bool {
    match error.code() {
        // Not from the database: the connection itself.
        None => true,
        Some(code) => {
            *code == SqlState::READ_ONLY_SQL_TRANSACTION
                || code.code().starts_with("57P")
                || code.code().starts_with("08")
        }
    }
}

/// The error with its causes, of which Postgres's own text names only the last.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    text
}

pub(crate) fn unavailable(store: &str, reason: &dyn ToString) -> StoreError {
    StoreError::Unavailable { store: store.into(), reason: reason.to_string().into() }
}

pub(crate) fn unfit(store: &str, reason: &dyn ToString) -> StoreError {
    StoreError::Unfit { store: store.into(), reason: reason.to_string().into() }
}

pub(crate) fn unreadable(store: &str, reason: &dyn ToString) -> StoreError {
    damaged(store, Damage::Unreadable { reason: reason.to_string().into() })
}

pub(crate) fn damaged(store: &str, damage: Damage) -> StoreError {
    StoreError::Corrupt { store: store.into(), record: None, damage }
}

/// What a caller is told when the runtime that should do it has gone.
pub(crate) fn closed(store: &str) -> StoreError {
    unavailable(store, &"it was closed")
}
