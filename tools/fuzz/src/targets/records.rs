//! Whatever lies in a store: batches, snapshots, payloads, finished tasks and their results.
//!
//! The first byte of an input says what the rest is, in capitals; in small letters the checksum is made right first, so
//! that what is behind it is reached too.

use std::num::NonZeroU128;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::testing::in_format;
use laneway_store::{
    Append, Batch, BatchId, Entry, ErrorKind, Head, Log, MemoryStore, Place, Record, StoreError,
    StoredFinished, StoredSnapshot, decode_tries, encode_tries,
};
use tokio::runtime::Runtime;

use super::words;
use crate::{Chance, Target};

pub(super) struct Records {
    runtime: Runtime,
}

/// The frame's header, whose layout never changes.
const HEADER: usize = 8;
const FORMAT_AT: usize = 3;
const TASK: TaskId = TaskId(1 << 90);

impl Records {
    pub(super) fn open() -> Result<Records, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        Ok(Records { runtime: runtime.map_err(|error| error.to_string())? })
    }
}

impl Target for Records {
    fn name(&self) -> &'static str {
        "records"
    }

    fn words(&self) -> Vec<String> {
        words(&[
            "LWB\x01",
            "LWB\x02",
            "LWS\x02",
            "Submitted",
            "Granted",
            "Ended",
            "Configured",
            "Session",
            "Failed",
            "On",
            "Off",
            "main",
            "session:a",
            "session:*",
            "\0",
            "\x01",
            "\x7f",
        ])
    }

    /// MessagePack that promises more than it holds, behind a header that is right.
    fn make(&self, chance: &mut Chance) -> Option<Vec<u8>> {
        let mut input = vec![*chance.one(b"bspfrt")?];
        input.extend(b"LW_\x01\0\0\0\0");
        input[FORMAT_AT + 1] = 1 + chance.below(2) as u8;
        for _ in 0..chance.below(60) {
            let marker = *chance.one(&[
                0x80, 0x81, 0x90, 0x91, 0x94, 0x9e, 0xa0, 0xa4, 0xc0, 0xc1, 0xc4, 0xc6, 0xca, 0xcb, 0xcd,
                0xcf, 0xd9, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xff, 0x00, 0x10,
            ])?;
            input.push(marker);
            if chance.once_in(6) {
                input.extend(chance.number().to_le_bytes());
            }
        }
        Some(input)
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let Some((sort, record)) = input.split_first() else { return Ok("nothing".to_owned()) };
        let place = match sort.to_ascii_uppercase() {
            b'B' => Record::Batch(Head::EMPTY.version.next()),
            b'S' => Record::Snapshot(Head::EMPTY.version.next()),
            b'P' => Record::Payload(BlobId(NonZeroU128::MIN)),
            b'F' => Record::Finished(TASK),
            b'R' => Record::Result(TASK),
            _ => return check_tries(record),
        };
        let record = match sort.is_ascii_lowercase() && record.len() >= HEADER {
            true => in_format(place, record[FORMAT_AT], record),
            false => Bytes::copy_from_slice(record),
        };
        match self.runtime.block_on(unseal(place, record)) {
            Ok(outcome) => Ok(outcome),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(error.to_string()),
            Err(error) => Err(format!("not told as damage: {error}")),
        }
    }
}

fn check_tries(bytes: &[u8]) -> Result<String, String> {
    let Some(tries) = decode_tries(bytes) else { return Ok("no tries".to_owned()) };
    match encode_tries(&tries).and_then(|bytes| decode_tries(&bytes)) {
        Some(again) if again == tries => Ok("tries".to_owned()),
        again => Err(format!("{tries:?} became {again:?}")),
    }
}

/// Puts the record where it belongs and reads it; what can be read can be written and read again.
async fn unseal(place: Record, record: Bytes) -> Result<String, StoreError> {
    let log = Log::new(Arc::new(MemoryStore::new()));
    let first = Batch { id: BatchId(1), at: Timestamp(0), events: vec![] };
    let mut append = log.seal(Head::EMPTY, &Entry::of(first))?;
    match place {
        Record::Batch(_) => {
            log.store().append(Append { record, ..append }).await?;
            let mut sorts = String::new();
            let batches = match log.read(Head::EMPTY).await {
                // It says that it follows another batch: whoever opens such a store hears of damage.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    log.restore(1).await?;
                    return Err(error);
                }
                read => read?,
            };
            for (_, batch) in batches {
                let entry = Entry::of(batch);
                log.seal(Head::EMPTY, &entry)?;
                sorts = entry.batch.events.first().map(|event| format!("{event:?}")).unwrap_or_default();
            }
            Ok(format!("a batch {}", sorts.split([' ', '{', '(']).next().unwrap_or_default()))
        }
        Record::Snapshot(_) => {
            let head = log.store().append(append).await?;
            log.store().save_snapshot(StoredSnapshot { head, record }).await?;
            if let Some((head, state)) = log.load().await? {
                log.seal_snapshot(head, &state)?;
            }
            Ok("a snapshot".to_owned())
        }
        Record::Payload(id) => {
            append.blobs = [(id, record)].into();
            log.store().append(append).await?;
            Ok(format!("a payload {}", log.payload(id).await?.is_some()))
        }
        _ => {
            let is_result = matches!(place, Record::Result(_));
            // A finished task for the result to belong to.
            let sample = Bytes::from_static(&include_bytes!("../../corpus/records/finished-2")[1..]);
            let (record, result) = if is_result { (sample, Some(record)) } else { (record, None) };
            let labels = Vec::new();
            let ended = Timestamp(0);
            let place = Place::default();
            append.finished = [StoredFinished { task: TASK, ended, place, record, result, labels }].into();
            log.store().append(append).await?;
            let finished = log.finished(TASK).await?;
            Ok(format!("finished, with a result {}", finished.is_some_and(|(_, result)| result.is_some())))
        }
    }
}
