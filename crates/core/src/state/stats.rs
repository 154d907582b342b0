//! What a lane has seen, in bounded memory: counters, run times, and how long to tell people to wait.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::event::End;
use crate::api::time::Millis;

/// Counts durations in buckets that grow by a quarter of their power of two, so that a percentile is right
/// within 25 % whatever the number of samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    counts: Vec<u64>,
    samples: u64,
    sum: u64,
}

const SUB_BUCKETS: u64 = 4;
const BUCKETS: usize = 160;
/// The largest power of two below which samples are counted is 2^22 ms, 70 minutes.
const POWERS: u32 = 23;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], samples: 0, sum: 0 }
    }
}

fn bucket(millis: u64) -> usize {
    if millis < SUB_BUCKETS {
        return millis as usize;
    }
    let power = u64::from(millis.ilog2());
    let quarter = (millis >> (power - 2)) & (SUB_BUCKETS - 1);
    ((power - 1) * SUB_BUCKETS + quarter).min(BUCKETS as u64 - 1) as usize
}

fn lower_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let power = bucket / SUB_BUCKETS + 1;
    (SUB_BUCKETS + bucket % SUB_BUCKETS) << (power - 2)
}

impl Histogram {
    pub(super) fn record(&mut self, length: Millis) {
        self.counts[bucket(length.0)] += 1;
        self.samples += 1;
        self.sum = self.sum.saturating_add(length.0);
    }

    /// How many durations were recorded.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Their sum.
    pub fn sum(&self) -> Millis {
        Millis(self.sum)
    }

    /// What was recorded after `earlier`, which is this histogram as it once was.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let counts = self.counts.iter().zip(&earlier.counts).map(|(now, then)| now.saturating_sub(*then));
        Histogram {
            counts: counts.collect(),
            samples: self.samples.saturating_sub(earlier.samples),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// Counts what `other` has counted as well.
    pub fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
        self.samples += other.samples;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// For each power of two, from 1 ms to more than an hour, how many samples are below it. The counts are exact, and those of
    /// several histograms add up.
    pub fn below_powers(&self) -> impl Iterator<Item = (Millis, u64)> {
        (0..POWERS).map(|power| {
            let bound = 1 << power;
            (Millis(bound), self.counts[..bucket(bound)].iter().sum())
        })
    }

    /// A duration that `percent` of the samples do not exceed, rounded down to its bucket.
    pub fn percentile(&self, percent: u32) -> Option<Millis> {
        if self.samples == 0 {
            return None;
        }
        let wanted = (self.samples * u64::from(percent.min(100))).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map(|bucket| Millis(lower_bound(bucket)))
    }
}

/// A moving average of run times: the newest eighth counts as much as all that came before fades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunTime {
    /// In 1/256 ms, so that short runs do not vanish; `None` before the first.
    average: Option<NonZeroU64>,
}

impl RunTime {
    pub(crate) fn record(&mut self, length: Millis) {
        let sample = length.0.min(1 << 40) << 8;
        let average = match self.average.map(NonZeroU64::get) {
            None => sample,
            Some(average) => average - average / 8 + sample / 8,
        };
        self.average = NonZeroU64::new(average.max(1));
    }

    pub(crate) fn millis(self) -> Option<u64> {
        self.average.map(|average| average.get() >> 8)
    }
}

/// What the lanes of one block of settings have seen, those that came and went included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneStats {
    /// Tasks accepted.
    pub accepted: u64,
    /// Attempts started.
    pub started: u64,
    /// Attempts that were followed by another.
    pub retried: u64,
    /// Tasks that ended well.
    pub completed: u64,
    /// Tasks that ended as failed or timed out.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Tasks that waited too long: `expired` and `wait_timeout`.
    pub timed_out_waiting: u64,
    /// Tasks whose lease lapsed and that did not run again.
    pub lost: u64,
    /// From joining the line to each start.
    pub wait: Histogram,
    /// Of each attempt.
    pub run: Histogram,
    pub(crate) run_time: RunTime,
}

/// Something that a lane counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A task was accepted.
    Accepted,
    /// An attempt starts.
    Started {
        /// Since the task joined the line.
        waited: Millis,
    },
    /// An attempt is over.
    Ran {
        /// How long it took.
        length: Millis,
        /// Its length tells something about the next one's.
        ran_its_course: bool,
    },
    /// Another attempt follows.
    Retried,
    /// The task ended well.
    Completed,
    /// The task ended as failed or timed out.
    Failed,
    /// The task was cancelled.
    Cancelled,
    /// The task ended because it waited too long.
    TimedOutWaiting,
    /// The lease of the task's attempt lapsed, and it did not run again.
    Lost,
}

