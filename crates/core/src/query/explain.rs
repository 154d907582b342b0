//! Why does it wait? A question that changes nothing.

use crate::api::ids::TaskId;
use crate::api::lane_settings::Handler;
use crate::api::name::LaneName;
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::task::{Phase, TaskIdx};

/// Why a task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What holds it up, the most certain first. Empty when it runs.
    pub blockers: Vec<Blocker>,
    /// Its place in the line of its home lane, counted from one.
    pub position: Option<usize>,
    /// When it will probably start; `None` when there is nothing to judge by.
    pub starts_in: Option<Millis>,
}

/// One thing that holds a task up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocker {
    /// Its time has not come.
    NotYet {
        /// When it will.
        until: Timestamp,
    },
    /// It starts when another task has ended.
    After {
        /// Which one.
        task: TaskId,
    },
    /// Its next attempt waits for its time.
    BackingOff {
        /// When it comes.
        until: Timestamp,
    },
    /// A lane is paused.
    Paused {
        /// Which lane.
        lane: LaneName,
    },
    /// A lane's rate limit is used up.
    RateLimited {
        /// Which lane.
        lane: LaneName,
        /// Until when.
        until: Timestamp,
    },
    /// Its session has a turn that runs.
    SessionBusy {
        /// The session's lane.
        lane: LaneName,
        /// The turn.
        turn: TaskId,
        /// Since when it runs.
        since: Timestamp,
    },
    /// All slots of a lane are taken.
    LaneFull {
        /// Which lane.
        lane: LaneName,
        /// How many slots it has.
        max_concurrency: u32,
        /// By whom and since when, the longest first; the first few.
        holders: Vec<(TaskId, Timestamp)>,
    },
    /// The free slot of a lane is kept for a task that was passed over too often.
    Reserved {
        /// Which lane.
        lane: LaneName,
        /// For which task.
        task: TaskId,
    },
    /// No worker has claimed it.
    Unclaimed,
    /// Others in its home lane come first.
    Behind {
        /// How many.
        tasks: usize,
    },
}

/// How many holders of a full lane are named.
const HOLDERS_TOLD_MAX: usize = 10;

impl Scheduler {
    /// Why a task waits; `None` if it is not live.
    pub fn explain(&self, task: TaskId) -> Option<Explanation> {
        let idx = self.state.tasks.find(task)?;
        let task = &self.state.tasks[idx];
        let mut blockers = Vec::new();
        match &task.phase {
            Phase::Running(_) => {
                return Some(Explanation { blockers, position: None, starts_in: None });
            }
            Phase::Delayed(until) => blockers.push(Blocker::NotYet { until: *until }),
            Phase::Held => {
                let after = task.rare.as_ref().and_then(|rare| rare.after);
                blockers.extend(after.map(|task| Blocker::After { task }));
            }
            Phase::BackingOff(until) => blockers.push(Blocker::BackingOff { until: *until }),
            Phase::Waiting => {}
        }
        let parent = self.parent_of(idx);
        for lane in &*self.state.lanes.route(task.route).lanes {
            self.explain_lane(*lane, self.lender(parent, *lane).is_some(), idx, &mut blockers);
        }
        let in_line = matches!(task.phase, Phase::Waiting);
        if in_line && blockers.is_empty() && task.handler == Handler::External {
            blockers.push(Blocker::Unclaimed);
        }
        let ahead = in_line.then(|| self.ahead(idx));
        blockers.extend(ahead.filter(|tasks| *tasks > 0).map(|tasks| Blocker::Behind { tasks }));
        let starts_in = ahead.and_then(|ahead| self.starts_in(idx, ahead));
        Some(Explanation { blockers, position: ahead.map(|ahead| ahead + 1), starts_in })
    }

    fn explain_lane(&self, idx: LaneIdx, is_lent: bool, task: TaskIdx, blockers: &mut Vec<Blocker>) {
        let lane = &self.state.lanes[idx];
        let settings = self.settings(idx);
        let name = || lane.name.clone();
        if lane.gate.paused {
            blockers.push(Blocker::Paused { lane: name() });
        }
        if let Some(rate) = settings.rate_limit
            && lane.bucket.ready_at(rate) > self.state.now
        {
            blockers.push(Blocker::RateLimited { lane: name(), until: lane.bucket.ready_at(rate) });
        }
        let Some(slots) = settings.max_concurrency.filter(|_| !is_lent) else { return };
        if lane.running >= slots {
            let mut holders = self.holders_of(idx);
            match holders.first().copied() {
                Some((turn, since)) if slots == 1 && lane.name.is_session() => {
                    blockers.push(Blocker::SessionBusy { lane: name(), turn, since });
                }
                _ => {
                    holders.truncate(HOLDERS_TOLD_MAX);
                    blockers.push(Blocker::LaneFull { lane: name(), max_concurrency: slots, holders });
                }
            }
        } else if let Some(reserved) = lane.reserved.filter(|reserved| *reserved != task)
            && lane.running + 1 >= slots
        {
            blockers.push(Blocker::Reserved { lane: name(), task: self.state.tasks[reserved].id });
        }
    }

    /// Who runs in a lane and since when, the longest first.
    fn holders_of(&self, lane: LaneIdx) -> Vec<(TaskId, Timestamp)> {
        let running = self.state.tasks.running.iter().map(|(_, idx)| &self.state.tasks[idx]);
        let in_lane = running.filter(|task| self.state.lanes.route(task.route).lanes.contains(&lane));
        in_lane.filter_map(|task| task.attempt().map(|attempt| (task.id, attempt.started))).collect()
    }

    pub(crate) fn longest_running_in(&self, lane: LaneIdx) -> Option<TaskId> {
        let mut running = self.state.tasks.running.iter().map(|(_, idx)| &self.state.tasks[idx]);
        running.find(|task| self.state.lanes.route(task.route).lanes.contains(&lane)).map(|task| task.id)
    }
}
