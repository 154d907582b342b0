//! What this replica has counted since it started: its appends, and its part of what the lanes have seen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::{Count as LaneCount, LaneStats};

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

/// The upper bounds of the times that [`AppendTimes`] tells apart, in microseconds.
const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];

/// How long appends took, failed ones included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppendTimes {
    /// For each bound in seconds, how many appends took as long at most, and longer than the bound before. The last bound is
    /// infinite.
    pub buckets: Vec<(f64, u64)>,
    /// Their sum in seconds.
    pub sum: f64,
}

/// What the lanes have counted in the batches of this replica, by the label of the lane.
pub type OwnStats = BTreeMap<Arc<str>, LaneStats>;

/// The counts, as the loop keeps them.
#[derive(Default)]
pub(crate) struct Tally {
    times: [Count; BOUNDS_US.len() + 1],
    micros: Count,
    own: Mutex<OwnStats>,
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
        self.add_many(1);
    }

    fn add_many(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
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

    /// An append took this long.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.times[BOUNDS_US.partition_point(|bound| *bound < micros)].add();
        self.micros.add_many(micros);
    }

    pub(crate) fn times(&self) -> AppendTimes {
        let seconds = |micros: u64| micros as f64 / 1e6;
        let bounds = BOUNDS_US.into_iter().map(seconds).chain([f64::INFINITY]);
        let buckets = bounds.zip(&self.times).map(|(bound, count)| (bound, count.value())).collect();
        AppendTimes { buckets, sum: seconds(self.micros.value()) }
    }

    /// The lanes have counted this in a batch of ours.
    pub(crate) fn count(&self, counted: impl Iterator<Item = (Arc<str>, LaneCount)>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        for (label, count) in counted {
            own.entry(label).or_default().count(count);
        }
    }

    pub(crate) fn own(&self) -> OwnStats {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
