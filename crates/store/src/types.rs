//! What a store keeps, and what it is asked for.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};

/// How many batches the log has had since it began; trimming does not count back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Identifies one batch for ever, so that the author of an append without an answer can find it in the log. Chosen at
/// random.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u128);

/// A replica that makes batches: the upper half of their ids, which the replica chooses at random. 0 is no replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Author(pub u64);

/// Where a log ends: its version and the batch that brought it there.
///
/// The batch is part of it because a backend may lose its last writes at a failover and reach the same version again
/// with others. A replica that has applied the lost ones must notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// How far.
    pub version: Version,
    /// By which batch.
    pub batch: BatchId,
}

/// What becomes part of a store in one step, or not at all.
///
/// All values are sealed records (see [`Log`](crate::Log)), which a store keeps as they are. Cheap to clone, because an
/// append without an answer is made again.
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
    /// Payloads that no task needs after this batch. Some may be gone already.
    pub dropped: Arc<[BlobId]>,
    /// Tasks that ended with this batch, in that order.
    pub finished: Arc<[StoredFinished]>,
    /// Its author has more to append, and goes to the end of the line for the append turn: see
    /// [`Store::request_append_turn`](crate::Store::request_append_turn).
    pub requeue: bool,
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
    /// Where it stands in the history. An [`Append`] does not set it: the store does.
    pub place: HistoryPosition,
    /// The task, as a record.
    pub record: Bytes,
    /// What it produced. A list leaves it out.
    pub result: Option<Bytes>,
    /// What it can be listed by: short texts without control characters, which mean nothing to a store. They are only
    /// for [`HistoryQuery`]; a store does not return them.
    pub labels: Vec<Box<str>>,
}

/// Which finished tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Those before this place. Default: from the newest on.
    pub before: Option<HistoryPosition>,
    /// Those that have all of these labels. Default: any.
    pub labels: Vec<Box<str>>,
    /// At most this many.
    pub max: u32,
}

/// A place in the history, which is ordered by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryPosition {
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
    /// At most this many tasks. Default: any number.
    pub count_max: Option<u64>,
}

/// What an acknowledged write means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It is in the memory of this process.
    Memory,
    /// The shared backend has it, as that backend is configured.
    Backend,
    /// It is on a disk, flushed.
    Disk,
    /// A second machine has it.
    Replicated,
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
    pub fn places(&self) -> impl Iterator<Item = HistoryPosition> + use<> {
        let version = self.outcome().version;
        (0..).map(move |index| HistoryPosition { version, index })
    }
}

impl Durability {
    /// The word that a reply uses for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::Backend => "engine",
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
