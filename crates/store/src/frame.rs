//! The frame around every value that a store keeps: what it is, in which format, and a checksum.
//!
//! ```text
//! 'L' 'W' | sort (1) | format (1) | crc32 (4, little endian) | body
//! ```
//!
//! This layout never changes, so that an older program can always tell "damaged" from "too new for me". The
//! checksum covers the sort, the format, the record's place (a batch's version, a payload's id) and the body:
//! a record that turns up in another's place is noticed as well.

use std::fmt;
use std::ops::RangeInclusive;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};

use crate::error::{Damage, StoreError};
use crate::types::Version;

const MAGIC: [u8; 2] = *b"LW";
const SORT_AT: usize = 2;
const FORMAT_AT: usize = 3;
const CRC_AT: usize = 4;
pub(crate) const HEADER: usize = 8;

/// One value that a store keeps, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// The batch that brought the log to this version.
    Batch(Version),
    /// The snapshot of this version.
    Snapshot(Version),
    /// A payload.
    Payload(BlobId),
    /// What there is to tell of a finished task.
    Finished(TaskId),
    /// What a finished task produced.
    Result(TaskId),
}

impl Record {
    fn sort(self) -> u8 {
        match self {
            Record::Batch(_) => b'B',
            Record::Snapshot(_) => b'S',
            Record::Payload(_) => b'P',
            Record::Finished(_) => b'F',
            Record::Result(_) => b'R',
        }
    }

    fn place(self) -> u128 {
        match self {
            Record::Batch(version) | Record::Snapshot(version) => u128::from(version.0),
            Record::Payload(id) => id.0.get(),
            Record::Finished(task) | Record::Result(task) => task.0,
        }
    }

    fn checksum(self, format: u8, body: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[self.sort(), format]);
        hasher.update(&self.place().to_le_bytes());
        hasher.update(body);
        hasher.finalize()
    }

    /// Room for a body of about this length, with room for the header before it.
    pub(crate) fn start(body_bytes: usize) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(HEADER + body_bytes);
        buffer.resize(HEADER, 0);
        buffer
    }

    /// Fills in the header of a buffer that [`start`](Record::start) began.
    pub(crate) fn seal(self, format: u8, mut buffer: Vec<u8>) -> Bytes {
        let crc = self.checksum(format, &buffer[HEADER..]);
        buffer[..SORT_AT].copy_from_slice(&MAGIC);
        buffer[SORT_AT] = self.sort();
        buffer[FORMAT_AT] = format;
        buffer[CRC_AT..HEADER].copy_from_slice(&crc.to_le_bytes());
        Bytes::from(buffer)
    }

    /// Checks the frame and returns the format and the body. `known`: the formats that can be read.
    pub(crate) fn unseal(
        self,
        store: &str,
        bytes: &Bytes,
        known: RangeInclusive<u8>,
    ) -> Result<(u8, Bytes), StoreError> {
        let corrupt = |damage| Err(self.corrupt(store, damage));
        let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
            return corrupt(Damage::TooShort { bytes: bytes.len() });
        };
        let [m0, m1, sort, format, crc @ ..] = *header;
        if [m0, m1] != MAGIC || sort != self.sort() {
            return corrupt(Damage::NotARecord);
        }
        let (written, found) = (u32::from_le_bytes(crc), self.checksum(format, body));
        if written != found {
            return corrupt(Damage::Checksum { written, found });
        }
        let found = u32::from(format);
        if format > 0 && format < *known.start() {
            return corrupt(Damage::OldFormat { found, oldest: (*known.start()).into() });
        }
        if !known.contains(&format) {
            return corrupt(Damage::UnknownFormat { found, known: (*known.end()).into() });
        }
        Ok((format, bytes.slice(HEADER..)))
    }

    pub(crate) fn corrupt(self, store: &str, damage: Damage) -> StoreError {
        StoreError::Corrupt { store: store.into(), record: Some(self), damage }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Batch(version) => write!(f, "the batch of version {version}"),
            Record::Snapshot(version) => write!(f, "the snapshot of version {version}"),
            Record::Payload(id) => write!(f, "payload {:032x}", id.0),
            Record::Finished(task) => write!(f, "the history of task {task}"),
            Record::Result(task) => write!(f, "the result of task {task}"),
        }
    }
}
