//! The numbers of lanes over time, sampled, in bounded memory.
//!
//! Three rings hold the last five minutes, hour and day; longer rings have coarser points. A point has the largest numbers
//! since the previous point, so that a burst between two points shows, and the waits of the starts in between.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::{Histogram, LaneName, LaneStats, Scheduler, Timestamp};
use laneway_engine::Handle;
use laneway_protocol::Code;

use crate::telemetry::metrics::RejectionCounts;

/// The pause between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// A sample has the lanes with the most tasks, at most this many.
const LANES_MAX: usize = 64;

/// The range of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    Minutes5,
    Hour,
    Day,
}

impl Range {
    pub(crate) const ALL: [Range; 3] = [Range::Minutes5, Range::Hour, Range::Day];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Range::Minutes5 => "5m",
            Range::Hour => "1h",
            Range::Day => "24h",
        }
    }

    /// The range in milliseconds.
    pub(crate) fn length(self) -> u64 {
        match self {
            Range::Minutes5 => 300_000,
            Range::Hour => 3_600_000,
            Range::Day => 86_400_000,
        }
    }

    /// The number of samples per point: a point each 10 s, each minute, each 5 min.
    fn every(self) -> u64 {
        match self {
            Range::Minutes5 => 1,
            Range::Hour => 6,
            Range::Day => 30,
        }
    }

    /// The time between two points, in milliseconds.
    pub(crate) fn step(self) -> u64 {
        self.every() * SAMPLE_EVERY.as_millis() as u64
    }

    /// The number of points: one more than fit, so that the line reaches the edge.
    fn points_max(self) -> usize {
        (self.length() / self.step()) as usize + 1
    }
}

/// The points of all charts. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Charts(Arc<Mutex<Rings>>);

struct Rings {
    taken: u64,
    rings: [Ring; 3],
}

impl Default for Rings {
    fn default() -> Rings {
        Rings { taken: 0, rings: Range::ALL.map(Ring::new) }
    }
}

struct Ring {
    range: Range,
    samples: VecDeque<Sample>,
    /// The waits at the last point, by label.
    waits: BTreeMap<String, Histogram>,
    /// The lanes since the last point, with removed ones: their label, and the largest numbers.
    peaks: BTreeMap<LaneName, (String, u32, u32)>,
}

/// A point of all lanes.
#[derive(Clone)]
struct Sample {
    at: Timestamp,
    lanes: BTreeMap<LaneName, Numbers>,
}

/// The numbers of a lane at one moment. Counters are those of its label.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) running: u32,
    pub(crate) waiting: u32,
    pub(crate) started: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// The waits of starts since the previous point: p50, p95 and p99, in milliseconds.
    pub(crate) wait: Option<[u64; 3]>,
    pub(crate) refused: BTreeMap<Code, u64>,
}

/// The numbers of all lanes, from one read.
struct LaneReading {
    at: Timestamp,
    /// The lanes with the most tasks: name, label, running, waiting.
    lanes: Vec<(LaneName, String, u32, u32)>,
    /// The counters of each label.
    blocks: BTreeMap<String, LaneStats>,
    /// The refusals by label; the label `global` counts all.
    refused: BTreeMap<String, BTreeMap<Code, u64>>,
}

impl Charts {
    /// Takes samples until the queue ends.
    pub(crate) async fn sample(self, handle: Handle, rejections: RejectionCounts) {
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            match handle.read(read).await {
                Ok(reading) => self.keep(reading, &rejections),
                Err(laneway_engine::Error::Closed) => return,
                // The chart has a gap while the store is unreachable.
                Err(_) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, mut reading: LaneReading, rejections: &RejectionCounts) {
        let mut altogether: BTreeMap<Code, u64> = BTreeMap::new();
        for ((label, code), count) in rejections.all() {
            *altogether.entry(code).or_default() += count;
            reading.refused.entry(label.to_string()).or_default().insert(code, count);
        }
        reading.refused.insert(LaneName::global().to_string(), altogether);
        let mut rings = self.lock();
        let taken = rings.taken;
        rings.taken += 1;
        rings.rings.iter_mut().for_each(|ring| ring.take(&reading, taken));
    }

    /// The points of a lane, the oldest first. A point without the lane has no numbers. The newest sample is always the
    /// last.
    pub(crate) fn points(&self, lane: &LaneName, range: Range) -> Vec<(Timestamp, Option<Numbers>)> {
        let rings = self.lock();
        let newest = rings.rings[0].samples.back();
        let ring = rings.rings.iter().find(|ring| ring.range == range);
        let samples = ring.into_iter().flat_map(|ring| &ring.samples);
        let last = samples.clone().last().map(|sample| sample.at);
        let newest = newest.filter(|newest| last.is_none_or(|last| newest.at > last));
        let known = |sample: &Sample| (sample.at, sample.lanes.get(lane).cloned());
        samples.chain(newest).map(known).collect()
    }
}

impl Ring {
    fn new(range: Range) -> Ring {
        Ring { range, samples: VecDeque::new(), waits: BTreeMap::new(), peaks: BTreeMap::new() }
    }