impl From<&End> for Count {
    fn from(end: &End) -> Count {
        match end {
            End::Completed => Count::Completed,
            End::Failed { .. } | End::TimedOut => Count::Failed,
            End::Cancelled { .. } => Count::Cancelled,
            End::Expired | End::WaitTimeout => Count::TimedOutWaiting,
            End::Lost => Count::Lost,
        }
    }
}

/// What lanes have counted since it was last asked for, each with the label of the lane.
#[derive(Default)]
pub(crate) struct Counted {
    is_collected: bool,
    since: Vec<(Arc<str>, Count)>,
}

impl Counted {
    pub(crate) fn collect(&mut self) {
        self.is_collected = true;
    }

    #[inline]
    pub(crate) fn note(&mut self, label: &Arc<str>, count: Count) {
        if self.is_collected {
            self.since.push((Arc::clone(label), count));
        }
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Arc<str>, Count)> {
        self.since.drain(..)
    }
}

impl LaneStats {
    /// Counts one thing.
    #[inline]
    pub fn count(&mut self, count: Count) {
        match count {
            Count::Accepted => self.accepted += 1,
            Count::Started { waited } => {
                self.started += 1;
                self.wait.record(waited);
            }
            Count::Ran { length, ran_its_course } => {
                self.run.record(length);
                if ran_its_course {
                    self.run_time.record(length);
                }
            }
            Count::Retried => self.retried += 1,
            Count::Completed => self.completed += 1,
            Count::Failed => self.failed += 1,
            Count::Cancelled => self.cancelled += 1,
            Count::TimedOutWaiting => self.timed_out_waiting += 1,
            Count::Lost => self.lost += 1,
        }
    }

    /// Counts what `other` has counted as well.
    pub fn add(&mut self, other: &LaneStats) {
        for (own, other) in [
            (&mut self.accepted, other.accepted),
            (&mut self.started, other.started),
            (&mut self.retried, other.retried),
            (&mut self.completed, other.completed),
            (&mut self.failed, other.failed),
            (&mut self.cancelled, other.cancelled),
            (&mut self.timed_out_waiting, other.timed_out_waiting),
            (&mut self.lost, other.lost),
        ] {
            *own += other;
        }
        self.wait.add(&other.wait);
        self.run.add(&other.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_time_is_an_average_in_which_the_newest_counts_an_eighth() {
        let mut run_time = RunTime::default();
        let mut after = |millis: u64| {
            run_time.record(Millis(millis));
            run_time.millis()
        };
        assert_eq!([after(800), after(1600), after(900), after(100)], [800, 900, 900, 800].map(Some));
    }

    #[test]
    fn percentiles_are_right_within_a_quarter_in_bounded_memory() {
        let mut histogram = Histogram::default();
        for millis in 1..=100_000 {
            histogram.record(Millis(millis));
        }
        histogram.record(Millis(u64::MAX));
        assert_eq!(histogram.samples(), 100_001);
        for percent in [1, 50, 90, 99] {
            let exact = u64::from(percent) * 1000;
            let told = histogram.percentile(percent).unwrap().0;
            assert!(told <= exact + 1 && told * 5 >= exact * 4, "p{percent}: {told}, not {exact}");
        }
        assert_eq!(histogram.counts.len(), BUCKETS);
        assert_eq!(Histogram::default().percentile(50), None);
    }

    #[test]
    fn what_was_recorded_since_stands_alone() {
        let mut histogram = Histogram::default();
        histogram.record(Millis(1_000_000));
        let earlier = histogram.clone();
        assert_eq!(histogram.since(&earlier).percentile(50), None);
        (0..3).for_each(|_| histogram.record(Millis(2)));
        let since = histogram.since(&earlier);
        assert_eq!((since.samples(), since.sum(), since.percentile(99)), (3, Millis(6), Some(Millis(2))));
    }

    #[test]
    fn samples_below_powers_of_two_are_exact_and_add_up() {
        let lengths = [0, 1, 3, 4, 5, 1000, 1023, 1024, 1 << 22, u64::MAX];
        let (mut all, mut parts) = (Histogram::default(), [Histogram::default(), Histogram::default()]);
        for (index, millis) in lengths.into_iter().enumerate() {
            all.record(Millis(millis));
            parts[index % 2].record(Millis(millis));
        }
        for (bound, below) in all.below_powers() {
            assert_eq!(below, lengths.iter().filter(|millis| **millis < bound.0).count() as u64, "{bound}");
        }
        assert_eq!(all.below_powers().last(), Some((Millis(1 << 22), 8)));
        let [mut sum, other] = parts;
        sum.add(&other);
        assert_eq!(sum, all);
    }

    #[test]
    fn each_bucket_begins_where_it_says() {
        for number in 0..BUCKETS - 1 {
            assert_eq!(bucket(lower_bound(number)), number);
        }
    }
}
