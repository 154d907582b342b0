//! All that a store holds, put into an empty one of any sort.

use std::fmt;

use bytes::Bytes;
use laneway_core::{BlobId, Scheduler, TaskId};

use crate::error::StoreError;
use crate::log::{Entry, Log};
use crate::record::{Batch, Finished, tries_blob};
use crate::types::{BatchId, Head, HistoryQuery};

/// A batch of a copy is closed when it holds so many things.
const THINGS_MAX: usize = 256;
/// Or so many bytes.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many finished tasks one look at the history brings.
const HISTORY_PAGE: u32 = 500;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Tasks that wait or run.
    pub tasks: u64,
    /// Tasks that could not be done.
    pub dead_letters: u64,
    /// Payloads of either, and what is kept of earlier attempts.
    pub payloads: u64,
    /// Tasks that are over.
    pub finished: u64,
}

/// Why nothing was copied, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyError {
    /// There is nothing to copy.
    Nothing {
        /// In which store.
        from: String,
    },
    /// The other store has something in it, which is never overwritten.
    NotEmpty {
        /// Which store.
        to: String,
        /// How many batches its log has had.
        version: u64,
    },
    /// A payload that the state speaks of is not there.
    Missing {
        /// In which store.
        from: String,
        /// Which payload.
        payload: BlobId,
    },
    /// Somebody used the store meanwhile.
    Moved {
        /// Which store.
        from: String,
    },
    /// One of the stores did not do what was asked.
    Store(StoreError),
}

