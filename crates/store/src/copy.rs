//! Copies everything that a store holds into an empty store of any backend.

use bytes::Bytes;
use laneway_core::{BlobId, Scheduler, TaskId};
use thiserror::Error;

use crate::error::StoreError;
use crate::log::{Entry, Log};
use crate::record::{Batch, Finished, tries_blob};
use crate::types::{BatchId, Head, HistoryQuery};

/// The most payloads and finished tasks in one batch of a copy.
const ITEMS_MAX: usize = 256;
/// A batch with this many bytes is full.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many finished tasks one page of the history holds.
const HISTORY_PAGE: u32 = 500;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Tasks that wait or run.
    pub tasks: u64,
    /// Tasks that failed for good.
    pub dead_letters: u64,
    /// Payloads of either, and records of earlier attempts.
    pub payloads: u64,
    /// Tasks that have ended.
    pub finished: u64,
}

/// Why a copy failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// There is nothing to copy.
    #[error("there is nothing in store {from} to copy")]
    Nothing {
        /// In which store.
        from: String,
    },
    /// The target is not empty, and a copy overwrites nothing.
    #[error(
        "store {to} has something in it (version {version}), and only an empty store is filled; nothing was changed"
    )]
    NotEmpty {
        /// Which store.
        to: String,
        /// How many batches its log has had.
        version: u64,
    },
    /// A payload that the state names is not there.
    #[error("store {from} has lost payload {:032x} of a task that it still holds", payload.0)]
    Missing {
        /// In which store.
        from: String,
        /// Which payload.
        payload: BlobId,
    },
    /// A replica used the store meanwhile.
    #[error("store {from} was used while it was copied; stop all servers that use it, and try again")]
    Moved {
        /// Which store.
        from: String,
    },
    /// One of the stores failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Copies the state, the payloads and the history. Calls `on_progress` with the count that is done and the total.
///
/// The state comes last and makes the copy whole: until then the target has no task. The ids of the batches follow from
/// what is copied, so an interrupted copy goes on where it was.
pub async fn copy(from: &Log, to: &Log, mut on_progress: impl FnMut(u64, u64)) -> Result<Copied, CopyError> {
    let (source, scheduler) = from.restore(0).await?;
    if source == Head::EMPTY {
        return Err(CopyError::Nothing { from: from.store().name().to_owned() });
    }
    let mut done = start(to, source).await?;
    let items = payloads_of(&scheduler);
    let history = finished_tasks(from).await?;
    let total = (items.len() + history.len()) as u64;
    let mut copied = Copied {
        tasks: scheduler.live_tasks() as u64,
        dead_letters: scheduler.dead_letters().count() as u64,
        ..Copied::default()
    };
    let mut head = Head::EMPTY;
    let mut pack = Pack::default();
    for item in items.into_iter().chain(history.into_iter().map(Item::Finished)) {
        match item {
            Item::Payload(id) if !pack.take_blob(from, id).await? => {
                return Err(lost(from, source, id).await?);
            }
            Item::Payload(_) => copied.payloads += 1,
            // Not every attempt left a record.
            Item::Tries(id) => copied.payloads += u64::from(pack.take_blob(from, id).await?),
            Item::Finished(task) => copied.finished += u64::from(pack.take_finished(from, task).await?),
        }
        on_progress(copied.payloads + copied.finished, total);
        if pack.is_full() {
            head = pack.send(to, source, head, &scheduler, &mut done).await?;
        }
    }
    // A snapshot needs at least one batch before it.
    head = pack.send(to, source, head, &scheduler, &mut done).await?;
    if from.store().head().await? != source {
        return Err(CopyError::Moved { from: from.store().name().to_owned() });
    }
    to.save(head, &scheduler.snapshot()).await?;
    on_progress(total, total);
    Ok(copied)
}

/// Why a payload may be gone.
async fn lost(from: &Log, source: Head, payload: BlobId) -> Result<CopyError, StoreError> {
    let name = from.store().name().to_owned();
    let is_same = from.store().head().await? == source;
    Ok(if is_same { CopyError::Missing { from: name, payload } } else { CopyError::Moved { from: name } })
}

enum Item {
    Payload(BlobId),
    Tries(BlobId),
    Finished(TaskId),
}

/// How many batches of this copy the target has already.
async fn start(to: &Log, source: Head) -> Result<u64, CopyError> {
    let head = to.store().head().await?;
    let is_ours = head.version.0 > 0 && head.batch == batch_id(source, head.version.0 - 1);
    if head == Head::EMPTY || is_ours && to.store().snapshot().await?.is_none() {
        return Ok(head.version.0);
    }
    Err(CopyError::NotEmpty { to: to.store().name().to_owned(), version: head.version.0 })
}

/// The id of a batch of a copy. The id of the source's head is random, so these are as random.
fn batch_id(source: Head, number: u64) -> BatchId {
    const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    BatchId(source.batch.0 ^ u128::from(number + 1).wrapping_mul(SPREAD))
}

/// Every payload that the state names.
fn payloads_of(scheduler: &Scheduler) -> Vec<Item> {
    let mut items = Vec::new();
    for task in scheduler.tasks() {
        items.extend(task.payload.map(Item::Payload));
        if task.attempts > 0 {
            items.push(Item::Tries(tries_blob(task.id)));
        }
    }
    items.extend(
        scheduler.dead_letters().filter_map(|dead_letter| dead_letter.spec.payload).map(Item::Payload),
    );
    items
}

/// Finished tasks, the oldest first.
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
    /// Packs a payload; returns whether there is one.
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
        self.payloads.len() + self.finished.len() >= ITEMS_MAX || self.bytes >= BYTES_MAX
    }

    /// Appends what is packed, unless the target has that batch already.
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
        if *done == 0 {
            return to.append(head, &entry).await;
        }
        *done -= 1;
        Ok(next)
    }
}
