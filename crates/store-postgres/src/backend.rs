//! Postgres as a backend: the statement for each method of a store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Backoff, BlobId, TaskId, Timestamp};
use laneway_store::{
    Append, Author, BatchId, Durability, Head, HistoryQuery, Retention, StoreError, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use laneway_store_remote::{Backend, Link, LogPage, PAGE_BATCHES, Recent};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::address::Address;
use crate::author::{author_of, number_of};
use crate::connect::{Connector, Hint, hint_of, query};
use crate::error::from_postgres;
use crate::options::Options;
use crate::parameter::Parameter;
use crate::schema;

/// How often to look at the end of the log, or of a connection, without a notification: one may be lost.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The waits between two questions where the log ends, behind a pooler that passes on no notification.
const ASK_AGAIN: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(100));
/// How much of the schema's name is in that of the channel.
const CHANNEL_BYTES_MAX: usize = 52;
/// Puts an author in line, once. It need not be on disk: what a crash loses of the line costs some waiting.
const REQUEST_APPEND_TURN: &str = "UPDATE laneway.head SET line = line || $1::bigint
    WHERE NOT $1 = ANY (line) AND set_config('synchronous_commit', 'off', true) = 'off'";

/// A log in one schema of a Postgres.
pub struct Postgres {
    pub(crate) writer: Link<Connector>,
    pub(crate) reader: Link<Connector>,
    pub(crate) saver: Link<Connector>,
    /// Locked by the user of the saver's connection.
    pub(crate) saving: Mutex<()>,
    recent: Recent,
}

/// A connection that receives a notification of each append.
pub struct Follower {
    link: Link<Connector>,
    hints: watch::Receiver<Hint>,
    /// How long to wait before the next question, where nothing is notified.
    pause: Backoff,
}

impl Postgres {
    pub(crate) fn address(&self) -> &Address {
        &self.writer.connector().address
    }

    pub(crate) async fn read_rows(
        &self,
        sql: &'static str,
        parameters: &[&dyn Parameter],
    ) -> Result<Vec<Row>, StoreError> {
        query(&self.reader, sql, parameters).await
    }

    /// Whether a pooler gives each transaction another connection, and so passes on no notification.
    fn is_pooled(&self) -> bool {
        self.writer.connector().is_pooled
    }

    /// Names of channels are short. A replica ignores texts about tasks that it does not know.
    fn channel(&self) -> String {
        let schema = &self.address().schema;
        format!("{} published", &schema[..schema.floor_char_boundary(CHANNEL_BYTES_MAX)])
    }
}

impl Backend for Postgres {
    type Options = Options;
    type Follower = Follower;

    async fn open(url: &str, options: Options) -> Result<(Postgres, Durability), StoreError> {
        let connector = Connector::new(Address::parse(url, &options.namespace)?, options.timeout);
        let connector = connector.find_pooler().await?;
        let postgres = Postgres {
            writer: Link::new(connector.clone()),
            reader: Link::new(connector.clone()),
            saver: Link::new(connector),
            saving: Mutex::new(()),
            recent: Recent::default(),
        };
        let session = postgres.writer.connection().await?;
        let durability = schema::durability(&session.client).await;
        let durability = durability.map_err(|error| from_postgres(postgres.name(), &error))?;
        Ok((postgres, durability))
    }

    fn name(&self) -> &str {
        &self.address().name
    }

    fn recent(&self) -> &Recent {
        &self.recent
    }

