//! What is inside the frames: MessagePack, structs as arrays, variants by name.
//!
//! How to change a type that is written here (an event, the state, [`Finished`]): add fields at the end, with
//! `#[serde(default)]`; add variants anywhere; raise the format number. Then a newer program reads what an
//! older one wrote, and an older one stops at what a newer one wrote. The samples in `tests/formats` fail
//! until that is done.

use std::num::NonZeroU128;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, End, Event, Fence, LaneName, Name, Snapshot, Source, TaskId, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Damage, StoreError};
use crate::frame::{HEADER, Record};
use crate::types::{BatchId, Head, StoredBatch};

/// The newest format of batches.
pub const BATCH_FORMAT: u8 = 3;
/// The oldest format of batches and snapshots that can be read.
pub const OLDEST_FORMAT: u8 = 3;
/// The newest format of snapshots.
pub const SNAPSHOT_FORMAT: u8 = 3;
/// The newest format of payloads.
pub const PAYLOAD_FORMAT: u8 = 1;
/// The newest format of results: the first has the result alone, the second what was to be done before it.
pub const RESULT_FORMAT: u8 = 2;
/// The newest format of the history of a task.
pub const FINISHED_FORMAT: u8 = 3;

/// Events that were decided together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Which batch.
    pub id: BatchId,
    /// When they happened: the time for [`apply`](laneway_core::Scheduler::apply).
    pub at: Timestamp,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// What the history keeps of a finished task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Which task.
    pub task: TaskId,
    /// Its kind.
    pub kind: Name,
    /// The lanes that it named, the home lane first.
    pub lanes: Vec<LaneName>,
    /// Who asked.
    pub source: Source,
    /// Its own priority.
    pub priority: u8,
    /// The label that it shared with others.
    pub group: Option<Name>,
    /// The task that asked for it.
    pub parent: Option<TaskId>,
    /// Who ran the last attempt, if that was a worker.
    pub worker: Option<Name>,
    /// When it was accepted.
    pub submitted: Timestamp,
    /// When its last attempt started, if there was one.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
    /// The number of attempts.
    pub attempts: u32,
    /// How it ended.
    pub end: End,
    /// The attempts before the last, in order.
    #[serde(default)]
    pub tries: Vec<Try>,
    /// The token that asked, where callers have tokens.
    #[serde(default)]
    pub caller: Option<Name>,
    /// The trace that it belonged to.
    #[serde(default)]
    pub trace: Option<Arc<str>>,
    /// Its name for people who look at the queue.
    #[serde(default)]
    pub label: Option<Name>,
    /// Its payload, if that is kept. It is kept with the result, so lists leave it out.
    #[serde(skip)]
    pub payload: Option<Bytes>,
}

/// An attempt after which another followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// Its fence.
    pub fence: Fence,
    /// When it started, where that is known.
    pub started: Option<Timestamp>,
    /// When it was over.
    pub ended: Timestamp,
    /// Who ran it, if that was a worker.
    pub worker: Option<Name>,
    /// What went wrong, in words.
    pub error: Arc<str>,
}

impl Finished {
    /// The labels by which it can be listed.
    pub fn labels(&self) -> Vec<Box<str>> {
        // Room for all labels: this runs for every task that ends.
        let mut labels = Vec::with_capacity(4 + 2 * self.lanes.len());
        labels.push(label("state", state_word(&self.end)));
        labels.push(label("kind", self.kind.as_str()));
        labels.extend(self.lanes.iter().map(|lane| label("lane", lane.as_str())));
        labels.extend(self.group.as_ref().map(|group| label("group", group.as_str())));
        labels.extend(self.parent.map(|parent| label("parent", &parent.to_string())));
        labels.extend(self.lanes.iter().filter_map(session_of).map(|session| label("session", session)));
        labels.dedup();
        labels
    }
}

/// What a task can be listed by: `state`, `kind`, `lane`, `group`, `parent` or `session` (as it stands in the names of
/// its lanes).
pub fn label(what: &str, name: &str) -> Box<str> {
    [what, "=", name].concat().into()
}

/// The word for an end, the same on every surface.
pub fn state_word(end: &End) -> &'static str {
    match end {
        End::Completed => "completed",
        End::Failed { .. } => "failed",
        End::TimedOut => "timed_out",
        End::Cancelled { .. } => "cancelled",
        End::Expired => "expired",
        End::WaitTimeout => "wait_timeout",
        End::Lost => "lost",
    }
}

/// The session that a lane belongs to.
fn session_of(lane: &LaneName) -> Option<&str> {
    let key = lane.as_str().strip_prefix("session:")?;
    Some(key.split_once('/').map_or(key, |(key, _)| key))
}

/// A batch that follows `before`.
pub(crate) fn seal_batch(store: &str, before: Head, batch: &Batch) -> Result<Bytes, StoreError> {
    let record = Record::Batch(before.version.next());
    // About what one event takes, so that the buffer seldom grows.
    let buffer = Record::start(64 + 80 * batch.events.len());
    encode(store, record, BATCH_FORMAT, buffer, &(before.batch.0, batch.id.0, batch.at, &batch.events))
}

