//! Records of a store: batches, snapshots, payloads, finished tasks and their results.
//!
//! The first byte of an input names the kind of record in capitals. In small letters it also repairs the checksum, so that
//! the decoder behind it is reached.

use std::num::NonZeroU128;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::testing::in_format;
use laneway_store::{
    Append, Batch, BatchId, Entry, ErrorKind, Head, HistoryPosition, Log, MemoryStore, Record, StoreError,
    StoredFinished, StoredSnapshot, decode_tries, encode_tries,
};

use crate::FuzzOutcome;

/// The frame's header, whose layout never changes.
const HEADER: usize = 8;
const FORMAT_AT: usize = 3;
const TASK: TaskId = TaskId(1 << 90);

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let Some((kind, record)) = input.split_first() else { return FuzzOutcome::Refused };
    let place = match kind.to_ascii_uppercase() {
        b'B' => Record::Batch(Head::EMPTY.version.next()),
        b'S' => Record::Snapshot(Head::EMPTY.version.next()),
        b'P' => Record::Payload(BlobId(NonZeroU128::MIN)),
        b'F' => Record::Finished(TASK),
        b'R' => Record::Result(TASK),
        _ => return check_tries(record),
    };
    let record = if kind.is_ascii_lowercase() && record.len() >= HEADER {
        in_format(place, record[FORMAT_AT], record)
    } else {
        Bytes::copy_from_slice(record)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    match runtime.block_on(store_and_read(place, record)) {
        Ok(()) => FuzzOutcome::Understood,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "damage under another name: {error}");
            FuzzOutcome::Refused
        }
    }
}

fn check_tries(bytes: &[u8]) -> FuzzOutcome {
    let Some(tries) = decode_tries(bytes) else { return FuzzOutcome::Refused };
    let again = encode_tries(&tries).and_then(|bytes| decode_tries(&bytes));
    assert_eq!(again.as_ref(), Some(&tries), "another value after a round trip");
    FuzzOutcome::Understood
}

/// Stores the record where it belongs and reads it back; what is read can be written again.
async fn store_and_read(place: Record, record: Bytes) -> Result<(), StoreError> {
    let log = Log::new(Arc::new(MemoryStore::new()));
    let first = Batch { id: BatchId(1), at: Timestamp(0), events: vec![] };
    let mut append = log.seal(Head::EMPTY, &Entry::of(first))?;
    match place {
        Record::Batch(_) => {
            log.store().append(Append { record, ..append }).await?;
            let batches = match log.read(Head::EMPTY).await {
                // The record claims to follow another batch; opening such a store must report damage.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    log.restore(1).await?;
                    return Err(error);
                }
                read => read?,
            };
            for (_, batch) in batches {
                log.seal(Head::EMPTY, &Entry::of(batch))?;
            }
        }
        Record::Snapshot(_) => {
            let head = log.store().append(append).await?;
            log.store().save_snapshot(StoredSnapshot { head, record }).await?;
            if let Some((head, state)) = log.load().await? {
                log.seal_snapshot(head, &state)?;
            }
        }
        Record::Payload(id) => {
            append.blobs = [(id, record)].into();
            log.store().append(append).await?;
            log.payload(id).await?;
        }
        _ => {
            let is_result = matches!(place, Record::Result(_));
            // A result belongs to a finished task.
            let sample = Bytes::from_static(&include_bytes!("../../corpus/records/finished-2")[1..]);
            let (record, result) = if is_result { (sample, Some(record)) } else { (record, None) };
            let labels = Vec::new();
            let ended = Timestamp(0);
            let place = HistoryPosition::default();
            append.finished = [StoredFinished { task: TASK, ended, place, record, result, labels }].into();
            log.store().append(append).await?;
            log.finished(TASK).await?;
        }
    }
    Ok(())
}