    async fn time(&self) -> Result<Timestamp, StoreError> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let rows = self.read_rows(sql, &[]).await?;
        let millis = rows.first().and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok());
        millis.map(Timestamp).ok_or_else(|| self.malformed("the time"))
    }

    async fn head(&self) -> Result<Head, StoreError> {
        let rows = self.read_rows("SELECT version, batch FROM laneway.head", &[]).await?;
        let head = rows.first().and_then(|row| head_of(row.get(0), row.get(1)));
        head.ok_or_else(|| self.malformed("the head"))
    }

    async fn append(&self, append: Append) -> Result<Head, StoreError> {
        self.append_batch(append).await
    }

    async fn request_append_turn(&self, author: Author) -> Result<(), StoreError> {
        query(&self.writer, REQUEST_APPEND_TURN, &[&number_of(author)]).await.map(drop)
    }

    async fn publish(&self, text: Arc<str>) -> Result<(), StoreError> {
        self.read_rows("SELECT pg_notify($1, $2)", &[&self.channel(), &&*text]).await.map(drop)
    }

    async fn subscribe(&self, subscriber: mpsc::Sender<Arc<str>>) -> Result<bool, StoreError> {
        if self.is_pooled() {
            return Ok(false);
        }
        let own = subscriber.clone();
        // A slow subscriber misses it.
        let pass_on = move |text: &str| drop(own.try_send(text.into()));
        let link = self.writer.connector().listen(self.channel(), pass_on);
        let session = link.connection().await?;
        tokio::spawn(async move {
            // The connection ends with the link.
            let _link = link;
            while !session.client.is_closed() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = subscriber.closed() => return,
                }
            }
        });
        Ok(true)
    }

    async fn page(&self, after: Version) -> Result<LogPage, StoreError> {
        let sql = "SELECT version, record, append_turn FROM laneway.log WHERE version > $1 ORDER BY version LIMIT $2";
        let rows = self.read_rows(sql, &[&bigint(after.0), &(PAGE_BATCHES as i64)]).await?;
        let batch = |row: &Row| {
            let version = Version(row.get::<_, i64>(0) as u64);
            StoredBatch { version, record: Bytes::copy_from_slice(row.get(1)) }
        };
        let append_turn = rows.last().and_then(|row| author_of(row.get(2)));
        Ok(LogPage { batches: rows.iter().map(batch).collect(), append_turn })
    }

    fn follower(&self) -> Follower {
        let (newest, hints) = watch::channel(Hint::default());
        let note = move |payload: &str| {
            if let Some(hint) = hint_of(payload) {
                newest.send_replace(hint);
            }
        };
        let connector = self.writer.connector();
        let link = if self.is_pooled() {
            Link::new(connector.clone())
        } else {
            connector.listen(self.address().schema.clone(), note)
        };
        Follower { link, hints, pause: ASK_AGAIN }
    }

    async fn grown(&self, follower: &mut Follower, last: Option<Version>) -> Result<Version, StoreError> {
        if self.is_pooled() && last.is_some() {
            tokio::time::sleep(follower.pause.next_wait()).await;
        } else if let Some(last) = last {
            while let Ok(Ok(())) = timeout(LOOK_EVERY, follower.hints.changed()).await {
                let (version, append_turn) = *follower.hints.borrow_and_update();
                if version > last {
                    self.recent.note(version, append_turn);
                    return Ok(version);
                }
            }
        }
        let sql = "SELECT version, batch, append_turn FROM laneway.head";
        let rows = query(&follower.link, sql, &[]).await?;
        let row = rows.first().ok_or_else(|| self.malformed("the head"))?;
        let head = head_of(row.get(0), row.get(1)).ok_or_else(|| self.malformed("the head"))?;
        if let Some(last) = last.filter(|last| head.version < *last) {
            return Err(StoreError::beyond_end(last, head));
        }
        self.recent.note(head.version, author_of(row.get(2)));
        if last.is_none_or(|last| head.version > last) {
            follower.pause.reset();
        }
        Ok(head.version)
    }

    async fn snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
        self.read_snapshot().await
    }

    async fn save_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        self.write_snapshot(snapshot).await
    }

    async fn trim(&self, through: Version) -> Result<(), StoreError> {
        self.trim_log(through).await
    }

    async fn blob(&self, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        let id = id.0.get().to_be_bytes();
        let rows = self.read_rows("SELECT record FROM laneway.blob WHERE id = $1", &[&&id[..]]).await?;
        Ok(rows.first().map(|row| Bytes::copy_from_slice(row.get(0))))
    }

    async fn remove_blobs(&self, ids: &[BlobId]) -> Result<(), StoreError> {
        let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.0.get().to_be_bytes().to_vec()).collect();
        self.read_rows("DELETE FROM laneway.blob WHERE id = ANY ($1)", &[&ids]).await.map(drop)
    }

    async fn finished(&self, task: TaskId) -> Result<Option<StoredFinished>, StoreError> {
        self.read_finished(task).await
    }

    async fn results(&self, tasks: Vec<TaskId>) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut results = Vec::with_capacity(tasks.len());
        for task in tasks {
            results.push(self.finished(task).await?.and_then(|finished| finished.result));
        }
        Ok(results)
    }

    async fn history(&self, query: HistoryQuery) -> Result<Vec<StoredFinished>, StoreError> {
        self.list_finished(query).await
    }

    async fn trim_history(&self, keep: Retention) -> Result<u64, StoreError> {
        self.trim_finished(keep).await
    }
}

/// A number as Postgres has them. Ours never come near the end of those.
pub(crate) fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A head from its columns; `None`: they hold something else.
pub(crate) fn head_of(version: i64, batch: &[u8]) -> Option<Head> {
    let batch = BatchId(u128::from_be_bytes(batch.try_into().ok()?));
    Some(Head { version: Version(u64::try_from(version).ok()?), batch })
}
