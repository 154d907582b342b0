//! Finished tasks.

use bytes::Bytes;
use laneway_core::{TaskId, Timestamp};
use laneway_store::{HistoryPosition, HistoryQuery, Retention, StoreError, StoredFinished, Version};
use laneway_store_remote::Backend;
use tokio_postgres::Row;

use crate::backend::{Postgres, bigint};
use crate::connect::query;

/// The most tasks that one step forgets.
const TRIM_STEP: i64 = 512;

impl Postgres {
    pub(crate) async fn read_finished(&self, task: TaskId) -> Result<Option<StoredFinished>, StoreError> {
        let sql =
            "SELECT version, position, task, ended, record, result FROM laneway.finished WHERE task = $1";
        let rows = self.read_rows(sql, &[&&task.0.to_be_bytes()[..]]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let result = row.get::<_, Option<&[u8]>>(5).map(Bytes::copy_from_slice);
        Ok(Some(StoredFinished { result, ..self.finished_of(row)? }))
    }

    pub(crate) async fn list_finished(
        &self,
        wanted: HistoryQuery,
    ) -> Result<Vec<StoredFinished>, StoreError> {
        let sql = "SELECT version, position, task, ended, record FROM laneway.finished
                   WHERE (version, position) < ($1, $2) AND labels @> $4 ORDER BY version DESC, position DESC LIMIT $3";
        let before = wanted.before.unwrap_or(HistoryPosition { version: Version(u64::MAX), index: 0 });
        let labels: Vec<&str> = wanted.labels.iter().map(|label| &**label).collect();
        let index = i32::try_from(before.index).unwrap_or(i32::MAX);
        let rows = self
            .read_rows(sql, &[&bigint(before.version.0), &index, &i64::from(wanted.max), &labels])
            .await?;
        rows.iter().map(|row| self.finished_of(row)).collect()
    }

    fn finished_of(&self, row: &Row) -> Result<StoredFinished, StoreError> {
        let task: [u8; 16] =
            row.get::<_, &[u8]>(2).try_into().map_err(|_| self.malformed("a finished task"))?;
        let version = Version(row.get::<_, i64>(0) as u64);
        Ok(StoredFinished {
            task: TaskId(u128::from_be_bytes(task)),
            ended: Timestamp(row.get::<_, i64>(3) as u64),
            place: HistoryPosition { version, index: row.get::<_, i32>(1) as u32 },
            record: Bytes::copy_from_slice(row.get(4)),
            result: None,
            labels: Vec::new(),
        })
    }

    pub(crate) async fn trim_finished(&self, keep: Retention) -> Result<u64, StoreError> {
        let _one_at_a_time = self.saving.lock().await;
        let counted = match keep.count_max {
            Some(_) => query(&self.saver, "SELECT count(*) FROM laneway.finished", &[]).await?,
            None => Vec::new(),
        };
        let count = counted.first().map_or(0, |row| row.get::<_, i64>(0) as u64);
        let mut surplus = keep.count_max.map_or(0, |max| count.saturating_sub(max));
        let since = keep.ended_since.map_or(0, |since| bigint(since.0));
        let mut removed = 0;
        loop {
            let gone = self.forget_oldest(surplus, since).await?;
            (removed, surplus) = (removed + gone, surplus.saturating_sub(gone));
            if gone < TRIM_STEP as u64 {
                return Ok(removed);
            }
        }
    }

    /// Forgets one step of the oldest tasks: the surplus, and then those that are too old.
    async fn forget_oldest(&self, surplus: u64, since: i64) -> Result<u64, StoreError> {
        let sql = "WITH oldest AS (
                       SELECT task, ended, row_number() OVER (ORDER BY version, position) AS number
                       FROM (SELECT * FROM laneway.finished ORDER BY version, position LIMIT $1) AS first
                   ), stays AS (
                       SELECT coalesce(min(number), $1 + 1) AS number FROM oldest WHERE number > $2 AND ended >= $3
                   )
                   DELETE FROM laneway.finished USING oldest, stays
                   WHERE finished.task = oldest.task AND oldest.number < stays.number RETURNING 1";
        let gone = query(&self.saver, sql, &[&TRIM_STEP, &bigint(surplus), &since]).await?;
        Ok(gone.len() as u64)
    }
}
