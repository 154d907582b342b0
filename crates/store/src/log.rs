//! A store in terms of events.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{BlobId, Scheduler, Snapshot, TaskId};

use crate::error::{Damage, ErrorKind, StoreError};
use crate::frame::Record;
use crate::record::{
    Batch, Finished, seal_batch, seal_finished, seal_payload, seal_result, seal_snapshot, unseal_batch,
    unseal_finished, unseal_payload, unseal_result, unseal_snapshot,
};
use crate::store::Store;
use crate::types::{Append, Head, HistoryPosition, HistoryQuery, StoredFinished, StoredSnapshot, Version};

/// What is appended in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub batch: Batch,
    /// Payloads of tasks that were accepted.
    pub payloads: Vec<(BlobId, Bytes)>,
    /// Payloads that no task needs.
    pub dropped: Vec<BlobId>,
    /// Tasks that ended, each with what it produced.
    pub finished: Vec<(Finished, Option<Bytes>)>,
}

/// How often to look for a snapshot and a log that fit together.
const RESTORE_TRIES: usize = 5;

/// A [`Store`] in terms of events and states: encodes what goes in, and checks and decodes what comes out.
#[derive(Clone)]
pub struct Log {
    store: Arc<dyn Store>,
}

impl Entry {
    /// A batch alone.
    pub fn of(batch: Batch) -> Entry {
        Entry { batch, payloads: Vec::new(), dropped: Vec::new(), finished: Vec::new() }
    }
}

impl Log {
    /// The log in this store.
    pub fn new(store: Arc<dyn Store>) -> Log {
        Log { store }
    }

    /// The store, for calls that need no decoding.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Appends if the log still ends at `expected`; see [`Store::append`].
    pub async fn append(&self, expected: Head, entry: &Entry) -> Result<Head, StoreError> {
        self.store.append(self.seal(expected, entry)?).await
    }

    /// Encodes an entry, to append it once or, after a lost answer, again.
    pub fn seal(&self, expected: Head, entry: &Entry) -> Result<Append, StoreError> {
        let name = self.store.name();
        let blob = |(id, payload): &(BlobId, Bytes)| (*id, seal_payload(*id, payload));
        let finished = |(finished, result): &(Finished, Option<Bytes>)| {
            Ok(StoredFinished {
                task: finished.task,
                ended: finished.ended,
                place: HistoryPosition::default(),
                record: seal_finished(name, finished)?,
                result: seal_result(finished.task, finished.payload.as_ref(), result.as_ref()),
                labels: finished.labels(),
            })
        };
        Ok(Append {
            expected,
            batch: entry.batch.id,
            record: seal_batch(name, expected, &entry.batch)?,
            blobs: entry.payloads.iter().map(blob).collect(),
            dropped: entry.dropped.as_slice().into(),
            finished: entry.finished.iter().map(finished).collect::<Result<_, StoreError>>()?,
            requeue: false,
        })
    }

    /// Where the part of the log begins that is still kept as batches: [`read`](Log::read) goes on from there.
    pub async fn begin(&self) -> Result<Head, StoreError> {
        let oldest = match self.store.read(Version(0)).await {
            Ok(_) => return Ok(Head::EMPTY),
            Err(StoreError::Trimmed { oldest, .. }) => oldest,
            Err(error) => return Err(error),
        };
        let version = Version(oldest.0.saturating_sub(1));
        match self.store.read(version).await?.first() {
            Some(first) => {
                let record = Record::Batch(first.version);
                let (batch, _) = unseal_batch(self.store.name(), record, &first.record)?;
                Ok(Head { version, batch })
            }
            None => self.store.head().await,
        }
    }

    /// The next batches after `after`, each with its head; none at the end of the log.
    ///
    /// [`Conflict`](StoreError::Conflict) when the log does not pass through `after`: it has lost what the
    /// caller has seen.
    pub async fn read(&self, after: Head) -> Result<Vec<(Head, Batch)>, StoreError> {
        let stored = self.store.read(after.version).await?;
        let mut batches = Vec::with_capacity(stored.len());
        let mut head = after;
        for next in stored {
            let record = Record::Batch(head.version.next());
            if next.version != head.version.next() {
                return Err(record.corrupt(self.store.name(), Damage::OutOfOrder));
            }
            let (before, batch) = unseal_batch(self.store.name(), record, &next.record)?;
            if before != head.batch {
                let current = Head { version: after.version, batch: before };
                if batches.is_empty() {
                    return Err(StoreError::Conflict { expected: after, current });
                }
                return Err(record.corrupt(self.store.name(), Damage::OutOfOrder));
            }
            head = head.then(batch.id);
            batches.push((head, batch));
        }
        Ok(batches)
    }

