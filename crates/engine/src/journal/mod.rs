//! Where batches are stored before anything follows from them.

mod append;
mod entry;
pub(crate) mod payload_history;
pub(crate) mod recovery;
pub(crate) mod snapshotter;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::FixedState;
use laneway_core::{BlobId, Millis, TaskId, Timestamp};
use laneway_store::{Entry, Finished, HistoryPosition, HistoryQuery, Log, StoreError, Version};

use crate::driver::clock::millis;
use crate::driver::ids::ByTask;

/// A log in a store, or this process's memory.
///
/// In memory nothing is read back after the process ends, so it holds no events: only the payloads of live tasks and the
/// history.
#[derive(Clone)]
pub(crate) enum Journal {
    Memory(Arc<Mutex<Memory>>),
    Kept(Log),
}

/// What a journal in memory remembers.
pub(crate) struct Memory {
    payloads: HashMap<BlobId, Bytes, FixedState>,
    finished: ByTask<(Finished, Option<Bytes>)>,
    /// The finished tasks, the oldest first, numbered in that order.
    ages: VecDeque<(HistoryPosition, TaskId)>,
    ended: u64,
    history_max: usize,
    history_for: Option<Millis>,
}

impl Journal {
    pub(crate) fn in_memory(history_max: u64, history_for: Option<Duration>) -> Journal {
        Journal::Memory(Arc::new(Mutex::new(Memory {
            payloads: HashMap::default(),
            finished: ByTask::default(),
            ages: VecDeque::new(),
            ended: 0,
            history_max: usize::try_from(history_max).unwrap_or(usize::MAX),
            history_for: history_for.map(millis),
        })))
    }

    /// The log, where there is one.
    pub(crate) fn log(&self) -> Option<&Log> {
        match self {
            Journal::Memory(_) => None,
            Journal::Kept(log) => Some(log),
        }
    }

    /// A payload.
    pub(crate) async fn payload(&self, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        match self {
            Journal::Memory(memory) => {
                Ok(memory.lock().unwrap_or_else(PoisonError::into_inner).payloads.get(&id).cloned())
            }
            Journal::Kept(log) => log.payload(id).await,
        }
    }

    /// A finished task with what it produced.
    pub(crate) async fn finished(
        &self,
        task: TaskId,
    ) -> Result<Option<(Finished, Option<Bytes>)>, StoreError> {
        match self {
            Journal::Memory(memory) => {
                Ok(memory.lock().unwrap_or_else(PoisonError::into_inner).finished.get(&task).cloned())
            }
            Journal::Kept(log) => log.finished(task).await,
        }
    }

    /// Finished tasks, the newest first.
    pub(crate) async fn history(
        &self,
        asked: HistoryQuery,
    ) -> Result<Vec<(HistoryPosition, Finished)>, StoreError> {
        match self {
            Journal::Memory(memory) => {
                Ok(memory.lock().unwrap_or_else(PoisonError::into_inner).history(&asked))
            }
            Journal::Kept(log) => log.history(asked).await,
        }
    }
}

impl Memory {
    pub(crate) fn payload(&self, id: BlobId) -> Option<Bytes> {
        self.payloads.get(&id).cloned()
    }

    pub(crate) fn keep(&mut self, entry: &mut Entry) {
        self.payloads.extend(entry.payloads.drain(..));
        for gone in &entry.dropped {
            self.payloads.remove(gone);
        }
        for (finished, result) in entry.finished.drain(..) {
            self.ended += 1;
            self.ages.push_back((HistoryPosition { version: Version(self.ended), index: 0 }, finished.task));
            self.finished.insert(finished.task, (finished, result));
        }
        while let Some((_, oldest)) = self.ages.front()
            && (self.ages.len() > self.history_max || self.is_old(*oldest, entry.batch.at))
        {
            self.finished.remove(oldest);
            self.ages.pop_front();
        }
    }

    fn is_old(&self, task: TaskId, now: Timestamp) -> bool {
        let Some(length) = self.history_for else { return false };
        self.finished.get(&task).is_none_or(|(finished, _)| now.since(finished.ended) > length)
    }

    fn history(&self, asked: &HistoryQuery) -> Vec<(HistoryPosition, Finished)> {
        let older = self.ages.iter().rev().filter(|(place, _)| asked.before.is_none_or(|at| *place < at));
        let listed = older.filter_map(|(place, task)| Some((*place, &self.finished.get(task)?.0)));
        let fits = |finished: &Finished| {
            let labels = finished.labels();
            asked.labels.iter().all(|label| labels.contains(label))
        };
        let fitting = listed.filter(|(_, finished)| asked.labels.is_empty() || fits(finished));
        fitting.take(asked.max as usize).map(|(place, finished)| (place, finished.clone())).collect()
    }
}
