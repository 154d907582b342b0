//! What a backend has to do to keep a log, and nothing else.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use tokio::sync::{mpsc, watch};

use crate::error::StoreError;
use crate::types::{
    Append, Author, Durability, Head, HistoryQuery, Retention, StoredBatch, StoredFinished, StoredSnapshot,
    Version,
};

/// The most batches that one [`Store::read`] returns.
pub const READ_BATCHES_MAX: usize = 1024;
/// One [`Store::read`] stops after the batch with which it has returned this many bytes.
pub const READ_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most bytes of one [`Store::publish`]: what every backend carries.
pub const PUBLISHED_BYTES_MAX: usize = 7000;
/// The most texts that wait for one subscriber; it misses those that come after them.
pub const UNREAD_MAX: usize = 1024;

/// What a store answers. Boxed, so that `Arc<dyn Store>` works.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps a log of batches, a snapshot, payloads, and the history of finished tasks. Moves bytes; knows no rule of the
/// queue.
///
/// # Callers
///
/// One loop per replica takes a batch of commands, decides them all, appends all events, and only then publishes and
/// answers. Several replicas may share a store: their loops race for each version, and exactly one wins.
///
/// # Errors
///
/// Three kinds, see [`ErrorKind`](crate::ErrorKind): try later; stop; catch up. A store never answers "nothing there"
/// for something that it cannot read.
///
/// # Dropping an answer
///
/// A caller that drops the future of a write before it is ready does not know whether the write happened.
pub trait Store: Send + Sync + 'static {
    /// The name of the store in messages: `memory`, a path, or an address without its secrets.
    fn name(&self) -> &str;

    /// What an `Ok` from [`append`](Store::append) means.
    fn durability(&self) -> Durability;

    /// What an operator should repair in the backend before it loses something, as it is now; `None`: nothing. A store
    /// without a receiver never warns.
    fn warnings(&self) -> Option<watch::Receiver<Option<Arc<str>>>> {
        None
    }

    /// The time by the backend's clock, for all replicas that share the store. `None`: this replica's clock counts.
    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Whether other replicas may use it at the same time. Otherwise everything that ran when it was opened is dead.
    fn is_shared(&self) -> bool {
        false
    }

    /// Where the log ends now.
    fn head(&self) -> Answer<'_, Head>;

    /// Adds one batch, with everything that belongs to it, if the log still ends where the caller expects.
    ///
    /// Returns the new end. Otherwise nothing is changed and the answer is [`Conflict`](StoreError::Conflict): read what
    /// is missing and decide again.
    ///
    /// After [`Unavailable`](StoreError::Unavailable) the batch may or may not be there. Appending the same batch again
    /// is always right, and succeeds if the batch is there already.
    fn append(&self, append: Append) -> Answer<'_, Head>;

    /// Puts an author in line for the append turn: the right to append next, so that replicas append in turn instead of
    /// racing. The append turn is advisory: an append without it is checked like any other.
    ///
    /// An author stands in line once. An append takes its author out of the line, and the batch passes the append turn to
    /// the first author who is left. An author that loses a race is put in line; one that sets [`Append::requeue`] goes
    /// to the end of the line. A store without a line does nothing, and all authors race.
    fn request_append_turn(&self, _author: Author) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The newest batch that this replica knows of without asking, and to whom that batch passed the append turn.
    fn newest(&self) -> Option<(Version, Option<Author>)> {
        None
    }

    /// Sends a text of at most [`PUBLISHED_BYTES_MAX`] bytes to all replicas that [subscribe](Store::subscribe) at this
    /// moment. It is not kept, and may reach none of them.
    fn publish(&self, _text: Arc<str>) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What any replica publishes from now on, this one included, until the connection breaks. A slow subscriber misses
    /// some. `None`: the store passes on nothing.
    fn subscribe(&self) -> Answer<'_, Option<mpsc::Receiver<Arc<str>>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Forgets the batches that this replica keeps at hand, so that the backend is asked again. For a caller that starts
    /// over, or has noticed that the log is another one.
    fn forget_log(&self) {}

    /// The batches after a version, in order and without a gap, at most [`READ_BATCHES_MAX`] and about
    /// [`READ_BYTES_MAX`] at a time. None: the log ends there.
    ///
    /// [`Trimmed`](StoreError::Trimmed) when the next batch is no longer kept: load the snapshot.
    /// [`Conflict`](StoreError::Conflict) when the log does not reach this version.
    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>>;

    /// Waits until the log has grown beyond a version, and returns its end. The answer may be late by as much as the
    /// backend needs to notify. A log that does not reach this version is a [`Conflict`](StoreError::Conflict).
    ///
    /// A caller may stop polling the answer for a while and call other methods: the answer holds nothing that they need.
    fn tail(&self, after: Version) -> Answer<'_, Version>;

    /// The newest snapshot.
    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>>;

    /// Keeps a snapshot in place of an older one; does nothing when there is one as new. A snapshot of something that is
    /// not in the log is a [`Conflict`](StoreError::Conflict).
    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()>;

    /// Forgets the batches up to a version, but none that the snapshot does not hold.
    ///
    /// Leave some before the snapshot: other replicas read them to catch up, and an append can only be recognised as a
    /// repetition while its batch is there.
    fn trim(&self, through: Version) -> Answer<'_, ()>;

    /// A payload.
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>>;

    /// Removes payloads that no batch could remove ([`Append::dropped`]).
    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()>;

    /// A finished task with its result.
    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>>;

    /// The results of some finished tasks, in the order of the question.
    fn results(&self, tasks: Vec<TaskId>) -> Answer<'_, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(tasks.len());
            for task in tasks {
                results.push(self.finished(task).await?.and_then(|finished| finished.result));
            }
            Ok(results)
        })
    }

    /// Finished tasks, the newest first, without results and labels. Fewer than asked for: there are no more.
    fn history(&self, query: HistoryQuery) -> Answer<'_, Vec<StoredFinished>>;

    /// Forgets finished tasks and returns how many.
    fn trim_history(&self, keep: Retention) -> Answer<'_, u64>;
}
