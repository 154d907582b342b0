//! How a store is opened.

use std::time::Duration;

/// How to open a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which of the logs in this database: each namespace is a schema of its own. 1 to 40 bytes; characters other than
    /// small letters, digits and `_` take three. Default `default`.
    pub namespace: String,
    /// How long to wait for an answer before Postgres counts as unavailable. Default 5 s.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { namespace: "default".to_owned(), timeout: Duration::from_secs(5) }
    }
}
