//! What a backend has to do: its commands or its SQL.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{
    Append, Author, Durability, Head, HistoryQuery, Retention, StoreError, StoredBatch, StoredFinished,
    StoredSnapshot, Version,
};
use tokio::sync::mpsc;

use crate::recent::Recent;

/// A part of the log, as one command reads it.
#[derive(Debug, Default)]
pub struct LogPage {
    /// Batches in order, without a gap between them.
    pub batches: Vec<StoredBatch>,
    /// To whom the last of them passed the append turn.
    pub append_turn: Option<Author>,
}

/// A backend that many replicas reach over a network.
///
/// The methods do what those of [`Store`](laneway_store::Store) promise, except where they say otherwise. Every command
/// may be repeated: a batch is never written twice.
pub trait Backend: Send + Sync + Sized + 'static {
    /// How to open it.
    type Options: Default + Send;
    /// The connection on which it follows the log, with what was heard on it.
    type Follower: Send + 'static;

    /// Connects to it and checks that it can keep a log; also returns what an acknowledged write means there.
    fn open(
        url: &str,
        options: Self::Options,
    ) -> impl Future<Output = Result<(Self, Durability), StoreError>> + Send;

    /// The name of the store, without secrets.
    fn name(&self) -> &str;

    /// The batches that this replica has heard of.
    fn recent(&self) -> &Recent;

    /// What an operator should repair in it before it loses something.
    fn warning(&self) -> impl Future<Output = Result<Option<String>, StoreError>> + Send {
        std::future::ready(Ok(None))
    }

    /// The backend's clock.
    fn time(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// Where the log ends.
    fn head(&self) -> impl Future<Output = Result<Head, StoreError>> + Send;

    /// Appends, and notes in [`recent`](Backend::recent) to whom the batch passed the append turn.
    fn append(&self, append: Append) -> impl Future<Output = Result<Head, StoreError>> + Send;

    /// Puts an author in line for the append turn, once. The author is never 0.
    fn request_append_turn(&self, author: Author) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Sends a text to all subscribers.
    fn publish(&self, text: Arc<str>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Passes on what is published, until the subscriber is gone or the connection breaks. A text for which the
    /// subscriber has no room is dropped. `false`: the backend passes on nothing.
    fn subscribe(
        &self,
        subscriber: mpsc::Sender<Arc<str>>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The first batches after a version, at most [`PAGE_BATCHES`](crate::PAGE_BATCHES) of them.
    fn page(&self, after: Version) -> impl Future<Output = Result<LogPage, StoreError>> + Send;

    /// Prepares to follow the log.
    fn follower(&self) -> Self::Follower;

    /// Waits until the log has grown beyond `last`, or for a few seconds, and returns how far it goes. Returns at once
    /// without a `last`. A log that has become shorter is an error.
    fn grown(
        &self,
        follower: &mut Self::Follower,
        last: Option<Version>,
    ) -> impl Future<Output = Result<Version, StoreError>> + Send;

    /// The newest snapshot.
    fn snapshot(&self) -> impl Future<Output = Result<Option<StoredSnapshot>, StoreError>> + Send;

    /// Keeps a snapshot in place of an older one.
    fn save_snapshot(&self, snapshot: StoredSnapshot) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Forgets the batches up to a version, but none that the snapshot does not hold.
    fn trim(&self, through: Version) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// A payload.
    fn blob(&self, id: BlobId) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;

    /// Removes some hundred payloads.
    fn remove_blobs(&self, ids: &[BlobId]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// A finished task with its result.
    fn finished(
        &self,
        task: TaskId,
    ) -> impl Future<Output = Result<Option<StoredFinished>, StoreError>> + Send;

    /// The results of some finished tasks.
    fn results(
        &self,
        tasks: Vec<TaskId>,
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, StoreError>> + Send;

    /// Finished tasks, the newest first.
    fn history(
        &self,
        query: HistoryQuery,
    ) -> impl Future<Output = Result<Vec<StoredFinished>, StoreError>> + Send;

    /// Forgets finished tasks and returns how many.
    fn trim_history(&self, keep: Retention) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// The backend answered something that Laneway does not write.
    fn malformed(&self, what: &str) -> StoreError {
        StoreError::unreadable(self.name(), format!("what it returns for {what} is not what Laneway writes"))
    }
}
