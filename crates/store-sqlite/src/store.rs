//! The store: reads go to the readers, changes to the writer.

use std::path::Path;
use std::thread::JoinHandle;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};
use laneway_store::{
    Answer, Append, Durability, Head, HistoryQuery, Retention, Store, StoreError, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use tokio::sync::{Mutex, watch};

use crate::change::{Change, Done, Known};
use crate::lock::DirLock;
use crate::open::{Options, open};
use crate::query;
use crate::readers::Readers;
use crate::writer::{Writer, no_thread};

/// The size of the parts of a snapshot; appends are written between them.
const PART_BYTES: usize = 1024 * 1024;
/// The most payloads that one change removes, for the same reason.
const BLOBS_PER_STEP: usize = 512;

/// A store in one directory, for one process at a time.
///
/// An append is flushed to disk when it is answered. A reader never waits for the writer. Dropping the store waits until
/// all changes are written.
pub struct SqliteStore {
    /// `None` while the store is dropped: the threads end when these are gone.
    ways: Option<(Writer, Readers)>,
    threads: Vec<JoinHandle<()>>,
    name: String,
    head: watch::Receiver<Head>,
    /// Locked while a snapshot is saved: two unfinished ones would mix their parts.
    saving: Mutex<()>,
    /// The last field, so that the directory is released last.
    _lock: DirLock,
}

impl SqliteStore {
    /// Opens the store in this directory, or makes it. Blocks for a few flushes of the disk at most, and for recovery after
    /// a crash.
    ///
    /// [`InUse`](StoreError::InUse) when a process has it, [`Corrupt`](StoreError::Corrupt) when it contains something
    /// that is not a store or that a newer program made.
    pub fn open(dir: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(dir, &Options::default())
    }

    /// Opens the store with other options than the defaults.
    pub fn open_with(dir: impl AsRef<Path>, options: &Options) -> Result<SqliteStore, StoreError> {
        let opened = open(dir.as_ref(), options)?;
        let name = opened.name;
        let sender = watch::Sender::new(opened.head);
        let head = sender.subscribe();
        let (readers, mut threads) = Readers::start(&name, &opened.path)?;
        let known = Known { head: opened.head, finished: None };
        let (writer, thread) = Writer::start(name.clone(), opened.writer, known, sender)
            .map_err(|error| no_thread(&name, &error))?;
        threads.push(thread);
        let ways = Some((writer, readers));
        Ok(SqliteStore { ways, threads, name, head, saving: Mutex::new(()), _lock: opened.lock })
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.ways.as_ref().map(|(writer, _)| writer).ok_or_else(|| StoreError::closed(&self.name))
    }

    fn readers(&self) -> Result<&Readers, StoreError> {
        self.ways.as_ref().map(|(_, readers)| readers).ok_or_else(|| StoreError::closed(&self.name))
    }

    /// The end of the log, if it reaches this version.
    fn reaching(&self, after: Version) -> Result<Head, StoreError> {
        let current = *self.head.borrow();
        if after <= current.version {
            return Ok(current);
        }
        Err(StoreError::beyond_end(after, current))
    }

    async fn save(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let _one_at_a_time = self.saving.lock().await;
        let writer = self.writer()?;
        let StoredSnapshot { head, record } = snapshot;
        let kept = self.readers()?.read(query::snapshot_version).await?;
        if kept.is_some_and(|kept| kept >= head.version) {
            return Ok(());
        }
        let mut parts = 0;
        for start in (0..record.len()).step_by(PART_BYTES) {
            let bytes = record.slice(start..record.len().min(start + PART_BYTES));
            writer.write(Change::SnapshotPart { version: head.version, part: parts, bytes }).await?;
            parts += 1;
        }
        let done = writer.write(Change::SnapshotDone { head, parts }).await;
        writer.remove_all(|| Change::RemoveParts).await?;
        writer.remove_all(|| Change::Shrink).await?;
        done.map(drop)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.ways = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has closed its connection too.
            drop(thread.join());
        }
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn durability(&self) -> Durability {
        Durability::Disk
    }

    fn head(&self) -> Answer<'_, Head> {
        Box::pin(async { Ok(*self.head.borrow()) })
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        Box::pin(async move {
            let head = append.outcome();
            match self.writer()?.write(Change::Append(append)).await? {
                Done::Head(head) => Ok(head),
                Done::Removed(_) | Done::Written => Ok(head),
            }
        })
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        Box::pin(async move {
            let head = self.reaching(after)?;
            self.readers()?.read(move |db| query::batches(db, after, head)).await
        })
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        Box::pin(async move {
            self.reaching(after)?;
            let mut head = self.head.clone();
            let grown = head.wait_for(|head| head.version > after).await;
            grown.map(|head| head.version).map_err(|_| StoreError::closed(&self.name))
        })
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        Box::pin(async {
            let name = self.name.clone();
            self.readers()?.read(move |db| query::snapshot(db, &name)).await
        })
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        Box::pin(self.save(snapshot))
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        Box::pin(async move {
            let writer = self.writer()?;
            writer.remove_all(|| Change::Trim(through)).await?;
            writer.remove_all(|| Change::Shrink).await.map(drop)
        })
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        Box::pin(async move { self.readers()?.read(move |db| query::blob(db, id)).await })
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        Box::pin(async move {
            let writer = self.writer()?;
            for some in ids.chunks(BLOBS_PER_STEP) {
                writer.write(Change::RemoveBlobs(some.to_vec())).await?;
            }
            writer.remove_all(|| Change::Shrink).await.map(drop)
        })
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        Box::pin(async move { self.readers()?.read(move |db| query::finished(db, task)).await })
    }

    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        Box::pin(async move { self.readers()?.read(move |db| query::history(db, &asked)).await })
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        Box::pin(async move {
            let writer = self.writer()?;
            let removed = writer.remove_all(|| Change::TrimHistory(keep)).await?;
            writer.remove_all(|| Change::Shrink).await?;
            Ok(removed)
        })
    }
}
