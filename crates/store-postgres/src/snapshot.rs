//! Snapshots, in parts and in a transaction of their own, beside the appends; and trimming what they hold.

use laneway_store::{Damage, Record, StoreError, StoredSnapshot, Version};
use tokio_postgres::Error;

use crate::append::bigint;
use crate::failure::from_postgres;
use crate::link::Session;
use crate::log::head_of;
use crate::store::Shared;

const PART_BYTES: usize = 1024 * 1024;
/// Batches that are trimmed at once.
const TRIM_STEP: i64 = 1000;

/// A head, and whether the log holds another batch than the given one at its version.
const CHECK: &str =
    "SELECT version, batch, EXISTS (SELECT FROM log WHERE log.version = $1 AND log.batch <> $2)
                     FROM head";

impl Shared {
    pub(crate) async fn snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
        let sql = "SELECT snapshot.version, snapshot.batch, snapshot.parts, snapshot_part.bytes
                   FROM snapshot LEFT JOIN snapshot_part USING (version) ORDER BY part";
        let rows = self.saver.query(sql, &[]).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let head = head_of(first.get(0), first.get(1)).ok_or_else(|| self.nonsense("the snapshot"))?;
        let parts: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(3)).collect();
        let wanted = first.get::<_, i32>(2) as usize;
        if parts.len() != wanted {
            let reason = format!("{} of its {wanted} parts are there", parts.len()).into();
            return Err(StoreError::Corrupt {
                store: self.address.name.as_str().into(),
                record: Some(Record::Snapshot(head.version)),
                damage: Damage::Unreadable { reason },
            });
        }
        Ok(Some(StoredSnapshot { head, record: parts.concat().into() }))
    }

    pub(crate) async fn save_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let _one_at_a_time = self.saving.lock().await;
        // Nobody else has the connection meanwhile, and one that is not given back is closed, which undoes what was
        // begun on it: also when this is dropped half-way.
        let session = self.saver.take().await?;
        let done = self.save(&session, &snapshot).await;
        if matches!(done, Ok(Ok(()))) {
            self.saver.give_back(session).await;
        }
        done.map_err(|error| from_postgres(&self.address.name, &error))?
    }

    async fn save(
        &self,
        session: &Session,
        snapshot: &StoredSnapshot,
    ) -> Result<Result<(), StoreError>, Error> {
        let StoredSnapshot { head, record } = snapshot;
        let (version, batch) = (bigint(head.version.0), head.batch.0.to_be_bytes());
        // Whoever else saves one waits, so that the newer of the two stays.
        session.client.batch_execute("BEGIN; LOCK TABLE snapshot IN SHARE ROW EXCLUSIVE MODE").await?;
        let rows = session.query(CHECK, &[&version, &&batch[..]]).await?;
        let current = rows.first().and_then(|row| head_of(row.get(0), row.get(1))).unwrap_or_default();
        let is_another = rows.first().is_some_and(|row| row.get(2));
        if head.version > current.version || is_another {
            return Ok(Err(StoreError::Conflict { expected: *head, current }));
        }
        let newest = session.query("SELECT FROM snapshot WHERE version >= $1", &[&version]).await?;
        if newest.is_empty() {
            session.query("DELETE FROM snapshot", &[]).await?;
            let parts: Vec<&[u8]> = record.chunks(PART_BYTES).collect();
            let sql = "INSERT INTO snapshot (version, batch, parts) VALUES ($1, $2, $3)";
            session.query(sql, &[&version, &&batch[..], &(parts.len() as i32)]).await?;
            for (part, bytes) in parts.into_iter().enumerate() {
                let sql = "INSERT INTO snapshot_part (version, part, bytes) VALUES ($1, $2, $3)";
                session.query(sql, &[&version, &(part as i32), &bytes]).await?;
            }
        }
        session.client.batch_execute("COMMIT").await.map(Ok)
    }

    pub(crate) async fn trim(&self, through: Version) -> Result<(), StoreError> {
        // Not between the statements of a snapshot.
        let _one_at_a_time = self.saving.lock().await;
        let sql = "DELETE FROM log WHERE version IN (
                       SELECT version FROM log
                       WHERE version <= least($1, (SELECT coalesce(max(version), 0) FROM snapshot))
                       ORDER BY version LIMIT $2
                   ) RETURNING 1";
        loop {
            let gone = self.saver.query(sql, &[&bigint(through.0), &TRIM_STEP]).await?;
            if gone.len() < TRIM_STEP as usize {
                return Ok(());
            }
        }
    }
}
