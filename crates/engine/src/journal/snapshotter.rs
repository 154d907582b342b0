//! Keeps the log short: saves the state from time to time, and trims what led to it.

use std::time::Duration;

use laneway_core::{Scheduler, Snapshot, Timestamp};
use laneway_store::{Head, Log, Retention, StoreError, Version};
use tokio::task::JoinHandle;

use crate::driver::clock::millis;
use crate::driver::spawner::Spawner;
use crate::journal::Journal;

/// How many batches before the snapshot are left, so that an append of unknown outcome can be recognised.
const BATCHES_LEFT: u64 = 64;
/// The same where others share the log: they catch up by reading them, and one that is further behind loads the snapshot.
const BATCHES_LEFT_SHARED: u64 = 4096;

/// Saves the state in the background, once at a time.
pub(crate) struct Snapshotter {
    every: u64,
    history_max: u64,
    batches_left: u64,
    history_for: Option<Duration>,
    /// Events since the last snapshot.
    events: u64,
    saving: Option<JoinHandle<()>>,
    spawner: Spawner,
}

impl Snapshotter {
    pub(crate) fn new(
        every: u64,
        history_max: u64,
        history_for: Option<Duration>,
        is_shared: bool,
        spawner: Spawner,
    ) -> Snapshotter {
        let batches_left = if is_shared { BATCHES_LEFT_SHARED } else { BATCHES_LEFT };
        Snapshotter {
            every: every.max(1),
            history_max,
            batches_left,
            history_for,
            events: 0,
            saving: None,
            spawner,
        }
    }

    /// Counts events that were kept, and saves the state when there were enough. Saving costs as much as there is
    /// to save, so a large state is saved less often: the cost of an event stays the same.
    pub(crate) fn count(&mut self, events: u64, journal: &Journal, head: Head, scheduler: &Scheduler) {
        let Some(log) = journal.log() else { return };
        self.events += events;
        let is_saving = self.saving.as_ref().is_some_and(|saving| !saving.is_finished());
        if is_saving || self.events < self.every.max(scheduler.live_tasks() as u64) {
            return;
        }
        self.events = 0;
        let (log, state, keep) = (log.clone(), scheduler.snapshot(), self.keep(scheduler.now()));
        let (left, spawner) = (self.batches_left, self.spawner.clone());
        self.saving = Some(self.spawner.spawn(async move {
            // Without a snapshot the log is only longer; the next one comes.
            drop(save(&log, head, state, keep, left, &spawner).await);
        }));
    }

    fn keep(&self, now: Timestamp) -> Retention {
        let since = |length: Duration| Timestamp(now.0.saturating_sub(millis(length).0));
        Retention { ended_since: self.history_for.map(since), count_max: Some(self.history_max) }
    }

    /// The state, if there is something to save before the end.
    pub(crate) fn last(&self, journal: &Journal, scheduler: &Scheduler) -> Option<Snapshot> {
        (journal.log().is_some() && self.events > 0).then(|| scheduler.snapshot())
    }

    /// Waits for what is being saved, and saves the state for the last time, so that the next open is fast.
    pub(crate) async fn finish(
        &mut self,
        journal: &Journal,
        head: Head,
        last: Option<Snapshot>,
        now: Timestamp,
    ) {
        if let Some(saving) = self.saving.take() {
            // It fails only when the runtime ends.
            drop(saving.await);
        }
        if let (Some(log), Some(state)) = (journal.log(), last) {
            // As above.
            drop(save(log, head, state, self.keep(now), self.batches_left, &self.spawner).await);
        }
    }
}

async fn save(
    log: &Log,
    head: Head,
    state: Snapshot,
    keep: Retention,
    left: u64,
    spawner: &Spawner,
) -> Result<(), StoreError> {
    // A large state takes a while to encode, which must not hold up the tasks of this runtime.
    let encoder = log.clone();
    let sealed = spawner.blocking(move || encoder.seal_snapshot(head, &state)).await;
    let Some(sealed) = sealed else { return Ok(()) };
    log.store().save_snapshot(sealed?).await?;
    log.store().trim(Version(head.version.0.saturating_sub(left))).await?;
    log.store().trim_history(keep).await.map(drop)
}
