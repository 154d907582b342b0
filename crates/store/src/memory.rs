//! A store in the memory of the process.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};
use tokio::sync::{mpsc, watch};

use crate::error::StoreError;
use crate::store::{Answer, READ_BATCHES_MAX, READ_BYTES_MAX, Store, UNREAD_MAX};
use crate::types::{
    Append, Author, BatchId, Durability, Head, HistoryPosition, HistoryQuery, Retention, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};

/// Keeps everything in memory. Clones are handles on the same store.
#[derive(Clone)]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
    version: watch::Sender<Version>,
    subscribers: Arc<Mutex<Vec<mpsc::Sender<Arc<str>>>>>,
}

#[derive(Default)]
struct Kept {
    head: Head,
    /// The batches that are not trimmed; the last one is that of the head.
    log: VecDeque<Logged>,
    /// The authors in line, the first to append first.
    line: VecDeque<Author>,
    snapshot: Option<StoredSnapshot>,
    blobs: HashMap<BlobId, Bytes>,
    history: BTreeMap<HistoryPosition, StoredFinished>,
    places: HashMap<TaskId, HistoryPosition>,
}

struct Logged {
    batch: BatchId,
    record: Bytes,
    append_turn: Option<Author>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore {
            kept: Arc::default(),
            version: watch::Sender::new(Version::default()),
            subscribers: Arc::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No step of a change panics, so the state is whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

fn answer<'a, T: Send + 'a>(answer: Result<T, StoreError>) -> Answer<'a, T> {
    Box::pin(ready(answer))
}

impl Store for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    fn durability(&self) -> Durability {
        Durability::Memory
    }

    fn head(&self) -> Answer<'_, Head> {
        answer(Ok(self.kept().head))
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        let head = self.kept().append(append);
        if let Ok(head) = head {
            // Two appends may reach this line in either order.
            self.version.send_if_modified(|version| {
                let newer = head.version > *version;
                *version = head.version.max(*version);
                newer
            });
        }
        answer(head)
    }

    fn request_append_turn(&self, author: Author) -> Answer<'_, ()> {
        self.kept().request_append_turn(author);
        answer(Ok(()))
    }

    fn newest(&self) -> Option<(Version, Option<Author>)> {
        let kept = self.kept();
        Some((kept.head.version, kept.log.back().and_then(|there| there.append_turn)))
    }

    fn publish(&self, text: Arc<str>) -> Answer<'_, ()> {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| !subscriber.is_closed());
        // A slow subscriber misses it.
        subscribers.iter().for_each(|subscriber| drop(subscriber.try_send(Arc::clone(&text))));
        answer(Ok(()))
    }

    fn subscribe(&self) -> Answer<'_, Option<mpsc::Receiver<Arc<str>>>> {
        let (subscriber, texts) = mpsc::channel(UNREAD_MAX);
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(subscriber);
        answer(Ok(Some(texts)))
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        answer(self.kept().read(after))
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        let mut version = self.version.subscribe();
        let current = self.kept().head;
        Box::pin(async move {
            reaches(current, after)?;
            let grown = version.wait_for(|version| *version > after).await;
            grown.map(|version| *version).map_err(|_| StoreError::closed("memory"))
        })
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        answer(Ok(self.kept().snapshot.clone()))
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        answer(self.kept().save_snapshot(snapshot))
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        self.kept().trim(through);
        answer(Ok(()))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        answer(Ok(self.kept().blobs.get(&id).cloned()))
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        let mut kept = self.kept();
        ids.iter().for_each(|id| drop(kept.blobs.remove(id)));
        answer(Ok(()))
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        let kept = self.kept();
        let place = kept.places.get(&task);
        let found = place.and_then(|place| kept.history.get(place));
        answer(Ok(found.map(|stored| bare(stored, stored.result.clone()))))
    }

    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        let kept = self.kept();
        let older = match asked.before {
            Some(before) => kept.history.range(..before),
            None => kept.history.range(..),
        };
        let fitting = older.rev().map(|(_, stored)| stored);
        let fitting = fitting.filter(|stored| asked.labels.iter().all(|label| stored.labels.contains(label)));
        answer(Ok(fitting.take(asked.max as usize).map(|stored| bare(stored, None)).collect()))
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        answer(Ok(self.kept().trim_history(keep)))
    }
}

impl Kept {
    /// The version of the oldest batch that is kept, or the next one to come.
    fn oldest(&self) -> Version {
        Version(self.head.version.0 + 1 - self.log.len() as u64)
    }

    fn logged(&self, version: Version) -> Option<&Logged> {
        let index = version.0.checked_sub(self.oldest().0)?;
        self.log.get(index as usize)
    }

