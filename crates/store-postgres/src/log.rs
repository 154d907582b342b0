//! Reading the log.

use bytes::Bytes;
use laneway_core::{BlobId, Timestamp};
use laneway_store::{BatchId, Head, READ_BATCHES_MAX, READ_BYTES_MAX, StoreError, StoredBatch, Version};

use crate::append::bigint;
use crate::baton::author_of;
use crate::failure::unreadable;
use crate::store::Shared;

/// Batches that are asked for at once. They may be large.
const BATCHES_PER_READ: usize = 128;

impl Shared {
    pub(crate) async fn head(&self) -> Result<Head, StoreError> {
        let rows = self.reader.query("SELECT version, batch FROM head", &[]).await?;
        let head = rows.first().and_then(|row| head_of(row.get(0), row.get(1)));
        head.ok_or_else(|| self.nonsense("the end of the log"))
    }

    pub(crate) async fn time(&self) -> Result<Timestamp, StoreError> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let rows = self.reader.query(sql, &[]).await?;
        let millis = rows.first().and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok());
        millis.map(Timestamp).ok_or_else(|| self.nonsense("the time"))
    }

    pub(crate) async fn read(&self, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
        let (mut batches, mut bytes) = (Vec::<StoredBatch>::new(), 0);
        while batches.len() < READ_BATCHES_MAX && bytes < READ_BYTES_MAX {
            let last = batches.last().map_or(after, |batch| batch.version);
            let some = self.batches(last).await?;
            if some.first().is_some_and(|first| first.version > last.next()) {
                // What lay between is gone; what was read before is in order all the same.
                if batches.is_empty() {
                    return Err(StoreError::Trimmed { asked: after, oldest: some[0].version });
                }
                break;
            }
            bytes += some.iter().map(|batch| batch.record.len()).sum::<usize>();
            let is_end = some.len() < BATCHES_PER_READ;
            batches.extend(some);
            if is_end {
                break;
            }
        }
        if !batches.is_empty() {
            return Ok(batches);
        }
        let head = self.reaching(after).await?;
        if after == head.version {
            return Ok(batches);
        }
        // Either that has just happened, or all of it is in the snapshot.
        let batches = self.batches(after).await?;
        match batches.first().map(|first| first.version) {
            Some(first) if first == after.next() => Ok(batches),
            first => Err(StoreError::Trimmed { asked: after, oldest: first.unwrap_or(head.version.next()) }),
        }
    }

    async fn batches(&self, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
        let sql = "SELECT version, record, baton FROM log WHERE version > $1 ORDER BY version LIMIT $2";
        let rows = self.reader.query(sql, &[&bigint(after.0), &(BATCHES_PER_READ as i64)]).await?;
        let batch = |row: &tokio_postgres::Row| {
            let version = Version(row.get::<_, i64>(0) as u64);
            StoredBatch { version, record: Bytes::copy_from_slice(row.get(1)) }
        };
        let batches: Vec<StoredBatch> = rows.iter().map(batch).collect();
        if let (Some(row), Some(batch)) = (rows.last(), batches.last()) {
            self.newest.note(batch.version, author_of(row.get(2)));
        }
        Ok(batches)
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
        let id = id.0.get().to_be_bytes();
        let rows = self.reader.query("SELECT record FROM blob WHERE id = $1", &[&&id[..]]).await?;
        Ok(rows.first().map(|row| Bytes::copy_from_slice(row.get(0))))
    }

    pub(crate) async fn remove_blobs(&self, ids: Vec<BlobId>) -> Result<(), StoreError> {
        for some in ids.chunks(512) {
            let some: Vec<Vec<u8>> = some.iter().map(|id| id.0.get().to_be_bytes().to_vec()).collect();
            self.reader.query("DELETE FROM blob WHERE id = ANY ($1)", &[&some]).await?;
        }
        Ok(())
    }

    /// Postgres answered, and not what it should.
    pub(crate) fn nonsense(&self, what: &str) -> StoreError {
        unreadable(&self.address.name, &format!("what it holds for {what} is not what Laneway writes"))
    }
}

/// The log does not reach so far.
pub(crate) fn too_far(after: Version, current: Head) -> StoreError {
    StoreError::Conflict { expected: Head { version: after, batch: BatchId::default() }, current }
}

/// A head from its columns; `None`: it is none.
pub(crate) fn head_of(version: i64, batch: &[u8]) -> Option<Head> {
    let batch = BatchId(u128::from_be_bytes(batch.try_into().ok()?));
    Some(Head { version: Version(u64::try_from(version).ok()?), batch })
}