/// A batch, with the id of the one before it.
pub(crate) fn unseal_batch(
    store: &str,
    record: Record,
    bytes: &Bytes,
) -> Result<(BatchId, Batch), StoreError> {
    type Body = (u128, u128, Timestamp, Vec<Event>);
    let (before, id, at, events): Body = decode(store, record, bytes, OLDEST_FORMAT..=BATCH_FORMAT)?;
    Ok((BatchId(before), Batch { id: BatchId(id), at, events }))
}

/// Whether the records of two batches say that one follows the other. Another log has other batches under the same
/// versions.
pub fn is_next(before: &StoredBatch, next: &StoredBatch) -> bool {
    let (Some((_, id)), Some((expected, _))) = (ids_of(before), ids_of(next)) else { return false };
    before.version.next() == next.version && id == expected
}

/// The ids of the batch before and of the batch itself: the first two of the four values in a record.
fn ids_of(batch: &StoredBatch) -> Option<(u128, u128)> {
    const FOUR_VALUES: u8 = 0x94;
    const SIXTEEN_BYTES: [u8; 2] = [0xc4, 16];
    let id = |bytes: &[u8]| Some(u128::from_be_bytes(*bytes.strip_prefix(&SIXTEEN_BYTES)?.first_chunk()?));
    let values = batch.record.get(HEADER..)?.strip_prefix(&[FOUR_VALUES])?;
    Some((id(values)?, id(values.get(18..)?)?))
}

pub(crate) fn seal_snapshot(store: &str, head: Head, state: &Snapshot) -> Result<Bytes, StoreError> {
    encode(store, Record::Snapshot(head.version), SNAPSHOT_FORMAT, Record::start(4096), state)
}

pub(crate) fn unseal_snapshot(store: &str, head: Head, bytes: &Bytes) -> Result<Snapshot, StoreError> {
    decode(store, Record::Snapshot(head.version), bytes, OLDEST_FORMAT..=SNAPSHOT_FORMAT)
}

pub(crate) fn seal_finished(store: &str, finished: &Finished) -> Result<Bytes, StoreError> {
    encode(store, Record::Finished(finished.task), FINISHED_FORMAT, Record::start(192), finished)
}

pub(crate) fn unseal_finished(store: &str, task: TaskId, bytes: &Bytes) -> Result<Finished, StoreError> {
    decode(store, Record::Finished(task), bytes, 1..=FINISHED_FORMAT)
}

/// Where the tries of a live task are kept: no other payload has an id like this, because those are UUIDs of version 7
/// and this is one of version 8.
pub fn tries_blob(task: TaskId) -> BlobId {
    let id = task.0 & !(0xf << 76) | 0x8 << 76;
    BlobId(NonZeroU128::new(id).unwrap_or(NonZeroU128::MIN))
}

/// The tries of a live task, in the form in which they are kept as a payload.
pub fn encode_tries(tries: &[Try]) -> Option<Bytes> {
    rmp_serde::to_vec(tries).ok().map(Bytes::from)
}

/// What [`encode_tries`] made.
pub fn decode_tries(bytes: &[u8]) -> Option<Vec<Try>> {
    rmp_serde::from_slice(bytes).ok()
}

pub(crate) fn seal_payload(id: BlobId, payload: &[u8]) -> Bytes {
    seal_raw(Record::Payload(id), payload)
}

pub(crate) fn unseal_payload(store: &str, id: BlobId, bytes: &Bytes) -> Result<Bytes, StoreError> {
    Ok(Record::Payload(id).unseal(store, bytes, 1..=PAYLOAD_FORMAT)?.1)
}

/// The payload and the result of a finished task, if either is kept.
pub(crate) fn seal_result(task: TaskId, payload: Option<&Bytes>, result: Option<&Bytes>) -> Option<Bytes> {
    let record = Record::Result(task);
    let Some(payload) = payload else { return result.map(|result| seal_raw(record, result)) };
    let length = u32::try_from(payload.len()).ok()?;
    let mut buffer = Record::start(PREFIX + payload.len() + result.map_or(0, Bytes::len));
    buffer.push(u8::from(result.is_some()));
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(payload);
    buffer.extend_from_slice(result.map_or(&[], |result| result));
    Some(record.seal(RESULT_FORMAT, buffer))
}

/// The bytes before the payload: whether there is a result, and the length of the payload.
const PREFIX: usize = 1 + size_of::<u32>();

/// A payload and a result.
type WorkAndResult = (Option<Bytes>, Option<Bytes>);