    /// The newest snapshot.
    pub async fn load(&self) -> Result<Option<(Head, Snapshot)>, StoreError> {
        let Some(StoredSnapshot { head, record }) = self.store.snapshot().await? else { return Ok(None) };
        Ok(Some((head, unseal_snapshot(self.store.name(), head, &record)?)))
    }

    /// Keeps the state that all batches up to `head` lead to.
    pub async fn save(&self, head: Head, state: &Snapshot) -> Result<(), StoreError> {
        self.store.save_snapshot(self.seal_snapshot(head, state)?).await
    }

    /// Encodes that state, which takes a while when it is large.
    pub fn seal_snapshot(&self, head: Head, state: &Snapshot) -> Result<StoredSnapshot, StoreError> {
        Ok(StoredSnapshot { head, record: seal_snapshot(self.store.name(), head, state)? })
    }

    /// A scheduler in the state that the log leads to, and where that is.
    pub async fn restore(&self, seed: u64) -> Result<(Head, Scheduler), StoreError> {
        for _ in 1..RESTORE_TRIES {
            match self.try_restore(seed).await {
                // Another replica may have trimmed or replaced the log between reading the snapshot and reading the log.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        match self.try_restore(seed).await {
            Err(error) if error.kind() == ErrorKind::Conflict => Err(StoreError::unreadable(
                self.store.name(),
                format!("its log does not follow its snapshot: {error}"),
            )),
            done => done,
        }
    }

    async fn try_restore(&self, seed: u64) -> Result<(Head, Scheduler), StoreError> {
        // The backend may have another log now, so batches at hand may be of the old one.
        self.store.forget_log();
        let (mut head, mut scheduler) = match self.load().await? {
            Some((head, state)) => (head, Scheduler::restore(seed, &state)),
            None => (Head::EMPTY, Scheduler::new(seed)),
        };
        self.catch_up(&mut head, &mut scheduler).await?;
        Ok((head, scheduler))
    }

    /// Applies the batches after `head`, and moves `head` to the end of the log.
    pub async fn catch_up(&self, head: &mut Head, scheduler: &mut Scheduler) -> Result<(), StoreError> {
        loop {
            let batches = self.read(*head).await?;
            if batches.is_empty() {
                return Ok(());
            }
            for (next, batch) in batches {
                batch.events.iter().for_each(|event| scheduler.apply(batch.at, event));
                scheduler.advance_to(batch.at);
                *head = next;
            }
        }
    }

    /// A payload.
    pub async fn payload(&self, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        let Some(bytes) = self.store.blob(id).await? else { return Ok(None) };
        unseal_payload(self.store.name(), id, &bytes).map(Some)
    }

    /// A finished task with its result.
    pub async fn finished(&self, task: TaskId) -> Result<Option<(Finished, Option<Bytes>)>, StoreError> {
        self.store.finished(task).await?.map(|stored| self.unseal_finished(stored)).transpose()
    }

    /// The results of some finished tasks, in the order of the question.
    pub async fn results(&self, tasks: Vec<TaskId>) -> Result<Vec<Option<Bytes>>, StoreError> {
        let stored = self.store.results(tasks.clone()).await?;
        let result = |(task, stored): (TaskId, Option<Bytes>)| {
            let Some(kept) = stored else { return Ok(None) };
            unseal_result(self.store.name(), task, &kept).map(|(_, result)| result)
        };
        tasks.into_iter().zip(stored).map(result).collect()
    }

    fn unseal_finished(&self, stored: StoredFinished) -> Result<(Finished, Option<Bytes>), StoreError> {
        let mut finished = unseal_finished(self.store.name(), stored.task, &stored.record)?;
        let kept = stored.result.map(|kept| unseal_result(self.store.name(), stored.task, &kept));
        let (payload, result) = kept.transpose()?.unwrap_or_default();
        finished.payload = payload;
        Ok((finished, result))
    }

    /// Finished tasks, the newest first.
    pub async fn history(&self, asked: HistoryQuery) -> Result<Vec<(HistoryPosition, Finished)>, StoreError> {
        let stored = self.store.history(asked).await?;
        let open = |stored: StoredFinished| {
            Ok((stored.place, unseal_finished(self.store.name(), stored.task, &stored.record)?))
        };
        stored.into_iter().map(open).collect()
    }
}
