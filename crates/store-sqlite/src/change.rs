//! Everything that is written, each as one step inside the writer's transaction.

use bytes::Bytes;
use laneway_core::BlobId;
use laneway_store::{Append, BatchId, Head, Retention, StoreError, Version};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use crate::schema::{SHORT_BYTES_MAX, id_bytes, joined};

/// The most rows that one step removes, so that appends never wait long.
const ROWS_PER_STEP: u64 = 512;
/// The most parts of a snapshot that one step removes; each is large.
const PARTS_PER_STEP: u64 = 8;
/// How many pages one step gives back to the file system.
const PAGES_PER_STEP: u32 = 512;

/// One thing to write.
pub(crate) enum Change {
    /// A batch and what belongs to it.
    Append(Append),
    /// Remove payloads.
    RemoveBlobs(Vec<BlobId>),
    /// Keep one part of a snapshot that is not complete yet.
    SnapshotPart { version: Version, part: u64, bytes: Bytes },
    /// All parts are there: from now on this is the snapshot.
    SnapshotDone { head: Head, parts: u64 },
    /// Remove some parts that belong to no snapshot.
    RemoveParts,
    /// Remove some batches up to this version.
    Trim(Version),
    /// Remove some finished tasks.
    TrimHistory(Retention),
    /// Give some unused room back to the file system.
    Shrink,
}

/// The result of a change.
#[derive(Debug)]
pub(crate) enum Done {
    /// The log ends here.
    Head(Head),
    /// This many rows were removed.
    Removed(u64),
    /// It was written.
    Written,
}

/// What the writer knows without a query.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    /// Where the log ends.
    pub(crate) head: Head,
    /// How many finished tasks there are; `None`: it has to count.
    pub(crate) finished: Option<u64>,
}

/// Refused, or the database failed.
pub(crate) type Outcome = rusqlite::Result<Result<Done, StoreError>>;

impl Change {
    /// Writes it. An outer error means that the whole transaction must be undone.
    pub(crate) fn make(&self, db: &Connection, known: &mut Known) -> Outcome {
        let removed = |rows: usize| Ok(Ok(Done::Removed(rows as u64)));
        match self {
            Change::Append(append) => make_append(append, db, known),
            Change::RemoveBlobs(ids) => remove_blobs(db, ids).map(|()| Ok(Done::Written)),
            Change::SnapshotPart { version, part, bytes } => {
                let sql = "INSERT OR REPLACE INTO snapshot_part (version, part, bytes) VALUES (?, ?, ?)";
                db.prepare_cached(sql)?.execute(params![version.0, part, &bytes[..]])?;
                Ok(Ok(Done::Written))
            }
            Change::SnapshotDone { head, parts } => finish_snapshot(db, *head, *parts, known.head),
            Change::RemoveParts => removed(
                db.prepare_cached(
                    "DELETE FROM snapshot_part WHERE rowid IN (SELECT rowid FROM snapshot_part
                     WHERE version NOT IN (SELECT version FROM snapshot) LIMIT ?)",
                )?
                .execute([PARTS_PER_STEP])?,
            ),
            Change::Trim(through) => removed(
                db.prepare_cached(
                    "DELETE FROM log WHERE version IN (SELECT version FROM log
                     WHERE version <= min(?, ifnull((SELECT max(version) FROM snapshot), 0))
                     ORDER BY version LIMIT ?)",
                )?
                .execute(params![through.0.min(i64::MAX as u64), ROWS_PER_STEP])?,
            ),
            Change::TrimHistory(keep) => trim_history(db, *keep, known),
            Change::Shrink => shrink(db),
        }
    }
}

fn make_append(append: &Append, db: &Connection, known: &mut Known) -> Outcome {
    let head = append.outcome();
    if append.expected != known.head {
        // The same batch again: the answer to the first append was lost.
        if batch_at(db, head.version)? == Some(append.batch) {
            return Ok(Ok(Done::Head(head)));
        }
        return Ok(Err(StoreError::Conflict { expected: append.expected, current: known.head }));
    }
    db.prepare_cached("INSERT INTO log (version, batch, record) VALUES (?, ?, ?)")?.execute(params![
        head.version.0,
        id_bytes(append.batch.0),
        &append.record[..]
    ])?;
    let mut insert_blob = db.prepare_cached("INSERT OR REPLACE INTO blob (id, record) VALUES (?, ?)")?;
    for (id, record) in append.blobs.iter() {
        insert_blob.execute(params![id_bytes(id.0.get()), &record[..]])?;
    }
    remove_blobs(db, &append.dropped)?;
    add_to_history(append, db, known)?;
    known.head = head;
    Ok(Ok(Done::Head(head)))
}