    fn take(&mut self, reading: &LaneReading, number: u64) {
        for (lane, label, running, waiting) in &reading.lanes {
            if self.peaks.len() < LANES_MAX || self.peaks.contains_key(lane) {
                let (_, most_running, most_waiting) =
                    self.peaks.entry(lane.clone()).or_insert_with(|| (label.clone(), 0, 0));
                (*most_running, *most_waiting) =
                    ((*most_running).max(*running), (*most_waiting).max(*waiting));
            }
        }
        if !number.is_multiple_of(self.range.every()) {
            return;
        }
        let peaks = std::mem::take(&mut self.peaks).into_iter();
        let lanes = peaks.map(|(lane, (label, running, waiting))| {
            (lane, Numbers { running, waiting, ..self.of_block(&label, reading) })
        });
        let sample = Sample { at: reading.at, lanes: lanes.collect() };
        self.waits = reading.blocks.iter().map(|(label, seen)| (label.clone(), seen.wait.clone())).collect();
        if self.samples.len() >= self.range.points_max() {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    fn of_block(&self, label: &str, reading: &LaneReading) -> Numbers {
        let refused = reading.refused.get(label).cloned().unwrap_or_default();
        let Some(seen) = reading.blocks.get(label) else { return Numbers { refused, ..Numbers::default() } };
        // A new label has no earlier waits; the first sample has no beginning.
        let nothing = Histogram::default();
        let before = self.waits.get(label).or((!self.samples.is_empty()).then_some(&nothing));
        let since = before.map(|before| seen.wait.since(before));
        let percentile = |percent| since.as_ref().and_then(|since| Some(since.percentile(percent)?.0));
        let wait = percentile(50).zip(percentile(95)).zip(percentile(99));
        let wait = wait.map(|((p50, p95), p99)| [p50, p95, p99]);
        let (started, completed, failed) = (seen.started, seen.completed, seen.failed);
        Numbers { started, completed, failed, wait, refused, ..Numbers::default() }
    }
}

fn read(lanes: &Scheduler) -> LaneReading {
    let mut views = lanes.lanes();
    views.sort_by_key(|view| {
        std::cmp::Reverse((view.name == LaneName::global(), view.running + view.waiting))
    });
    views.truncate(LANES_MAX);
    let numbers =
        views.iter().map(|view| (view.name.clone(), view.label.to_owned(), view.running, view.waiting));
    let blocks = lanes.stats().map(|(label, seen)| (label.to_owned(), seen.clone())).collect();
    LaneReading { at: lanes.now(), lanes: numbers.collect(), blocks, refused: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use laneway_core::{Block, Command, LaneSettings, Millis, Name, Outcome, Pattern, TaskId, TaskSpec};

    use super::*;

    /// A scheduler whose lane `one` has one slot.
    struct Work {
        lanes: Scheduler,
        now: u64,
        next: u128,
        charts: Charts,
        rejections: RejectionCounts,
    }

    impl Work {
        fn new() -> Work {
            let (charts, rejections) = (Charts::default(), RejectionCounts::default());
            let mut work = Work { lanes: Scheduler::new(7), now: 1_000_000, next: 1, charts, rejections };
            // Nothing renews leases here.
            let settings = LaneSettings { lease: Some(Millis::from_secs(3600)), ..LaneSettings::default() };
            let block = Block { lanes: Pattern::new("one").unwrap(), settings: Some(settings) };
            work.step(Command::Configure(vec![block]));
            work
        }

        fn step(&mut self, command: Command) {
            self.lanes.step(Timestamp(self.now), command, &mut Vec::new()).unwrap();
        }

        fn submit(&mut self) {
            let spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::new("one").unwrap()]);
            self.step(Command::Submit { task: TaskId(self.next), spec: Box::new(spec) });
            self.next += 1;
        }

        /// Ends the running task after this time.
        fn end(&mut self, after: Millis) {
            self.now += after.0;
            let running = self.lanes.tasks().find_map(|task| Some((task.id, task.running?.fence)));
            let (task, fence) = running.unwrap();
            self.step(Command::Finish { task, fence, taken: Vec::new(), outcome: Outcome::Success });
        }

        fn sample(&mut self) {
            self.now += SAMPLE_EVERY.as_millis() as u64;
            self.step(Command::Tick);
            self.charts.keep(read(&self.lanes), &self.rejections);
        }

        fn points(&self, range: Range) -> Vec<Numbers> {
            let lane = LaneName::new("one").unwrap();
            let points = self.charts.points(&lane, range).into_iter();
            points.map(|(_, numbers)| numbers.unwrap_or_default()).collect()
        }
    }

    #[test]
    fn a_point_has_the_waits_of_the_starts_since_the_one_before_and_no_others() {
        let mut work = Work::new();
        work.sample();
        (0..2).for_each(|_| work.submit());
        work.end(Millis(8));
        work.sample();
        work.sample();
        let waits: Vec<_> = work.points(Range::Minutes5).iter().map(|numbers| numbers.wait).collect();
        assert_eq!(waits, [None, Some([0, 8, 8]), None]);
    }

    #[test]
    fn each_percentile_is_of_its_own_share() {
        let mut work = Work::new();
        work.sample();
        // Half of a hundred tasks do not wait.
        for (count, wait) in [(44, 8), (4, 64), (2, 512)] {
            for _ in 0..count {
                (0..2).for_each(|_| work.submit());
                work.end(Millis(wait));
                work.end(Millis(0));
            }
        }
        work.sample();
        assert_eq!(work.points(Range::Minutes5)[1].wait, Some([0, 64, 512]));
        let (_, seen) = work.lanes.stats().find(|(label, _)| *label == "one").unwrap();
        let shown = crate::http::routes::lanes::percentiles(&seen.wait);
        let shown = [shown.p50_ms, shown.p90_ms, shown.p95_ms, shown.p99_ms];
        assert_eq!(shown, [Some(0), Some(8), Some(64), Some(512)]);
    }

    #[test]
    fn a_burst_between_two_coarse_points_still_shows() {
        let mut work = Work::new();
        work.sample();
        (0..4).for_each(|_| work.submit());
        work.sample();
        (0..4).for_each(|_| work.end(Millis(1)));
        (0..5).for_each(|_| work.sample());
        let hour = work.points(Range::Hour);
        assert_eq!(hour.len(), 2);
        assert_eq!((hour[1].running, hour[1].waiting, hour[1].completed), (1, 3, 4));
    }

    #[test]
    fn rings_are_bounded_and_reach_back_as_far_as_they_say() {
        let mut work = Work::new();
        work.submit();
        for _ in 0..9000 {
            work.sample();
        }
        for range in Range::ALL {
            let lane = LaneName::new("one").unwrap();
            let points = work.charts.points(&lane, range);
            assert!(points.len() <= range.points_max() + 1, "{range:?}: {}", points.len());
            let reach = points.last().unwrap().0.since(points[0].0).0;
            assert!(reach >= range.length(), "{range:?} reaches back {reach} ms");
        }
    }

    #[test]
    fn refusals_count_by_code_for_the_lane_and_for_everything() {
        let mut work = Work::new();
        work.submit();
        for (label, code) in [("one", Code::AtCapacity), ("one", Code::AtCapacity), ("", Code::RateLimited)] {
            work.rejections.count(label.into(), code);
        }
        work.sample();
        let everything = work.charts.points(&LaneName::global(), Range::Day);
        let refused = &everything[0].1.as_ref().unwrap().refused;
        assert_eq!(*refused, BTreeMap::from([(Code::AtCapacity, 2), (Code::RateLimited, 1)]));
        let label = work.lanes.lane(&LaneName::new("one").unwrap()).unwrap().label.to_owned();
        work.rejections.count(label.into(), Code::Draining);
        work.sample();
        let of_lane = work.points(Range::Minutes5).pop().unwrap().refused;
        assert_eq!(of_lane.get(&Code::Draining), Some(&1));
        assert_eq!(of_lane.get(&Code::RateLimited), None);
    }
}