pub(crate) fn unseal_result(store: &str, task: TaskId, bytes: &Bytes) -> Result<WorkAndResult, StoreError> {
    let record = Record::Result(task);
    let (format, body) = record.unseal(store, bytes, 1..=RESULT_FORMAT)?;
    if format == 1 {
        return Ok((None, Some(body)));
    }
    let short = || record.corrupt(store, Damage::TooShort { bytes: bytes.len() });
    let (prefix, _) = body.split_first_chunk::<PREFIX>().ok_or_else(short)?;
    let [has_result, length @ ..] = *prefix;
    let end = PREFIX + u32::from_le_bytes(length) as usize;
    if body.len() < end {
        return Err(short());
    }
    Ok((Some(body.slice(PREFIX..end)), (has_result == 1).then(|| body.slice(end..))))
}

fn seal_raw(record: Record, body: &[u8]) -> Bytes {
    let mut buffer = Record::start(body.len());
    buffer.extend_from_slice(body);
    record.seal(PAYLOAD_FORMAT, buffer)
}

fn encode<T: Serialize>(
    store: &str,
    record: Record,
    format: u8,
    mut buffer: Vec<u8>,
    body: &T,
) -> Result<Bytes, StoreError> {
    rmp_serde::encode::write(&mut buffer, body).map_err(|error| senseless(store, record, &error))?;
    Ok(record.seal(format, buffer))
}

fn decode<T: DeserializeOwned>(
    store: &str,
    record: Record,
    bytes: &Bytes,
    known: RangeInclusive<u8>,
) -> Result<T, StoreError> {
    // Formats that can be read differ only in fields at the end.
    let (_format, body) = record.unseal(store, bytes, known)?;
    rmp_serde::from_slice(&body).map_err(|error| senseless(store, record, &error))
}

fn senseless(store: &str, record: Record, error: &dyn std::error::Error) -> StoreError {
    record.corrupt(store, Damage::Undecodable { reason: error.to_string().into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Before {
        Told { who: u32, what: String },
    }

    /// `Before` after some years: a field at the end, variants in between.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum After {
        Asked {
            who: u32,
        },
        Told {
            who: u32,
            what: String,
            #[serde(default)]
            how: Option<String>,
        },
    }

    const RECORD: Record = Record::Batch(crate::Version(7));

    fn sealed(format: u8, body: &impl Serialize) -> Bytes {
        encode("memory", RECORD, format, Record::start(0), body).unwrap()
    }

    #[test]
    fn a_newer_program_reads_what_an_older_one_wrote() {
        let older = sealed(1, &vec![Before::Told { who: 1, what: "a".into() }]);
        let read: Vec<After> = decode("memory", RECORD, &older, 1..=2).unwrap();
        assert_eq!(read, [After::Told { who: 1, what: "a".into(), how: None }]);
    }

    #[test]
    fn an_older_program_stops_at_what_a_newer_one_wrote() {
        let newer = [After::Told { who: 1, what: "a".into(), how: None }, After::Asked { who: 1 }];
        let refused = decode::<Vec<Before>>("memory", RECORD, &sealed(2, &newer), 1..=1).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the batch of version 7 in store memory cannot be read: it was written in format 2 by a newer version \
             of Laneway, and this one reads formats up to 1"
        );
        // Without a raised format number, it stops as well.
        for newer in newer {
            let refused = decode::<Vec<Before>>("memory", RECORD, &sealed(1, &vec![newer]), 1..=1);
            assert!(matches!(refused, Err(StoreError::Corrupt { damage: Damage::Undecodable { .. }, .. })));
        }
    }

    #[test]
    fn what_was_to_be_done_is_kept_with_what_came_of_it_and_older_results_are_still_read() {
        let task = TaskId(7);
        let read = |sealed: Bytes| unseal_result("memory", task, &sealed);
        let (work, result) = (Bytes::from_static(b"work"), Bytes::from_static(b"result"));
        for (payload, result) in [
            (Some(&work), Some(&result)),
            (Some(&work), None),
            (None, Some(&result)),
            (Some(&Bytes::new()), Some(&Bytes::new())),
        ] {
            let sealed = seal_result(task, payload, result).unwrap();
            assert_eq!(read(sealed), Ok((payload.cloned(), result.cloned())));
        }
        assert_eq!(seal_result(task, None, None), None);
        assert_eq!(
            read(seal_raw(Record::Result(task), b"old")),
            Ok((None, Some(Bytes::from_static(b"old"))))
        );
        let mut cut = Record::start(8);
        cut.extend_from_slice(&[1, 9, 0, 0, 0, b'x']);
        assert!(matches!(read(Record::Result(task).seal(2, cut)), Err(StoreError::Corrupt { .. })));
    }

    #[test]
    fn a_record_in_the_place_of_another_is_noticed() {
        let bytes = sealed(1, &1_u8);
        let elsewhere = Record::Batch(crate::Version(8));
        let refused = decode::<u8>("memory", elsewhere, &bytes, 1..=1);
        assert!(matches!(refused, Err(StoreError::Corrupt { damage: Damage::Checksum { .. }, .. })));
        let refused = decode::<u8>("memory", Record::Snapshot(crate::Version(7)), &bytes, 1..=1);
        assert_eq!(refused, Err(Record::Snapshot(crate::Version(7)).corrupt("memory", Damage::NotARecord)));
    }
}
