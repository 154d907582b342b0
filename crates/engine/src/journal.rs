//! Where what was decided is kept before anybody hears of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};
use laneway_store::{Append, Entry, Finished, Head, Log, StoreError};

/// A log in a store, or this process's memory.
///
/// In memory nothing is read back after an end of the process, so no event is kept, let alone encoded: only the
/// payloads of live tasks and what is told of finished ones.
#[derive(Clone)]
pub(crate) enum Journal {
    Memory(Arc<Mutex<Memory>>),
    Kept(Log),
}

/// What a journal in memory remembers.
pub(crate) struct Memory {
    payloads: HashMap<BlobId, Bytes>,
    finished: HashMap<TaskId, (Finished, Option<Bytes>)>,
    /// The finished tasks, the oldest first.
    ages: VecDeque<TaskId>,
    history_max: usize,
}

impl Journal {
    pub(crate) fn in_memory(history_max: u64) -> Journal {
        Journal::Memory(Arc::new(Mutex::new(Memory {
            payloads: HashMap::new(),
            finished: HashMap::new(),
            ages: VecDeque::new(),
            history_max: usize::try_from(history_max).unwrap_or(usize::MAX),
        })))
    }

    /// The log, where there is one.
    pub(crate) fn log(&self) -> Option<&Log> {
        match self {
            Journal::Memory(_) => None,
            Journal::Kept(log) => Some(log),
        }
    }

    /// Makes an entry ready to be kept, once or, if its fate is unknown, again.
    pub(crate) fn seal(&self, expected: Head, entry: Entry) -> Result<Sealed, StoreError> {
        match self {
            Journal::Memory(_) => Ok(Sealed::Memory(entry)),
            Journal::Kept(log) => Ok(Sealed::Kept(log.seal(expected, &entry)?)),
        }
    }

    /// Keeps an entry and returns where the log ends then.
    pub(crate) async fn append(&self, head: Head, sealed: &mut Sealed) -> Result<Head, StoreError> {
        match (self, sealed) {
            (Journal::Memory(memory), Sealed::Memory(entry)) => {
                memory.lock().unwrap_or_else(PoisonError::into_inner).keep(entry);
                Ok(head)
            }
            (Journal::Kept(log), Sealed::Kept(append)) => log.store().append(append.clone()).await,
            // An entry is appended where it was sealed.
            _ => Ok(head),
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
}

impl Memory {
    /// Finished tasks, the newest first, from `skip` on.
    pub(crate) fn newest(&self, skip: usize, max: usize) -> Vec<Finished> {
        let newest = self.ages.iter().rev().skip(skip).take(max);
        newest.filter_map(|task| self.finished.get(task)).map(|(finished, _)| finished.clone()).collect()
    }
}

/// An entry in the form in which it is kept.
pub(crate) enum Sealed {
    Memory(Entry),
    Kept(Append),
}

impl Memory {
    fn keep(&mut self, entry: &mut Entry) {
        self.payloads.extend(entry.payloads.drain(..));
        for gone in &entry.dropped {
            self.payloads.remove(gone);
        }
        for (finished, result) in entry.finished.drain(..) {
            self.ages.push_back(finished.task);
            self.finished.insert(finished.task, (finished, result));
        }
        while self.ages.len() > self.history_max
            && let Some(oldest) = self.ages.pop_front()
        {
            self.finished.remove(&oldest);
        }
    }
}
