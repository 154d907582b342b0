//! Places in line, and when a task will probably start.

use crate::api::ids::TaskId;
use crate::api::time::Millis;
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::ranked_list::ArrivalRank;
use crate::state::task::{Phase, TaskIdx};

/// When a refused caller may come back, if nothing can be said about the lane.
pub(crate) const RETRY_AFTER_UNKNOWN: Millis = Millis::from_secs(5);
pub(crate) const RETRY_AFTER_MIN: Millis = Millis(100);
pub(crate) const RETRY_AFTER_MAX: Millis = Millis::from_secs(300);

impl Scheduler {
    /// A waiting task's place in the line of its home lane, by level and arrival, counted from one.
    pub fn position(&self, task: TaskId) -> Option<usize> {
        let idx = self.state.tasks.find(task)?;
        matches!(self.state.tasks[idx].phase, Phase::Waiting).then(|| self.ahead(idx) + 1)
    }

    /// The same, with the probable time until it starts; `None` there: no estimate.
    pub fn prospect(&self, task: TaskId) -> Option<(usize, Option<Millis>)> {
        let idx = self.state.tasks.find(task)?;
        matches!(self.state.tasks[idx].phase, Phase::Waiting).then(|| {
            let ahead = self.ahead(idx);
            (ahead + 1, self.starts_in(idx, ahead))
        })
    }

    pub(crate) fn ahead(&self, idx: TaskIdx) -> usize {
        let task = &self.state.tasks[idx];
        self.position_in(self.state.lanes.route(task.route).first_lane(), task.rank())
    }

    /// How many tasks would stand before a new task of this priority in a home lane.
    pub(crate) fn ahead_of_newcomer(&self, home: LaneIdx, priority: u8) -> usize {
        self.position_in(home, ArrivalRank::new(priority, self.state.arrivals))
    }

    /// When a waiting task will probably start; `None` when there is nothing to judge by.
    pub fn estimated_start(&self, task: TaskId) -> Option<Millis> {
        self.prospect(task)?.1
    }

    /// The latest of what each lane that has no slot says; `None` if one of them cannot say.
    pub(super) fn starts_in(&self, idx: TaskIdx, ahead: usize) -> Option<Millis> {
        let task = &self.state.tasks[idx];
        let route = self.state.lanes.route(task.route);
        let parent = self.parent_of(idx);
        let is_closed = |lane: &LaneIdx| !self.state.lanes[*lane].open && !self.can_borrow(parent, *lane);
        let mut latest = None;
        for lane in route.lanes.iter().copied().filter(is_closed) {
            let others = self.state.lanes[lane].waiting.saturating_sub(1);
            let is_home = lane == route.first_lane();
            let ahead = if is_home { ahead } else { self.share_ahead(others, task.urgency()) };
            latest = latest.max(Some(self.estimate(lane, ahead)?));
        }
        latest
    }

    /// How many of `others` in a lane that is not its home are probably before a task. Such a lane has no order of its
    /// own, so they count as urgent as all tasks in the line on average.
    pub(crate) fn share_ahead(&self, others: u32, urgency: u8) -> usize {
        let as_urgent: u32 = self.indexes.ready_by_level[urgency as usize..].iter().sum();
        let share = u64::from(others) * u64::from(as_urgent) / u64::from(self.indexes.ready_count.max(1));
        share as usize
    }

    /// When a lane will probably have a slot for a task with `ahead` others before it. It rests on the rate limit and the
    /// moving average of run times. `None` if the lane has measured nothing or is paused.
    pub(crate) fn estimate(&self, idx: LaneIdx, ahead: usize) -> Option<Millis> {
        let lane = &self.state.lanes[idx];
        let settings = self.settings(idx);
        if lane.gate.paused {
            return None;
        }
        let by_rate = settings.rate_limit.map(|rate| {
            let one = rate.per.millis().0 / u64::from(rate.max);
            let ready = lane.bucket.ready_at(rate).since(self.state.now).0;
            Millis(ready.saturating_add(one.saturating_mul(ahead as u64)))
        });
        let Some(slots) = settings.max_concurrency.filter(|slots| lane.running >= *slots) else {
            return by_rate;
        };
        let measured =
            lane.run_time.millis().or(self.state.lane_config.class(lane.class).stats.run_time.millis());
        let between_ends = measured? / u64::from(slots);
        let next_end = (lane.last_change + Millis(between_ends)).since(self.state.now);
        let by_slots = Millis(next_end.0.saturating_add(between_ends.saturating_mul(ahead as u64)));
        by_rate.max(Some(by_slots))
    }
}
