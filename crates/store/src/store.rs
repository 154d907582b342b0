//! What an engine has to do to keep a log, and nothing else.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use tokio::sync::mpsc;

use crate::error::StoreError;

/// The most batches that one [`Store::read`] returns.
pub const READ_BATCHES_MAX: usize = 1024;
/// One [`Store::read`] stops after the batch with which it has returned so many bytes.
pub const READ_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most bytes of one [`Store::say`]: what every engine carries.
pub const WORDS_BYTES_MAX: usize = 7000;

/// What a store promises to answer. Boxed, so that `Arc<dyn Store>` works.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// How many batches the log has had since it began; trimming does not count back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Identifies one batch for ever, so that a batch whose fate is unknown can be recognised in the log. Whoever
/// makes a batch chooses it at random.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u128);

/// Who makes batches: the upper half of their ids, which each process that shares a store chooses at random for
/// itself. 0 is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Author(pub u64);

/// Where a log ends: its version and the batch that brought it there.
///
/// The batch is part of it because an engine may lose its last writes at a failover and reach the same
/// version again with others: whoever stood on the lost ones must notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// How far.
    pub version: Version,
    /// By which batch.
    pub batch: BatchId,
}

/// What becomes part of a store in one step, or not at all.
///
/// All values are sealed records (see [`Log`](crate::Log)), which a store keeps as they are. A clone costs the same
/// however much there is in it, because an append whose fate is unknown is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Where the log must end for this to follow.
    pub expected: Head,
    /// Which batch this is.
    pub batch: BatchId,
    /// The batch.
    pub record: Bytes,
    /// Payloads that its events refer to. One that is there already is replaced.
    pub blobs: Arc<[(BlobId, Bytes)]>,
    /// Payloads that nobody needs after this batch. One that is not there is none the worse.
    pub dropped: Arc<[BlobId]>,
    /// Tasks that ended with this batch, in that order.
    pub finished: Arc<[StoredFinished]>,
    /// Its author will have more to append, and stands in line for the baton at once: see [`Store::want_baton`].
    pub again: bool,
}

/// A batch as it lies in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBatch {
    /// The version that it brought the log to.
    pub version: Version,
    /// The batch.
    pub record: Bytes,
}

/// The state at some version, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// Which batches it holds: all up to this one.
    pub head: Head,
    /// The state.
    pub record: Bytes,
}

/// A finished task as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFinished {
    /// Which task.
    pub task: TaskId,
    /// When it ended.
    pub ended: Timestamp,
    /// Where it stands in the history. In an [`Append`] the store decides that, whatever is said here.
    pub place: Place,
    /// What there is to tell.
    pub record: Bytes,
    /// What it produced. A list leaves it out.
    pub result: Option<Bytes>,
    /// What it can be listed by: short texts without control characters, which mean nothing to a store. They are only
    /// for [`Store::history`]; whatever a store returns leaves them out.
    pub labels: Vec<Box<str>>,
}

/// Which finished tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Those before this place. Default: from the newest on.
    pub before: Option<Place>,
    /// Those that have all of these labels. Default: any.
    pub labels: Vec<Box<str>>,
    /// At most so many.
    pub max: u32,
}

/// A place in the history, which is ordered by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The batch with which the task ended.
    pub version: Version,
    /// Which of the tasks that ended with that batch, counted from zero.
    pub index: u32,
}

/// How much of the history to keep. What falls under either rule goes, the oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Nothing that ended before this. Default: however old.
    pub ended_since: Option<Timestamp>,
    /// At most so many tasks. Default: any number.
    pub count_max: Option<u64>,
}

/// What has become of something when a store says that it has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It is in the memory of this process.
    Memory,
    /// The shared engine has it, as that engine is configured.
    Engine,
    /// It is on a disk, flushed.
    Disk,
    /// A second machine has it.
    Replicated,
}