    fn append(&mut self, append: Append) -> Result<Head, StoreError> {
        let (head, places) = (append.outcome(), append.places());
        if append.expected != self.head {
            // The same batch again: the answer to the first append was lost.
            return match self.logged(head.version) {
                Some(there) if there.batch == append.batch => Ok(head),
                _ => {
                    self.request_append_turn(append.batch.author());
                    Err(StoreError::Conflict { expected: append.expected, current: self.head })
                }
            };
        }
        self.line.retain(|author| *author != append.batch.author());
        let append_turn = self.line.pop_front();
        if append.requeue {
            self.request_append_turn(append.batch.author());
        }
        self.log.push_back(Logged { batch: append.batch, record: append.record, append_turn });
        self.blobs.extend(append.blobs.iter().cloned());
        append.dropped.iter().for_each(|id| drop(self.blobs.remove(id)));
        for (place, finished) in places.zip(append.finished.iter().cloned()) {
            if let Some(older) = self.places.insert(finished.task, place) {
                self.history.remove(&older);
            }
            self.history.insert(place, StoredFinished { place, ..finished });
        }
        self.head = head;
        Ok(head)
    }

    fn request_append_turn(&mut self, author: Author) {
        if author != Author(0) && !self.line.contains(&author) {
            self.line.push_back(author);
        }
    }

    fn read(&self, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
        reaches(self.head, after)?;
        if after.next() < self.oldest() {
            return Err(StoreError::Trimmed { asked: after, oldest: self.oldest() });
        }
        let from = (after.next().0 - self.oldest().0) as usize;
        let mut bytes = 0;
        let mut batches = Vec::new();
        for (index, Logged { record, .. }) in self.log.iter().enumerate().skip(from).take(READ_BATCHES_MAX) {
            let version = Version(self.oldest().0 + index as u64);
            batches.push(StoredBatch { version, record: record.clone() });
            bytes += record.len();
            if bytes >= READ_BYTES_MAX {
                break;
            }
        }
        Ok(batches)
    }

    fn save_snapshot(&mut self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let at = snapshot.head;
        let known = self.logged(at.version).map(|there| there.batch);
        if at.version > self.head.version || known.is_some_and(|batch| batch != at.batch) {
            return Err(StoreError::Conflict { expected: at, current: self.head });
        }
        if self.snapshot.as_ref().is_none_or(|older| older.head.version < at.version) {
            self.snapshot = Some(snapshot);
        }
        Ok(())
    }

    fn trim(&mut self, through: Version) {
        let saved = self.snapshot.as_ref().map_or(Version(0), |snapshot| snapshot.head.version);
        let gone = (through.min(saved).0 + 1).saturating_sub(self.oldest().0);
        self.log.drain(..(gone as usize).min(self.log.len()));
    }

    fn trim_history(&mut self, keep: Retention) -> u64 {
        let mut removed = 0;
        while let Some(oldest) = self.history.first_entry() {
            let task = oldest.get().task;
            let old = keep.ended_since.is_some_and(|since| oldest.get().ended < since);
            let many = keep.count_max.is_some_and(|max| self.places.len() as u64 > max);
            if !old && !many {
                break;
            }
            oldest.remove();
            self.places.remove(&task);
            removed += 1;
        }
        removed
    }
}

/// A finished task as a store returns it, without labels.
fn bare(stored: &StoredFinished, result: Option<Bytes>) -> StoredFinished {
    StoredFinished { record: stored.record.clone(), result, labels: Vec::new(), ..*stored }
}

/// Refuses a version that the log has not come to.
fn reaches(current: Head, after: Version) -> Result<(), StoreError> {
    if after <= current.version { Ok(()) } else { Err(StoreError::beyond_end(after, current)) }
}

#[cfg(feature = "testing")]
impl MemoryStore {
    /// Changes the bytes of a record in place; returns whether there was such a record.
    pub fn tamper(&self, record: crate::Record, change: &dyn Fn(&mut Vec<u8>)) -> bool {
        use crate::Record;
        let mut kept = self.kept();
        let kept = &mut *kept;
        let oldest = kept.oldest();
        let bytes = match record {
            Record::Batch(version) => {
                let index = version.0.checked_sub(oldest.0);
                index.and_then(|index| kept.log.get_mut(index as usize)).map(|there| &mut there.record)
            }
            Record::Snapshot(_) => kept.snapshot.as_mut().map(|snapshot| &mut snapshot.record),
            Record::Payload(id) => kept.blobs.get_mut(&id),
            Record::Finished(task) => kept
                .places
                .get(&task)
                .and_then(|place| kept.history.get_mut(place))
                .map(|kept| &mut kept.record),
            Record::Result(task) => {
                let finished = kept.places.get(&task).and_then(|place| kept.history.get_mut(place));
                finished.and_then(|finished| finished.result.as_mut())
            }
        };
        let Some(bytes) = bytes else { return false };
        let mut changed = bytes.to_vec();
        change(&mut changed);
        *bytes = changed.into();
        true
    }
}
