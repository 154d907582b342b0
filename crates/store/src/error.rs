//! How a store fails: try later, stop, or catch up.

use std::fmt;
use std::sync::Arc;

use crate::frame::Record;
use crate::store::{Head, Version};

/// Why a store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The engine cannot be reached, is full or is too busy. A write may have happened nevertheless.
    Unavailable {
        /// Which store.
        store: Arc<str>,
        /// What it said.
        reason: Arc<str>,
    },
    /// Another process holds a store that only one may have.
    InUse {
        /// Which store.
        store: Arc<str>,
        /// Who holds it, where that can be told.
        pid: Option<u32>,
    },
    /// The engine is there and would not keep what it is given, or cannot do what a store must.
    Unfit {
        /// Which store.
        store: Arc<str>,
        /// What is wrong with it, and what would be right.
        reason: Arc<str>,
    },
    /// Something is there and cannot be read.
    Corrupt {
        /// Which store.
        store: Arc<str>,
        /// What in it; `None`: the store as a whole.
        record: Option<Record>,
        /// What is wrong.
        damage: Damage,
    },
    /// The log does not end, or does not go on, where the caller believed. Nothing was changed.
    Conflict {
        /// Where the caller believed it to be.
        expected: Head,
        /// Where it is.
        current: Head,
    },
    /// What follows a version is no longer kept as batches; the snapshot holds it.
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

/// What is wrong with something that a store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// It is too short to be a record.
    TooShort {
        /// How long it is.
        bytes: usize,
    },
    /// It does not begin as a record does, or is a record of another sort.
    NotARecord,
    /// Its bytes, or its place, are not those that were written.
    Checksum {
        /// What was written.
        written: u32,
        /// What is there.
        found: u32,
    },
    /// A newer program wrote it.
    UnknownFormat {
        /// In this format.
        found: u32,
        /// This program reads formats up to this one.
        known: u32,
    },
    /// Its checksum is right and it still makes no sense.
    Undecodable {
        /// In words.
        reason: Arc<str>,
    },
    /// It does not follow the batch before it.
    OutOfOrder,
    /// Something else about the store as a whole.
    Unreadable {
        /// In words.
        reason: Arc<str>,
    },
}

impl StoreError {
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

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Unavailable { store, reason } => write!(f, "store {store} is unavailable: {reason}"),
            StoreError::InUse { store, pid: Some(pid) } => {
                write!(f, "store {store} is in use by process {pid}")
            }
            StoreError::InUse { store, pid: None } => write!(f, "store {store} is in use by another process"),
            StoreError::Unfit { store, reason } => write!(f, "store {store} cannot be used: {reason}"),
            StoreError::Corrupt { store, record: Some(record), damage } => {
                write!(f, "{record} in store {store} cannot be read: {damage}")
            }
            StoreError::Corrupt { store, record: None, damage } => {
                write!(f, "store {store} cannot be read: {damage}")
            }
            StoreError::Conflict { expected, current } if expected.version == current.version => {
                write!(f, "at version {} the log holds another batch than expected", current.version)
            }
            StoreError::Conflict { expected, current } => {
                write!(f, "the log is at version {}, not at {}", current.version, expected.version)
            }
            StoreError::Trimmed { asked, oldest } => {
                write!(f, "the log begins at version {oldest}, so what follows version {asked} is incomplete")
            }
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::TooShort { bytes } => write!(f, "it has only {bytes} bytes"),
            Damage::NotARecord => write!(f, "it does not begin as such a record does"),
            Damage::Checksum { written, found } => {
                write!(f, "its checksum is {found:08x} and should be {written:08x}")
            }
            Damage::UnknownFormat { found, known } => write!(
                f,
                "it was written in format {found} by a newer version of Laneway, and this one reads formats up \
                 to {known}"
            ),
            Damage::Undecodable { reason } => write!(f, "its content makes no sense: {reason}"),
            Damage::OutOfOrder => write!(f, "it does not follow the batch before it"),
            Damage::Unreadable { reason } => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for StoreError {}