/// Keeps a log of batches, a snapshot, payloads, and the history of finished work. Moves bytes; knows no rule of
/// the queue.
///
/// # Who calls it
///
/// One loop per process: it takes a batch of commands, decides them all, appends all events, and only then
/// publishes and answers. Several processes may share a store; their loops race for each version, and exactly
/// one wins.
///
/// # Errors
///
/// Three kinds, see [`ErrorKind`](crate::ErrorKind): try later; stop; catch up. A store never answers "nothing
/// there" for something that it cannot read.
///
/// # Dropping an answer
///
/// Whoever drops the future of a write before it is ready does not know whether the write happened.
pub trait Store: Send + Sync + 'static {
    /// Which store this is, for messages: `memory`, or the path or address of an engine without its secrets.
    fn name(&self) -> &str;

    /// What an `Ok` from [`append`](Store::append) means.
    fn durability(&self) -> Durability;

    /// The time by the engine's clock, which everybody who shares the store goes by. `None`: there is no clock but this
    /// process's own.
    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Whether other processes may use it at the same time. Where none can, whatever ran when it was opened is dead.
    fn is_shared(&self) -> bool {
        false
    }

    /// Where the log ends now.
    fn head(&self) -> Answer<'_, Head>;

    /// Adds one batch, with all that belongs to it, if the log still ends where the caller believes.
    ///
    /// Returns the new end. Otherwise nothing is changed and the answer is
    /// [`Conflict`](StoreError::Conflict); read what is missing and decide again.
    ///
    /// After [`Unavailable`](StoreError::Unavailable) the batch may or may not be there. Appending the
    /// very same batch again is always right: if it is there already, at its place, that is a success.
    fn append(&self, append: Append) -> Answer<'_, Head>;

    /// Asks to be passed the baton: the right to append next, by courtesy, so that those who share a store append one
    /// after another instead of racing. Nothing depends on it but speed: whoever appends without it is checked like
    /// everybody.
    ///
    /// Those who want it stand in line, each once. Whoever appends leaves the line, and its batch passes the baton to the
    /// first who is left; whoever loses a race is put in line by that, and whoever says that it will append
    /// [again](Append::again) has the last place. A store without such a line does nothing: there everybody races.
    fn want_baton(&self, _author: Author) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The newest batch that this process has heard of, and to whom it passed the baton: what can be told without asking.
    /// There may be newer ones.
    fn newest(&self) -> Option<(Version, Option<Author>)> {
        None
    }

    /// Says something, of at most [`WORDS_BYTES_MAX`] bytes, to everybody who shares the store and [listens](Store::listen)
    /// at this moment. It is not kept, and may be heard by nobody.
    fn say(&self, _words: Arc<str>) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// What anybody says from now on, ourselves included, until the connection breaks. A slow listener misses some. `None`:
    /// nobody else can be there.
    fn listen(&self) -> Answer<'_, Option<mpsc::Receiver<Arc<str>>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Forgets what came by of the log, where some of it is kept at hand: the engine is asked anew. For whoever begins anew, or
    /// has noticed that the log is not what it was.
    fn forget_log(&self) {}

    /// The batches after a version, in order and without a gap, at most [`READ_BATCHES_MAX`] and about
    /// [`READ_BYTES_MAX`] at a time. None: the log ends there.
    ///
    /// [`Trimmed`](StoreError::Trimmed) when the next batch is no longer kept: load the snapshot.
    /// [`Conflict`](StoreError::Conflict) when the log does not reach so far.
    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>>;

    /// Waits until the log has grown beyond a version and returns how far. It may be late by as much as the
    /// engine needs to tell, and it may wait for ever. A log that does not reach so far is a
    /// [`Conflict`](StoreError::Conflict).
    ///
    /// Whoever waits may leave it alone for a while, not dropped and not polled, and ask other things meanwhile: it holds
    /// nothing that an answer to those needs.
    fn tail(&self, after: Version) -> Answer<'_, Version>;

    /// The newest snapshot.
    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>>;

    /// Keeps a snapshot in place of an older one; does nothing when there is one as new. A snapshot of something
    /// that is not in the log is a [`Conflict`](StoreError::Conflict).
    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()>;

    /// Forgets the batches up to a version, but none that the snapshot does not hold.
    ///
    /// Leave some before the snapshot: other processes read them to catch up, and a batch whose fate is unknown
    /// can only be recognised while it is there.
    fn trim(&self, through: Version) -> Answer<'_, ()>;

    /// A payload.
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>>;

    /// Removes payloads for which no batch could say so ([`Append::dropped`]).
    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()>;

    /// A finished task with its result.
    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>>;

    /// The results of some finished tasks, in the order in which they were asked for.
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
    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>>;

    /// Forgets finished tasks and returns how many.
    fn trim_history(&self, keep: Retention) -> Answer<'_, u64>;
}

impl Version {
    /// The one after this.
    #[must_use]
    pub fn next(self) -> Version {
        Version(self.0.saturating_add(1))
    }
}

impl BatchId {
    /// Who made it.
    #[must_use]
    pub fn author(self) -> Author {
        Author((self.0 >> 64) as u64)
    }
}

impl Head {
    /// The end of a log in which nothing has happened.
    pub const EMPTY: Head = Head { version: Version(0), batch: BatchId(0) };

    /// The end of the log when `batch` has been added.
    #[must_use]
    pub fn then(self, batch: BatchId) -> Head {
        Head { version: self.version.next(), batch }
    }
}

impl Append {
    /// The end of the log when this has been added.
    pub fn outcome(&self) -> Head {
        self.expected.then(self.batch)
    }

    /// Where each of the finished tasks will stand.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let version = self.outcome().version;
        (0..).map(move |index| Place { version, index })
    }
}

impl Durability {
    /// The word that a reply uses for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::Engine => "engine",
            Durability::Disk => "disk",
            Durability::Replicated => "replicated",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {:x}", self.0)
    }
}