impl From<StoreError> for CopyError {
    fn from(error: StoreError) -> CopyError {
        CopyError::Store(error)
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::Nothing { from } => write!(f, "there is nothing in store {from} to copy"),
            CopyError::NotEmpty { to, version } => write!(
                f,
                "store {to} has something in it (version {version}), and only an empty store is filled; nothing was \
                 changed"
            ),
            CopyError::Missing { from, payload } => {
                write!(f, "store {from} has lost payload {:032x} of a task that it still holds", payload.0)
            }
            CopyError::Moved { from } => {
                write!(
                    f,
                    "store {from} was used while it was copied; stop all servers that use it, and try again"
                )
            }
            CopyError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CopyError {}

/// Copies the state, the payloads and the history; `told` hears how much of how much is done.
///
/// The state comes last and makes the copy whole: until then whoever opens the other store finds it without a task. The
/// batches of a copy have ids that follow from what is copied, so that a copy that was interrupted goes on where it was.
pub async fn copy(from: &Log, to: &Log, mut told: impl FnMut(u64, u64)) -> Result<Copied, CopyError> {
    let (source, scheduler) = from.restore(0).await?;
    if source == Head::EMPTY {
        return Err(CopyError::Nothing { from: from.store().name().to_owned() });
    }
    let mut done = start(to, source).await?;
    let things = payloads_of(&scheduler);
    let history = finished_tasks(from).await?;
    let total = (things.len() + history.len()) as u64;
    let mut copied = Copied {
        tasks: scheduler.live_tasks() as u64,
        dead_letters: scheduler.dead_letters().count() as u64,
        ..Copied::default()
    };
    let mut head = Head::EMPTY;
    let mut pack = Pack::default();
    for thing in things.into_iter().chain(history.into_iter().map(Thing::Finished)) {
        match thing {
            Thing::Payload(id) => match pack.take_blob(from, id).await? {
                true => copied.payloads += 1,
                false => return Err(lost(from, source, id).await?),
            },
            // Not every attempt left something to keep.
            Thing::Tries(id) => copied.payloads += u64::from(pack.take_blob(from, id).await?),
            Thing::Finished(task) => copied.finished += u64::from(pack.take_finished(from, task).await?),
        }
        told(copied.payloads + copied.finished, total);
        if pack.is_full() {
            head = pack.send(to, source, head, &scheduler, &mut done).await?;
        }
    }
    // One batch at least, for the state to stand on.
    head = pack.send(to, source, head, &scheduler, &mut done).await?;
    if from.store().head().await? != source {
        return Err(CopyError::Moved { from: from.store().name().to_owned() });
    }
    to.save(head, &scheduler.snapshot()).await?;
    told(total, total);
    Ok(copied)
}

/// Why a payload may be gone.
async fn lost(from: &Log, source: Head, payload: BlobId) -> Result<CopyError, StoreError> {
    let name = from.store().name().to_owned();
    match from.store().head().await? == source {
        true => Ok(CopyError::Missing { from: name, payload }),
        false => Ok(CopyError::Moved { from: name }),
    }
}

enum Thing {
    Payload(BlobId),
    Tries(BlobId),
    Finished(TaskId),
}

/// How many batches of this very copy the other store has already.
async fn start(to: &Log, source: Head) -> Result<u64, CopyError> {
    let head = to.store().head().await?;
    let is_ours = head.version.0 > 0 && head.batch == batch_id(source, head.version.0 - 1);
    match head == Head::EMPTY || is_ours && to.store().snapshot().await?.is_none() {
        true => Ok(head.version.0),
        false => {
            let to = to.store().name().to_owned();
            Err(CopyError::NotEmpty { to, version: head.version.0 })
        }
    }
}

/// The id of a batch of a copy. The head that is copied was chosen at random, so these are as good.
fn batch_id(source: Head, number: u64) -> BatchId {
    const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    BatchId(source.batch.0 ^ u128::from(number + 1).wrapping_mul(SPREAD))
}

/// Every payload that the state speaks of.
fn payloads_of(scheduler: &Scheduler) -> Vec<Thing> {
    let mut things = Vec::new();
    for task in scheduler.tasks() {
        things.extend(task.payload.map(Thing::Payload));
        if task.attempts > 0 {
            things.push(Thing::Tries(tries_blob(task.id)));
        }
    }
    things.extend(scheduler.dead_letters().filter_map(|letter| letter.spec.payload).map(Thing::Payload));
    things
}

/// Tasks that are over, the oldest first.
async fn finished_tasks(from: &Log) -> Result<Vec<TaskId>, StoreError> {
    let mut tasks = Vec::new();
    let mut asked = HistoryQuery { max: HISTORY_PAGE, ..HistoryQuery::default() };
    loop {
        let page = from.store().history(asked.clone()).await?;
        tasks.extend(page.iter().map(|stored| stored.task));
        match page.last() {
            Some(last) if page.len() == HISTORY_PAGE as usize => asked.before = Some(last.place),
            _ => break,
        }
    }
    tasks.reverse();
    Ok(tasks)
}

/// What goes into the next batch.
#[derive(Default)]
struct Pack {
    payloads: Vec<(BlobId, Bytes)>,
    finished: Vec<(Finished, Option<Bytes>)>,
    bytes: usize,
    sent: u64,
}

impl Pack {
    /// Takes a payload along; says whether there is one.
    async fn take_blob(&mut self, from: &Log, id: BlobId) -> Result<bool, StoreError> {
        let Some(payload) = from.payload(id).await? else { return Ok(false) };
        self.bytes += payload.len();
        self.payloads.push((id, payload));
        Ok(true)
    }

    async fn take_finished(&mut self, from: &Log, task: TaskId) -> Result<bool, StoreError> {
        let Some((finished, result)) = from.finished(task).await? else { return Ok(false) };
        self.bytes += result.as_ref().map_or(0, Bytes::len);
        self.finished.push((finished, result));
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.payloads.len() + self.finished.len() >= THINGS_MAX || self.bytes >= BYTES_MAX
    }

    /// Appends what is packed, unless the other store has that batch already.
    async fn send(
        &mut self,
        to: &Log,
        source: Head,
        head: Head,
        scheduler: &Scheduler,
        done: &mut u64,
    ) -> Result<Head, StoreError> {
        let batch = Batch { id: batch_id(source, self.sent), at: scheduler.now(), events: Vec::new() };
        let next = head.then(batch.id);
        let entry = Entry {
            batch,
            payloads: std::mem::take(&mut self.payloads),
            dropped: Vec::new(),
            finished: std::mem::take(&mut self.finished),
        };
        self.bytes = 0;
        self.sent += 1;
        match *done {
            0 => to.append(head, &entry).await,
            _ => {
                *done -= 1;
                Ok(next)
            }
        }
    }
}
