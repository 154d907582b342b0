//! Reading the log.

use bytes::Bytes;
use laneway_core::{BlobId, Timestamp};
use laneway_store::{
    Author, BatchId, Head, READ_BATCHES_MAX, READ_BYTES_MAX, StoreError, StoredBatch, Version,
};
use redis::{Cmd, Value, cmd};

use crate::keys::{author_bytes, author_of, entry_id, head_of, version_of};
use crate::link::Call;
use crate::recent::Recent;
use crate::store::Shared;

/// Entries that are asked for at once. Batches may be large.
const ENTRIES_PER_READ: usize = 128;

impl Shared {
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, StoreError> {
        self.link.send(&self.keys, &self.recent, command).await
    }

    pub(crate) async fn head(&self) -> Result<Head, StoreError> {
        match self.send(cmd("GET").arg(&self.keys.head)).await? {
            Value::Nil => Ok(Head::EMPTY),
            Value::BulkString(bytes) => head_of(&bytes).ok_or_else(|| self.nonsense("the head")),
            _ => Err(self.nonsense("the head")),
        }
    }

    pub(crate) async fn time(&self) -> Result<Timestamp, StoreError> {
        let Value::Array(parts) = self.send(&cmd("TIME")).await? else {
            return Err(self.nonsense("the time"));
        };
        let number = |part: &Value| match part {
            Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
            _ => None,
        };
        match parts.iter().map(number).collect::<Option<Vec<u64>>>().as_deref() {
            Some([seconds, micros]) => Ok(Timestamp(seconds * 1000 + micros / 1000)),
            _ => Err(self.nonsense("the time")),
        }
    }

    pub(crate) async fn read(&self, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
        let known = self.recent.after(after);
        if !known.is_empty() {
            return Ok(known);
        }
        let (mut batches, mut bytes) = (Vec::<StoredBatch>::new(), 0);
        while batches.len() < READ_BATCHES_MAX && bytes < READ_BYTES_MAX {
            let last = batches.last().map_or(after, |batch| batch.version);
            let some = self.entries(last).await?;
            if let Some(first) = some.first()
                && first.version > last.next()
            {
                // What lay between is gone; what was read before is in order all the same.
                if batches.is_empty() {
                    return Err(StoreError::Trimmed { asked: after, oldest: first.version });
                }
                break;
            }
            bytes += some.iter().map(|batch| batch.record.len()).sum::<usize>();
            let is_end = some.len() < ENTRIES_PER_READ;
            batches.extend(some);
            if is_end {
                break;
            }
        }
        if batches.is_empty() {
            let head = self.reaching(after).await?;
            if after < head.version {
                return self.read_what_came_meanwhile(after, head).await;
            }
        }
        Ok(batches)
    }

    /// There was nothing after a version, and a moment later the log was longer: either that has just happened, or
    /// all of it is in the snapshot.
    async fn read_what_came_meanwhile(
        &self,
        after: Version,
        head: Head,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let batches = self.entries(after).await?;
        match batches.first() {
            Some(first) if first.version == after.next() => Ok(batches),
            Some(first) => Err(StoreError::Trimmed { asked: after, oldest: first.version }),
            None => Err(StoreError::Trimmed { asked: after, oldest: head.version.next() }),
        }
    }

    async fn entries(&self, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
        let mut command = cmd("XRANGE");
        command.arg(&self.keys.log).arg(entry_id(after.next())).arg("+");
        command.arg("COUNT").arg(ENTRIES_PER_READ);
        let read = batches_of(self.send(&command).await?).ok_or_else(|| self.nonsense("the log"))?;
        read.note_baton(&self.recent);
        Ok(read.batches)
    }

    /// Stands in line for the baton, once.
    pub(crate) async fn want_baton(&self, author: Author) -> Result<(), StoreError> {
        if author == Author(0) {
            return Ok(());
        }
        let mut call = Call::default();
        call.key(&self.keys.line);
        call.argument(author_bytes(author));
        self.link.run(&self.keys, &self.recent, &self.want_script, &call).await.map(drop)
    }

    /// The end of the log, if it reaches this version.
    pub(crate) async fn reaching(&self, after: Version) -> Result<Head, StoreError> {
        let current = self.head().await?;
        match after <= current.version {
            true => Ok(current),
            false => Err(too_far(after, current)),
        }
    }

    pub(crate) async fn blob(&self, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        match self.send(cmd("GET").arg(self.keys.blob(id))).await? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes.into())),
            _ => Err(self.nonsense("a payload")),
        }
    }

    pub(crate) async fn remove_blobs(&self, ids: Vec<BlobId>) -> Result<(), StoreError> {
        for some in ids.chunks(512) {
            let mut command = cmd("UNLINK");
            for id in some {
                command.arg(self.keys.blob(*id));
            }
            self.send(&command).await?;
        }
        Ok(())
    }
}

/// The log does not reach so far.
pub(crate) fn too_far(after: Version, current: Head) -> StoreError {
    StoreError::Conflict { expected: Head { version: after, batch: BatchId::default() }, current }
}

/// A part of the log, as it was read.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) batches: Vec<StoredBatch>,
    /// To whom the last of them passed the baton.
    pub(crate) baton: Option<Author>,
}

impl Read {
    pub(crate) fn note_baton(&self, recent: &Recent) {
        if let Some(last) = self.batches.last() {
            recent.note_baton(last.version, self.baton);
        }
    }
}

/// The batches in an answer of XRANGE; `None`: they are none.
pub(crate) fn batches_of(value: Value) -> Option<Read> {
    let Value::Array(entries) = value else { return None };
    let mut read = Read::default();
    for entry in entries {
        let (batch, baton) = batch_of(entry)?;
        read.batches.push(batch);
        read.baton = baton;
    }
    Some(read)
}

fn batch_of(entry: Value) -> Option<(StoredBatch, Option<Author>)> {
    let Value::Array(entry) = entry else { return None };
    let [Value::BulkString(id), Value::Array(fields)] = <[Value; 2]>::try_from(entry).ok()? else {
        return None;
    };
    let [_, Value::BulkString(batch), Value::BulkString(field), Value::BulkString(record)] =
        <[Value; 4]>::try_from(fields).ok()?
    else {
        return None;
    };
    let version = version_of(&id)?;
    let baton = batch.get(16..).and_then(author_of);
    (field == b"r").then(|| (StoredBatch { version, record: record.into() }, baton))
}

/// The batches in an answer of XREAD from one stream: none when there was nothing for a while.
pub(crate) fn batches_of_stream(value: Value) -> Option<Read> {
    let Value::Array(streams) = value else { return matches!(value, Value::Nil).then(Read::default) };
    let [Value::Array(stream)] = <[Value; 1]>::try_from(streams).ok()? else { return None };
    let [_, entries] = <[Value; 2]>::try_from(stream).ok()?;
    batches_of(entries)
}
