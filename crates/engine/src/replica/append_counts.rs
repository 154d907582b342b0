//! Counts of this replica's appends since it started.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often an engine appended, and what that cost where others share the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appends {
    /// Batches that are in the log.
    pub kept: u64,
    /// Batches that were decided in vain, because another replica appended first.
    pub lost: u64,
    /// How often it waited for the append turn.
    pub waits: u64,
    /// How often it went on without the append turn, because the replica that had it was silent for too long.
    pub overdue: u64,
}

/// The counts, as the loop keeps them.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) kept: Count,
    pub(crate) lost: Count,
    pub(super) waits: Count,
    pub(super) overdue: Count,
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    pub(crate) fn read(&self) -> Appends {
        let [kept, lost, waits, overdue] =
            [&self.kept, &self.lost, &self.waits, &self.overdue].map(Count::value);
        Appends { kept, lost, waits, overdue }
    }
}
