//! Places in line, and when a task will probably start.

use crate::id::TaskId;
use crate::lane::Gate;
use crate::line::NONE;
use crate::ordered::Place;
use crate::scheduler::Scheduler;
use crate::task::Phase;
use crate::time::Millis;

/// What somebody is told who was refused by a lane that has measured nothing yet.
const RETRY_AFTER_UNKNOWN: Millis = Millis::from_secs(5);
const RETRY_AFTER_MIN: Millis = Millis::from_secs(1);
const RETRY_AFTER_MAX: Millis = Millis::from_secs(300);

impl Scheduler {
    /// A waiting task's place in the line of its home lane, by level and arrival, counted from one.
    pub fn position(&self, task: TaskId) -> Option<usize> {
        let slot = self.tasks.find(task)?;
        matches!(self.tasks[slot].phase, Phase::Waiting).then(|| self.ahead(slot) + 1)
    }

    pub(crate) fn ahead(&self, slot: u32) -> usize {
        let task = &self.tasks[slot];
        self.line.position(self.lanes.route(task.route).home(), task.place())
    }

    /// How many tasks would stand before a new task of this priority in a home lane.
    pub(crate) fn ahead_of_newcomer(&self, home: u32, priority: u8) -> usize {
        self.line.position(home, Place::new(priority, self.arrivals))
    }

    /// When a waiting task will probably start; `None` when there is nothing to judge by.
    pub fn estimated_start(&self, task: TaskId) -> Option<Millis> {
        let slot = self.tasks.find(task)?;
        matches!(self.tasks[slot].phase, Phase::Waiting).then(|| self.starts_in(slot, self.ahead(slot)))?
    }

    /// The latest of what each lane that has no slot says.
    pub(crate) fn starts_in(&self, slot: u32, ahead: usize) -> Option<Millis> {
        let route = self.lanes.route(self.tasks[slot].route);
        let closed = route.lanes.iter().filter(|lane| !self.lanes[**lane].open);
        let estimates =
            closed.map(|lane| self.estimate(*lane, if *lane == route.home() { ahead } else { 0 }));
        estimates.max().flatten()
    }

    /// When a lane will probably have a slot for a task with `ahead` others before it: from the moving average
    /// of its run times, and its rate limit. `None` when it has measured nothing, or is paused.
    pub(crate) fn estimate(&self, number: u32, ahead: usize) -> Option<Millis> {
        let lane = &self.lanes[number];
        let settings = self.settings(number);
        if lane.gate == Gate::Paused {
            return None;
        }
        let by_rate = settings.rate_limit.map(|rate| {
            let one = rate.per.millis().0 / u64::from(rate.max);
            let ready = lane.bucket.ready_at(rate).since(self.now).0;
            Millis(ready.saturating_add(one.saturating_mul(ahead as u64)))
        });
        let Some(slots) = settings.max_concurrency.filter(|slots| lane.running >= *slots) else {
            return by_rate;
        };
        let measured = lane.run_time.millis().or(self.book.class(lane.class).stats.run_time.millis());
        let between_ends = measured? / u64::from(slots);
        let next_end = (lane.last_change + Millis(between_ends)).since(self.now);
        let by_slots = Millis(next_end.0.saturating_add(between_ends.saturating_mul(ahead as u64)));
        by_rate.max(Some(by_slots))
    }

    /// What to tell somebody whom this lane refuses.
    pub(crate) fn retry_after(&self, lane: u32) -> Millis {
        let estimate = if lane == NONE { None } else { self.estimate(lane, 0) };
        estimate.unwrap_or(RETRY_AFTER_UNKNOWN).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }
}
