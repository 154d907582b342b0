//! How a store fails: try later, stop, or catch up.

use std::sync::Arc;

use thiserror::Error;

use crate::frame::Record;
use crate::types::{Head, Version};

/// Why a store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The backend cannot be reached, is full or is too busy. A write may have happened nevertheless.
    #[error("store {store} is unavailable: {reason}")]
    Unavailable {
        /// Which store.
        store: Arc<str>,
        /// What it said.
        reason: Arc<str>,
    },
    /// Another process holds a store that only one may have.
    #[error("store {store} is in use by {}", pid.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    InUse {
        /// Which store.
        store: Arc<str>,
        /// Which process, where that is known.
        pid: Option<u32>,
    },
    /// The backend would not keep its data, or lacks something that a store needs.
    #[error("store {store} cannot be used: {reason}")]
    Unfit {
        /// Which store.
        store: Arc<str>,
        /// What is wrong with it, and what would be right.
        reason: Arc<str>,
    },
    /// A record cannot be read.
    #[error("{}store {store} cannot be read: {damage}", record.map_or(String::new(), |record| format!("{record} in ")))]
    Corrupt {
        /// Which store.
        store: Arc<str>,
        /// Which record; `None`: the store as a whole.
        record: Option<Record>,
        /// What is wrong.
        damage: Damage,
    },
    /// The log does not end, or does not go on, where the caller expected. Nothing was changed.
    #[error("{}", conflict(expected.version, current.version))]
    Conflict {
        /// Where the caller expected it to be.
        expected: Head,
        /// Where it is.
        current: Head,
    },
    /// What follows a version is no longer kept as batches; the snapshot holds it.
    #[error("the log begins at version {oldest}, so what follows version {asked} is incomplete")]
    Trimmed {
        /// After which version the caller asked.
        asked: Version,
        /// The oldest batch that is kept, or the next one to come.
        oldest: Version,
    },
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Try again later.
    Unavailable,
    /// Stop, and tell a person.
    Corrupt,
    /// Catch up with the log, or load the snapshot, and decide again.
    Conflict,
}

/// What is wrong with a record or a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// It is too short to be a record.
    #[error("it has only {bytes} bytes")]
    TooShort {
        /// How long it is.
        bytes: usize,
    },
    /// It does not begin as such a record does.
    #[error("it does not begin as such a record does")]
    NotARecord,
    /// Its bytes, or its place, are not those that were written.
    #[error("its checksum is {found:08x} and should be {written:08x}")]
    Checksum {
        /// What was written.
        written: u32,
        /// What is there.
        found: u32,
    },
    /// A newer program wrote it.
    #[error(
        "it was written in format {found} by a newer version of Laneway, and this one reads formats up to {known}"
    )]
    UnknownFormat {
        /// In this format.
        found: u32,
        /// This program reads formats up to this one.
        known: u32,
    },
    /// An older program wrote it, in a format that this one no longer reads.
    #[error(
        "an older version of Laneway wrote it in format {found}, and this one reads format {oldest} and newer: let the older \
         version finish its tasks, then start with a new store"
    )]
    OldFormat {
        /// In this format.
        found: u32,
        /// The oldest format that this program reads.
        oldest: u32,
    },
    /// Its checksum is right, but its content makes no sense.
    #[error("its content makes no sense: {reason}")]
    Undecodable {
        /// In words.
        reason: Arc<str>,
    },
    /// It does not follow the batch before it.
    #[error("it does not follow the batch before it")]
    OutOfOrder,
    /// Something else about the store as a whole.
    #[error("{reason}")]
    Unreadable {
        /// In words.
        reason: Arc<str>,
    },
}

impl StoreError {
    /// The backend may answer later.
    pub fn unavailable(store: &str, reason: impl ToString) -> StoreError {
        StoreError::Unavailable { store: store.into(), reason: reason.to_string().into() }
    }

    /// The backend is not one that can keep a log.
    pub fn unfit(store: &str, reason: impl ToString) -> StoreError {
        StoreError::Unfit { store: store.into(), reason: reason.to_string().into() }
    }

    /// The store as a whole is damaged.
    pub fn damaged(store: &str, damage: Damage) -> StoreError {
        StoreError::Corrupt { store: store.into(), record: None, damage }
    }

    /// The store as a whole cannot be read, for a reason in words.
    pub fn unreadable(store: &str, reason: impl ToString) -> StoreError {
        StoreError::damaged(store, Damage::Unreadable { reason: reason.to_string().into() })
    }

    /// The log does not reach as far as the caller has read.
    pub fn beyond_end(after: Version, current: Head) -> StoreError {
        StoreError::Conflict { expected: Head { version: after, ..Head::EMPTY }, current }
    }

    /// Some of the parts of a snapshot are gone.
    pub fn incomplete_snapshot(store: &str, version: Version, found: usize, total: usize) -> StoreError {
        let reason = format!("{found} of its {total} parts are there").into();
        Record::Snapshot(version).corrupt(store, Damage::Unreadable { reason })
    }

    /// The thread or the runtime that does the store's work has ended.
    pub fn closed(store: &str) -> StoreError {
        StoreError::unavailable(store, "it was closed")
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Unavailable { .. } | StoreError::InUse { .. } => ErrorKind::Unavailable,
            StoreError::Corrupt { .. } | StoreError::Unfit { .. } => ErrorKind::Corrupt,
            StoreError::Conflict { .. } | StoreError::Trimmed { .. } => ErrorKind::Conflict,
        }
    }
}

impl ErrorKind {
    /// A word for it that never changes.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::Unavailable => "STORE_UNAVAILABLE",
            ErrorKind::Corrupt => "STORE_CORRUPT",
            ErrorKind::Conflict => "STORE_CONFLICT",
        }
    }
}

fn conflict(expected: Version, current: Version) -> String {
    if expected == current {
        return format!("at version {current} the log holds another batch than expected");
    }
    format!("the log is at version {current}, not at {expected}")
}
