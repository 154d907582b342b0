//! A store with planned faults, and records with changed content.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use tokio::sync::{Semaphore, mpsc};

use crate::error::StoreError;
use crate::frame::{HEADER, Record};
use crate::log::{Entry, Log};
use crate::record::{Batch, seal_batch, unseal_batch};
use crate::store::{Answer, Store};
use crate::types::{
    Append, Author, BatchId, Durability, Head, HistoryQuery, Retention, StoredBatch, StoredFinished,
    StoredSnapshot, Version,
};

/// What goes wrong with one append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails before anything is written.
    NotWritten,
    /// It is written, and the reply is lost.
    ReplyLost,
    /// An empty batch of another author is written just before it.
    Overtaken,
    /// It waits for [`FaultyStore::go_on`] before it is written.
    Slow,
    /// There is no room.
    DiskFull,
}

/// Any store, with faults. Each planned fault strikes one append, in order. While the store is
/// [away](FaultyStore::go_away), every call fails.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    planned: Mutex<VecDeque<Fault>>,
    away: AtomicBool,
    gate: Semaphore,
    strangers: AtomicU64,
    wants: AtomicU64,
}

impl FaultyStore {
    /// A store without faults so far.
    pub fn new(inner: Arc<dyn Store>) -> FaultyStore {
        FaultyStore {
            inner,
            planned: Mutex::default(),
            away: AtomicBool::new(false),
            gate: Semaphore::new(0),
            strangers: AtomicU64::new(0),
            wants: AtomicU64::new(0),
        }
    }

    /// Plans a fault for the next append that has none.
    pub fn plan(&self, fault: Fault) {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }

    /// How many planned faults have not struck.
    pub fn planned(&self) -> usize {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Lets one slow append go on, the present one or the next.
    pub fn go_on(&self) {
        self.gate.add_permits(1);
    }

    /// How often the append turn was asked for.
    pub fn append_turns_wanted(&self) -> u64 {
        self.wants.load(Ordering::SeqCst)
    }

    /// Makes everything fail until [`come_back`](FaultyStore::come_back).
    pub fn go_away(&self) {
        self.away.store(true, Ordering::SeqCst);
    }

    /// Ends what [`go_away`](FaultyStore::go_away) began.
    pub fn come_back(&self) {
        self.away.store(false, Ordering::SeqCst);
    }

    fn unavailable(&self, reason: &str) -> StoreError {
        StoreError::unavailable(self.inner.name(), reason)
    }

    fn unless_away<'a, T: Send + 'a>(&'a self, answer: Answer<'a, T>) -> Answer<'a, T> {
        Box::pin(async move {
            if self.away.load(Ordering::SeqCst) {
                return Err(self.unavailable("it went away"));
            }
            answer.await
        })
    }

    async fn append_with(&self, fault: Option<Fault>, append: Append) -> Result<Head, StoreError> {
        match fault {
            None => self.inner.append(append).await,
            Some(Fault::NotWritten) => Err(self.unavailable("the connection was refused")),
            Some(Fault::DiskFull) => Err(self.unavailable("the disk is full")),
            Some(Fault::ReplyLost) => {
                self.inner.append(append).await?;
                Err(self.unavailable("the reply was lost"))
            }
            Some(Fault::Overtaken) => {
                self.append_of_a_stranger(append.expected).await?;
                self.inner.append(append).await
            }
            Some(Fault::Slow) => {
                if let Ok(permit) = self.gate.acquire().await {
                    permit.forget();
                }
                self.inner.append(append).await
            }
        }
    }

    async fn append_of_a_stranger(&self, expected: Head) -> Result<Head, StoreError> {
        let number = self.strangers.fetch_add(1, Ordering::SeqCst);
        let id = BatchId(u128::MAX - u128::from(number));
        let batch = Batch { id, at: Timestamp::default(), events: Vec::new() };
        Log::new(Arc::clone(&self.inner)).append(expected, &Entry::of(batch)).await
    }
}

impl Store for FaultyStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn durability(&self) -> Durability {
        self.inner.durability()
    }

    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        self.unless_away(self.inner.time())
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn head(&self) -> Answer<'_, Head> {
        self.unless_away(self.inner.head())
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        self.unless_away(Box::pin(async move {
            let fault = self.planned.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            self.append_with(fault, append).await
        }))
    }

    fn request_append_turn(&self, author: Author) -> Answer<'_, ()> {
        self.wants.fetch_add(1, Ordering::SeqCst);
        self.unless_away(self.inner.request_append_turn(author))
    }

    fn publish(&self, text: Arc<str>) -> Answer<'_, ()> {
        self.unless_away(self.inner.publish(text))
    }

    fn subscribe(&self) -> Answer<'_, Option<mpsc::Receiver<Arc<str>>>> {
        self.unless_away(self.inner.subscribe())
    }

    fn newest(&self) -> Option<(Version, Option<Author>)> {
        self.inner.newest().filter(|_| !self.away.load(Ordering::SeqCst))
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        self.unless_away(self.inner.read(after))
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        self.unless_away(self.inner.tail(after))
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        self.unless_away(self.inner.snapshot())
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        self.unless_away(Box::pin(async move { self.inner.save_snapshot(snapshot).await }))
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        self.unless_away(Box::pin(async move { self.inner.trim(through).await }))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        self.unless_away(self.inner.blob(id))
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        self.unless_away(Box::pin(async move { self.inner.remove_blobs(ids).await }))
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        self.unless_away(self.inner.finished(task))
    }

    fn results(&self, tasks: Vec<TaskId>) -> Answer<'_, Vec<Option<Bytes>>> {
        self.unless_away(self.inner.results(tasks))
    }

    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        self.unless_away(self.inner.history(asked))
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        self.unless_away(Box::pin(async move { self.inner.trim_history(keep).await }))
    }
}

/// The same record as a program of another format would have written it.
pub fn in_format(record: Record, format: u8, bytes: &[u8]) -> Bytes {
    let mut buffer = Record::start(bytes.len());
    buffer.extend_from_slice(&bytes[HEADER..]);
    record.seal(format, buffer)
}

/// The same append with another batch in it, for another place in the log.
pub fn resealed(
    append: &Append,
    expected: Head,
    change: impl FnOnce(&mut Batch),
) -> Result<Append, StoreError> {
    let record = Record::Batch(append.expected.version.next());
    let (_, mut batch) = unseal_batch("testing", record, &append.record)?;
    change(&mut batch);
    let record = seal_batch("testing", expected, &batch)?;
    Ok(Append { expected, batch: batch.id, record, ..append.clone() })
}

/// The same stored batch with other events in it.
pub fn rewritten(stored: &StoredBatch, change: impl FnOnce(&mut Batch)) -> Result<StoredBatch, StoreError> {
    let (before, mut batch) = unseal_batch("testing", Record::Batch(stored.version), &stored.record)?;
    change(&mut batch);
    let before = Head { version: Version(stored.version.0.saturating_sub(1)), batch: before };
    Ok(StoredBatch { version: stored.version, record: seal_batch("testing", before, &batch)? })
}
