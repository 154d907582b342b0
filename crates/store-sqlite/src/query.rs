//! Everything that is read.

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{
    BatchId, Head, HistoryPosition, HistoryQuery, READ_BATCHES_MAX, READ_BYTES_MAX, StoreError, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::schema::{id_bytes, joined};

/// Refused, or the database failed.
pub(crate) type Answer<T> = rusqlite::Result<Result<T, StoreError>>;

/// The batches after a version of a log that ended at `head` before this was asked.
pub(crate) fn batches(db: &mut Connection, after: Version, head: Head) -> Answer<Vec<StoredBatch>> {
    let mut statement =
        db.prepare_cached("SELECT version, record FROM log WHERE version > ? ORDER BY version LIMIT ?")?;
    let mut rows = statement.query(params![after.0, READ_BATCHES_MAX as u64])?;
    let mut batches = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let stored = StoredBatch { version: Version(row.get(0)?), record: blob_of(row, 1)? };
        if batches.is_empty() && stored.version > after.next() {
            return Ok(Err(StoreError::Trimmed { asked: after, oldest: stored.version }));
        }
        bytes += stored.record.len();
        batches.push(stored);
        if bytes >= READ_BYTES_MAX {
            break;
        }
    }
    if batches.is_empty() && after < head.version {
        // The log is empty although something was appended: all of it is in the snapshot.
        return Ok(Err(StoreError::Trimmed { asked: after, oldest: head.version.next() }));
    }
    Ok(Ok(batches))
}

pub(crate) fn snapshot(db: &mut Connection, store: &str) -> Answer<Option<StoredSnapshot>> {
    // One transaction, so that the parts belong to the snapshot that was found.
    let view = db.transaction()?;
    let found = view.query_row("SELECT version, batch, parts FROM snapshot", [], |row| {
        let batch: [u8; 16] = row.get(1)?;
        let head = Head { version: Version(row.get(0)?), batch: BatchId(u128::from_be_bytes(batch)) };
        Ok((head, row.get::<_, u64>(2)?))
    });
    let Some((head, parts)) = found.optional()? else { return Ok(Ok(None)) };
    let mut record = Vec::new();
    let mut found = 0;
    let sql = "SELECT bytes FROM snapshot_part WHERE version = ? AND part < ? ORDER BY part";
    let mut statement = view.prepare_cached(sql)?;
    let mut rows = statement.query([head.version.0, parts])?;
    while let Some(row) = rows.next()? {
        record.extend_from_slice(row.get_ref(0)?.as_blob()?);
        found += 1;
    }
    if found != parts {
        let (found, parts) = (found as usize, parts as usize);
        return Ok(Err(StoreError::incomplete_snapshot(store, head.version, found, parts)));
    }
    Ok(Ok(Some(StoredSnapshot { head, record: record.into() })))
}

pub(crate) fn snapshot_version(db: &mut Connection) -> Answer<Option<Version>> {
    let newest: Option<u64> = db.query_row("SELECT max(version) FROM snapshot", [], |row| row.get(0))?;
    Ok(Ok(newest.map(Version)))
}

pub(crate) fn blob(db: &mut Connection, id: BlobId) -> Answer<Option<Bytes>> {
    let mut statement = db.prepare_cached("SELECT record FROM blob WHERE id = ?")?;
    statement.query_row([id_bytes(id.0.get())], |row| blob_of(row, 0)).optional().map(Ok)
}

pub(crate) fn finished(db: &mut Connection, task: TaskId) -> Answer<Option<StoredFinished>> {
    let mut statement = db.prepare_cached(
        "SELECT version, position, finished.task, ended, finished.record, ifnull(finished.result, result.record)
         FROM finished LEFT JOIN result ON result.task = finished.task WHERE finished.task = ?",
    )?;
    let found = statement.query_row([id_bytes(task.0)], |row| {
        let result: Option<Vec<u8>> = row.get(5)?;
        Ok(StoredFinished { result: result.map(Bytes::from), ..finished_of(row)? })
    });
    found.optional().map(Ok)
}

pub(crate) fn history(db: &mut Connection, asked: &HistoryQuery) -> Answer<Vec<StoredFinished>> {
    let fits = " AND instr(labels, ?) > 0".repeat(asked.labels.len());
    let mut statement = db.prepare_cached(&format!(
        "SELECT version, position, task, ended, record FROM finished
         WHERE (version, position) < (?, ?){fits} ORDER BY version DESC, position DESC LIMIT ?",
    ))?;
    let (version, index) = asked.before.map_or((u64::MAX, 0), |place| (place.version.0, place.index));
    let labels: Vec<String> = asked.labels.iter().map(|label| joined(std::slice::from_ref(label))).collect();
    let (version, max) = (version.min(i64::MAX as u64), asked.max);
    let mut values: Vec<&dyn ToSql> = vec![&version, &index];
    values.extend(labels.iter().map(|label| label as &dyn ToSql));
    values.push(&max);
    let rows = statement.query_map(&values[..], finished_of)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map(Ok)
}

fn finished_of(row: &Row<'_>) -> rusqlite::Result<StoredFinished> {
    let task: [u8; 16] = row.get(2)?;
    Ok(StoredFinished {
        task: TaskId(u128::from_be_bytes(task)),
        ended: Timestamp(row.get(3)?),
        place: HistoryPosition { version: Version(row.get(0)?), index: row.get(1)? },
        record: blob_of(row, 4)?,
        result: None,
        labels: Vec::new(),
    })
}

fn blob_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}
