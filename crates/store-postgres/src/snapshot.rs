//! Snapshots, in parts and in a transaction of their own; and trimming the batches that they hold.

use laneway_store::{StoreError, StoredSnapshot, Version};
use laneway_store_remote::Backend;
use tokio_postgres::Error;

use crate::backend::{Postgres, bigint, head_of};
use crate::connect::{Session, query};
use crate::error::from_postgres;

const PART_BYTES: usize = 1024 * 1024;
/// The most batches that one step trims.
const TRIM_STEP: i64 = 1000;

/// A head, and whether the log holds another batch than the given one at its version.
const CHECK: &str =
    "SELECT version, batch, EXISTS (SELECT FROM laneway.log WHERE log.version = $1 AND log.batch <> $2)
                     FROM laneway.head";

impl Postgres {
    pub(crate) async fn read_snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
        let sql = "SELECT snapshot.version, snapshot.batch, snapshot.parts, snapshot_part.bytes
                   FROM laneway.snapshot LEFT JOIN laneway.snapshot_part USING (version) ORDER BY part";
        let rows = query(&self.saver, sql, &[]).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let head = head_of(first.get(0), first.get(1)).ok_or_else(|| self.malformed("the snapshot"))?;
        let parts: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(3)).collect();
        let wanted = first.get::<_, i32>(2) as usize;
        if parts.len() != wanted {
            return Err(StoreError::incomplete_snapshot(self.name(), head.version, parts.len(), wanted));
        }
        Ok(Some(StoredSnapshot { head, record: parts.concat().into() }))
    }

    pub(crate) async fn write_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let _one_at_a_time = self.saving.lock().await;
        // A connection that is not given back is closed, also when this future is dropped half-way. Closing it rolls back
        // its transaction.
        let session = self.saver.take().await?;
        let done = self.save(&session, &snapshot).await;
        if matches!(done, Ok(Ok(()))) {
            self.saver.give_back(session).await;
        }
        done.map_err(|error| from_postgres(self.name(), &error))?
    }

    async fn save(
        &self,
        session: &Session,
        snapshot: &StoredSnapshot,
    ) -> Result<Result<(), StoreError>, Error> {
        let StoredSnapshot { head, record } = snapshot;
        let (version, batch) = (bigint(head.version.0), head.batch.0.to_be_bytes());
        // Another replica that saves one waits, so that the newer of the two stays.
        session.client.batch_execute("BEGIN").await?;
        session.query("LOCK TABLE laneway.snapshot IN SHARE ROW EXCLUSIVE MODE", &[]).await?;
        let rows = session.query(CHECK, &[&version, &&batch[..]]).await?;
        let current = rows.first().and_then(|row| head_of(row.get(0), row.get(1))).unwrap_or_default();
        let is_another = rows.first().is_some_and(|row| row.get(2));
        if head.version > current.version || is_another {
            return Ok(Err(StoreError::Conflict { expected: *head, current }));
        }
        let newest = session.query("SELECT FROM laneway.snapshot WHERE version >= $1", &[&version]).await?;
        if newest.is_empty() {
            session.query("DELETE FROM laneway.snapshot", &[]).await?;
            let parts: Vec<&[u8]> = record.chunks(PART_BYTES).collect();
            let sql = "INSERT INTO laneway.snapshot (version, batch, parts) VALUES ($1, $2, $3)";
            session.query(sql, &[&version, &&batch[..], &(parts.len() as i32)]).await?;
            for (part, bytes) in parts.into_iter().enumerate() {
                let sql = "INSERT INTO laneway.snapshot_part (version, part, bytes) VALUES ($1, $2, $3)";
                session.query(sql, &[&version, &(part as i32), &bytes]).await?;
            }
        }
        session.client.batch_execute("COMMIT").await.map(Ok)
    }

    pub(crate) async fn trim_log(&self, through: Version) -> Result<(), StoreError> {
        let _one_at_a_time = self.saving.lock().await;
        let sql = "DELETE FROM laneway.log WHERE version IN (
                       SELECT version FROM laneway.log
                       WHERE version <= least($1, (SELECT coalesce(max(version), 0) FROM laneway.snapshot))
                       ORDER BY version LIMIT $2
                   ) RETURNING 1";
        loop {
            let gone = query(&self.saver, sql, &[&bigint(through.0), &TRIM_STEP]).await?;
            if gone.len() < TRIM_STEP as usize {
                return Ok(());
            }
        }
    }
}
