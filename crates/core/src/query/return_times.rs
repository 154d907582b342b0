//! When refused callers may come back.

use std::collections::BTreeMap;

use crate::api::ids::TaskId;
use crate::api::name::LaneName;
use crate::api::rejection::LaneFull;
use crate::api::time::{Millis, Timestamp};
use crate::query::estimate::{RETRY_AFTER_MAX, RETRY_AFTER_MIN, RETRY_AFTER_UNKNOWN};
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;

/// Moments are remembered for this many lanes at most. Callers of further lanes may come at the same moment.
const LANES_MAX: usize = 1024;

/// A caller comes at most this much later than a slot becomes free.
const MARGIN_MAX_MS: u64 = 100;

/// The moments at which refused callers may come back, the latest of each lane. Each caller gets the next free moment, so that they
/// do not all come at once.
///
/// This is no part of the state: a refusal leaves no event, and a moment that is forgotten costs a caller one more request.
#[derive(Debug, Default)]
pub struct ReturnTimes {
    latest: BTreeMap<LaneName, Timestamp>,
}

impl ReturnTimes {
    /// Gives a refused caller a moment of its own.
    pub fn give(&mut self, now: Timestamp, full: &mut LaneFull) {
        let earliest = now + full.retry_after;
        let next = self.latest.get(&full.lane).map_or(earliest, |latest| earliest.max(*latest + full.every));
        full.retry_after = next.since(now).min(RETRY_AFTER_MAX);
        if self.latest.len() >= LANES_MAX {
            self.latest.retain(|_, latest| *latest > now);
        }
        if self.latest.len() < LANES_MAX || self.latest.contains_key(&full.lane) {
            self.latest.insert(full.lane.clone(), now + full.retry_after);
        }
    }
}

impl Scheduler {
    /// When the first caller that this lane refuses may come back, and how much later each further one.
    pub(crate) fn return_of_refused(&self, lane: Option<LaneIdx>) -> (Millis, Millis) {
        let known = lane.filter(|lane| !self.state.lanes[*lane].gate.paused);
        let Some(lane) = known else { return (RETRY_AFTER_UNKNOWN, RETRY_AFTER_MIN) };
        let measured = self.estimate(lane, 0).zip(self.estimate(lane, 1));
        let (first, second) = measured.unwrap_or_else(|| {
            // Nothing has ended yet: what has run for so long may run as long again.
            let slots = u64::from(self.settings(lane).max_concurrency.unwrap_or(1).max(1));
            let longest = self.longest_running_in(lane).and_then(|task| self.running_for(task));
            let first = longest
                .map_or(RETRY_AFTER_UNKNOWN, |length| length.clamp(RETRY_AFTER_MIN, RETRY_AFTER_UNKNOWN));
            (first, Millis(first.0 + first.0 / slots))
        });
        let between = Millis(second.0.saturating_sub(first.0));
        // A little more, because a caller that comes a moment too early comes in vain.
        let a_little_more = |wait: Millis| Millis(wait.0 + (wait.0 / 10).min(MARGIN_MAX_MS));
        let (first, between) = (a_little_more(first), a_little_more(between));
        (first.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX), between.clamp(Millis(1), RETRY_AFTER_MAX))
    }

    fn running_for(&self, task: TaskId) -> Option<Millis> {
        let idx = self.state.tasks.find(task)?;
        Some(self.state.now.since(self.state.tasks[idx].attempt()?.started))
    }
}