/// Adds the finished tasks of an append, in place of older ones with the same ids.
fn add_to_history(append: &Append, db: &Connection, known: &mut Known) -> rusqlite::Result<()> {
    // Looked up once for all rows.
    let mut forget = db.prepare_cached("DELETE FROM finished WHERE task = ?")?;
    let mut forget_result = db.prepare_cached("DELETE FROM result WHERE task = ?")?;
    let mut insert = db.prepare_cached(
        "INSERT INTO finished (version, position, task, ended, record, labels, result) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut insert_result = db.prepare_cached("INSERT INTO result (task, record) VALUES (?, ?)")?;
    for (place, finished) in append.places().zip(append.finished.iter()) {
        let task = id_bytes(finished.task.0);
        let ended = finished.ended.0.min(i64::MAX as u64);
        let labels = joined(&finished.labels);
        let result = finished.result.as_deref();
        let short = result.filter(|result| result.len() <= SHORT_BYTES_MAX);
        let long = result.filter(|_| short.is_none());
        let mut keep = || {
            let record = &finished.record[..];
            insert.execute(params![place.version.0, place.index, task, ended, record, labels, short])
        };
        let older = match keep() {
            // A task that ends again is rare, so no query looks for it first.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                forget_result.execute([task])?;
                let older = forget.execute([task])?;
                keep()?;
                older
            }
            kept => kept.map(|_| 0)?,
        };
        if let Some(result) = long {
            insert_result.execute(params![task, result])?;
        }
        known.finished = known.finished.map(|count| count + 1 - older as u64);
    }
    Ok(())
}

fn batch_at(db: &Connection, version: Version) -> rusqlite::Result<Option<BatchId>> {
    let mut statement = db.prepare_cached("SELECT batch FROM log WHERE version = ?")?;
    let batch = statement.query_row([version.0.min(i64::MAX as u64)], |row| row.get::<_, [u8; 16]>(0));
    Ok(batch.optional()?.map(|bytes| BatchId(u128::from_be_bytes(bytes))))
}

fn remove_blobs(db: &Connection, ids: &[BlobId]) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached("DELETE FROM blob WHERE id = ?")?;
    ids.iter().try_for_each(|id| statement.execute([id_bytes(id.0.get())]).map(drop))
}

fn finish_snapshot(db: &Connection, head: Head, parts: u64, current: Head) -> Outcome {
    let known = batch_at(db, head.version)?;
    if head.version > current.version || known.is_some_and(|batch| batch != head.batch) {
        return Ok(Err(StoreError::Conflict { expected: head, current }));
    }
    let newest: Option<u64> = db.query_row("SELECT max(version) FROM snapshot", [], |row| row.get(0))?;
    if newest.is_none_or(|newest| newest < head.version.0) {
        db.execute("DELETE FROM snapshot", [])?;
        let sql = "INSERT INTO snapshot (version, batch, parts) VALUES (?, ?, ?)";
        db.execute(sql, params![head.version.0, id_bytes(head.batch.0), parts])?;
    }
    Ok(Ok(Done::Written))
}

fn trim_history(db: &Connection, keep: Retention, known: &mut Known) -> Outcome {
    let count = match known.finished {
        Some(count) => count,
        None => db.query_row("SELECT count(*) FROM finished", [], |row| row.get(0))?,
    };
    let surplus = keep.count_max.map_or(0, |max| count.saturating_sub(max));
    let since = keep.ended_since.map_or(0, |since| since.0.min(i64::MAX as u64));
    let mut statement = db.prepare_cached(
        "SELECT version, position, task, ended FROM finished ORDER BY version, position LIMIT ?",
    )?;
    let oldest = statement.query_map([ROWS_PER_STEP], |row| {
        Ok((row.get::<_, u64>(0)?, row.get::<_, u32>(1)?, row.get::<_, [u8; 16]>(2)?, row.get::<_, u64>(3)?))
    })?;
    let mut removed = 0;
    for row in oldest.collect::<rusqlite::Result<Vec<_>>>()? {
        let (version, position, task, ended) = row;
        if ended >= since && removed >= surplus {
            break;
        }
        let sql = "DELETE FROM finished WHERE version = ? AND position = ?";
        db.prepare_cached(sql)?.execute(params![version, position])?;
        db.prepare_cached("DELETE FROM result WHERE task = ?")?.execute([task])?;
        removed += 1;
    }
    known.finished = Some(count - removed);
    Ok(Ok(Done::Removed(removed)))
}

/// Gives pages back when more than half of the file is unused. Otherwise appends will use them again.
fn shrink(db: &Connection) -> Outcome {
    let number = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
    let (unused, all) = (number("freelist_count")?, number("page_count")?);
    if unused < PAGES_PER_STEP || unused < all / 2 {
        return Ok(Ok(Done::Removed(0)));
    }
    db.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"))?;
    Ok(Ok(Done::Removed(u64::from(unused - number("freelist_count")?))))
}
