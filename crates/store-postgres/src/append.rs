//! Appending: one statement, which happens as a whole or not at all.

use std::collections::HashSet;

use laneway_store::{Append, Author, Head, StoreError, StoredFinished};
use laneway_store_remote::Backend;

use crate::author::{author_of, number_of};
use crate::backend::{Postgres, bigint, head_of};
use crate::connect::query;
use crate::parameter::Parameter;

const APPEND: &str = include_str!("append.sql");
/// The end of the log, and the batch of one version with the author to whom it passed the append turn.
const FATE: &str = "SELECT head.version, head.batch, log.batch, log.append_turn
    FROM laneway.head LEFT JOIN laneway.log ON log.version = $1";

impl Postgres {
    pub(crate) async fn append_batch(&self, append: Append) -> Result<Head, StoreError> {
        let head = append.outcome();
        if let Some(append_turn) = self.try_append(&append).await? {
            self.recent().note(head.version, author_of(append_turn));
            return Ok(head);
        }
        let version = bigint(head.version.0);
        let rows = query(&self.writer, FATE, &[&version]).await?;
        let row = rows.first().ok_or_else(|| self.malformed("the head"))?;
        let current = head_of(row.get(0), row.get(1)).ok_or_else(|| self.malformed("the head"))?;
        // The same batch again: the answer to the first append was lost.
        if row.get::<_, Option<&[u8]>>(2) == Some(&append.batch.0.to_be_bytes()) {
            self.recent().note(head.version, row.get::<_, Option<i64>>(3).and_then(author_of));
            return Ok(head);
        }
        let author = append.batch.author();
        if author != Author(0) {
            self.request_append_turn(author).await?;
        }
        Err(StoreError::Conflict { expected: append.expected, current })
    }

    /// The number of the author to whom the batch passed the append turn; `None`: the log ends elsewhere, and nothing
    /// changed.
    async fn try_append(&self, append: &Append) -> Result<Option<i64>, StoreError> {
        let head = append.outcome();
        let (to, from) = (bigint(head.version.0), bigint(append.expected.version.0));
        let (batch, before) = (append.batch.0.to_be_bytes(), append.expected.batch.0.to_be_bytes());
        let dropped: HashSet<_> = append.dropped.iter().collect();
        let id = |id: &laneway_core::BlobId| id.0.get().to_be_bytes();
        // One statement sees the tables as they were before it. So a payload that the batch also drops is not inserted,
        // and of two with the same id only the last is.
        let mut seen = HashSet::new();
        let blobs = append.blobs.iter().rev().filter(|(id, _)| !dropped.contains(id) && seen.insert(*id));
        let (blob_ids, blobs): (Vec<_>, Vec<_>) = blobs.map(|(blob, record)| (id(blob), &record[..])).unzip();
        let dropped: Vec<_> = append.dropped.iter().map(id).collect();
        let finished = last_of_each(&append.finished);
        let positions: Vec<i32> = finished.iter().map(|(position, _)| *position).collect();
        let tasks: Vec<_> = finished.iter().map(|(_, done)| done.task.0.to_be_bytes()).collect();
        let ended: Vec<i64> = finished.iter().map(|(_, done)| bigint(done.ended.0)).collect();
        let records: Vec<&[u8]> = finished.iter().map(|(_, done)| &done.record[..]).collect();
        let results: Vec<Option<&[u8]>> = finished.iter().map(|(_, done)| done.result.as_deref()).collect();
        // A label has no control characters.
        let labels: Vec<String> = finished.iter().map(|(_, done)| done.labels.join("\n")).collect();
        let ids: Vec<&[u8]> = blob_ids.iter().map(|id| &id[..]).collect();
        let dropped: Vec<&[u8]> = dropped.iter().map(|id| &id[..]).collect();
        let tasks: Vec<&[u8]> = tasks.iter().map(|task| &task[..]).collect();
        let author = append.batch.author();
        let requeue = append.requeue && author != Author(0);
        let parameters: &[&dyn Parameter] = &[
            &to,
            &&batch[..],
            &from,
            &&before[..],
            &&append.record[..],
            &ids,
            &blobs,
            &dropped,
            &positions,
            &tasks,
            &ended,
            &records,
            &results,
            &self.address().schema,
            &labels,
            &number_of(author),
            &requeue,
        ];
        let rows = query(&self.writer, APPEND, parameters).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// The last end of each task, with its position.
fn last_of_each(finished: &[StoredFinished]) -> Vec<(i32, &StoredFinished)> {
    let mut seen = HashSet::new();
    let mut last: Vec<_> =
        finished.iter().enumerate().rev().filter(|(_, done)| seen.insert(done.task)).collect();
    last.reverse();
    last.into_iter().map(|(position, done)| (position as i32, done)).collect()
}
