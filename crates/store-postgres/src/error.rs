//! What an error of Postgres means to the caller.

use laneway_store::StoreError;
use laneway_store_remote::Verdict;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Tables that are damaged or gone stop the caller. Everything else (a broken connection, a full disk, a failover) may
/// pass.
pub(crate) fn from_postgres(store: &str, error: &Error) -> StoreError {
    let Some(database) = error.as_db_error() else {
        let text = chain(error);
        return match tls_hint(&text) {
            Some(hint) => StoreError::unavailable(store, format!("{text}; {hint}")),
            None => StoreError::unavailable(store, text),
        };
    };
    let message = database.message();
    match *database.code() {
        SqlState::DATA_CORRUPTED
        | SqlState::INDEX_CORRUPTED
        | SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN => StoreError::unreadable(store, message),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if message.contains("no encryption") => {
            let hint = "if it asks for TLS, add sslmode=verify-full (or require) to its address";
            StoreError::unavailable(store, format!("{message}; {hint}"))
        }
        // Of PgBouncer, which has no code of its own for it.
        _ if message.contains("statement pooling") => {
            let reason = "it is a pooler in statement mode, which has no transactions; set pool_mode to transaction or \
                          session";
            StoreError::unfit(store, reason)
        }
        SqlState::DISK_FULL => StoreError::unavailable(store, format!("there is no room left ({message})")),
        _ => StoreError::unavailable(store, message),
    }
}

/// What would help where there is no TLS connection. The driver has no codes for these errors.
fn tls_hint(text: &str) -> Option<&'static str> {
    if text.contains("invalid peer certificate") {
        Some(
            "if an authority of your own signed it, name that with sslrootcert=/path/to/ca.pem; nothing was sent \
             without TLS",
        )
    } else if text.contains("does not support TLS") {
        Some("turn on ssl there, or, on a network that you trust, use sslmode=prefer")
    } else {
        None
    }
}

/// What an error says about the connection. One without a code is not from the database.
pub(crate) fn verdict(error: &Error) -> Verdict {
    let is_broken = error.code().is_none_or(|code| {
        *code == SqlState::READ_ONLY_SQL_TRANSACTION
            || code.code().starts_with("57P")
            || code.code().starts_with("08")
    });
    if is_broken { Verdict::Broken } else { Verdict::Works }
}

/// The error with its causes: its own text names only the last.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let detail = next.to_string();
        if !text.contains(&detail) {
            text = format!("{text}: {detail}");
        }
        cause = next.source();
    }
    text
}
