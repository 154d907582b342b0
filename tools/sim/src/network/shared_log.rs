//! The store that all share: a log in memory that can be set back.

use std::sync::Arc;

use futures_util::FutureExt;
use laneway_core::Snapshot;
use laneway_store::{Append, Batch, Head, Log, MemoryStore, Store, StoreError, StoredSnapshot, Version};

/// How many batches stay when the log is trimmed: fewer than a replica that was away misses, more than are appended
/// while one waits for an answer.
const BATCHES_LEFT: u64 = 40;

/// What the store holds, and how it is.
pub(crate) struct SharedLog {
    pub(crate) memory: MemoryStore,
    log: Log,
    /// Everything in the log, from its beginning.
    appends: Vec<Append>,
    /// The snapshots that were saved, the oldest first.
    snapshots: Vec<StoredSnapshot>,
    /// Until when no replica can reach it.
    pub(crate) away_until: u64,
    /// How far its clock is ahead of the true time, in milliseconds.
    pub(crate) ahead: i64,
}

/// The answer of a store in memory, which is always there.
pub(crate) fn now<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let waits = || StoreError::Unavailable { store: "simulated".into(), reason: "it waits".into() };
    answer.now_or_never().unwrap_or_else(|| Err(waits()))
}

impl SharedLog {
    pub(crate) fn new() -> SharedLog {
        let memory = MemoryStore::new();
        let log = Log::new(Arc::new(memory.clone()));
        SharedLog { memory, log, appends: Vec::new(), snapshots: Vec::new(), away_until: 0, ahead: 0 }
    }

    pub(crate) fn head(&self) -> Head {
        now(self.memory.head()).unwrap_or_default()
    }

    /// Appends; says whether the log has grown by it.
    pub(crate) fn append(&mut self, append: Append) -> (Result<Head, StoreError>, bool) {
        let before = self.head();
        let answer = now(self.memory.append(append.clone()));
        let has_grown = self.head() != before;
        if has_grown {
            self.appends.push(append);
        }
        (answer, has_grown)
    }

    /// What follows a place in the log, as it can be read there.
    pub(crate) fn after(&self, head: Head) -> Result<Vec<(Head, Batch)>, StoreError> {
        now(self.log.read(head))
    }

    /// The whole log, from its beginning.
    pub(crate) fn all(&self) -> Result<Vec<(Head, Batch)>, StoreError> {
        let whole = SharedLog::of(&self.appends, &[]);
        let (mut all, mut head) = (Vec::new(), Head::EMPTY);
        loop {
            let some = whole.after(head)?;
            let Some((last, _)) = some.last() else { return Ok(all) };
            head = *last;
            all.extend(some);
        }
    }

    pub(crate) fn save(&mut self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        now(self.memory.save_snapshot(snapshot.clone()))?;
        self.snapshots.push(snapshot);
        Ok(())
    }

    /// The content of a snapshot as a replica would load it; nothing if its version is no longer in the log.
    pub(crate) fn decoded(&self, snapshot: &StoredSnapshot) -> Result<Option<(Head, Snapshot)>, StoreError> {
        now(SharedLog::of(&self.appends, std::slice::from_ref(snapshot)).log.load())
    }

    /// Forgets the last batches, and all that came with them, but not the first, which holds the settings; how many.
    pub(crate) fn lose_tail(&mut self, batches: usize) -> usize {
        let left = self.appends.len().saturating_sub(batches).max(1).min(self.appends.len());
        let lost = self.appends.len() - left;
        self.appends.truncate(left);
        self.snapshots.retain(|snapshot| snapshot.head.version.0 <= left as u64);
        self.rebuild();
        lost
    }

    /// Forgets the newest snapshot; whether an older one is found in its place.
    pub(crate) fn lose_snapshot(&mut self) -> bool {
        let newest = |memory: &MemoryStore| {
            now(memory.snapshot()).ok().flatten().map(|snapshot| snapshot.head.version)
        };
        let before = newest(&self.memory);
        self.snapshots.retain(|snapshot| Some(snapshot.head.version) != before);
        self.rebuild();
        newest(&self.memory).is_some()
    }

    /// Forgets the beginning of the log; whether anything was.
    pub(crate) fn trim(&mut self) -> bool {
        let through = Version(self.head().version.0.saturating_sub(BATCHES_LEFT));
        let is_whole = |memory: &MemoryStore| now(memory.read(Version(0))).is_ok();
        let was_whole = is_whole(&self.memory);
        now(self.memory.trim(through)).is_ok() && was_whole && !is_whole(&self.memory)
    }

    fn of(appends: &[Append], snapshots: &[StoredSnapshot]) -> SharedLog {
        let mut log = SharedLog::new();
        for append in appends {
            // What was once taken in this order is taken again.
            let _head = log.append(append.clone());
        }
        for snapshot in snapshots {
            drop(log.save(snapshot.clone()));
        }
        log
    }

    fn rebuild(&mut self) {
        let (away_until, ahead) = (self.away_until, self.ahead);
        *self = SharedLog { away_until, ahead, ..SharedLog::of(&self.appends, &self.snapshots) };
    }
}
