//! What must always hold, checked by looking at everything.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::lane_settings::{Handler, LEVEL_MAX};
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::state::RememberedKey;
use crate::state::lane::{LaneIdx, LiveLane};
use crate::state::lane_config::ClassIdx;
use crate::state::ready_tree::fair_share::FairKeyIdx;
use crate::state::ready_tree::node::LaneNeed;
use crate::state::ready_tree::{EXTERNAL, INTERNAL};
use crate::state::task::{LiveTask, Phase, TaskIdx};

impl Scheduler {
    /// The first broken invariant, in words. Looks at the whole state, so it is for tests and doubts.
    pub fn violation(&self) -> Option<String> {
        self.scratch
            .overrun
            .clone()
            .or_else(|| self.wrong_conservation())
            .or_else(|| self.wrong_lane())
            .or_else(|| self.wrong_lease())
            .or_else(|| self.wrong_ready_tree())
            .or_else(|| self.runnable_but_waiting())
            .or_else(|| self.wrong_timer())
            .or_else(|| self.wrong_dead_letters())
            .or_else(|| self.state.fair.disagreement())
            .or_else(|| self.wrong_session())
    }

    /// Accepted = waiting + retrying + running + ended.
    fn wrong_conservation(&self) -> Option<String> {
        let live = self.state.tasks.len() as u64;
        if self.state.arrivals != live + self.state.ended {
            return Some(format!(
                "accepted {}, live {live}, ended {}",
                self.state.arrivals, self.state.ended
            ));
        }
        let running = self.state.tasks.iter().filter(|(_, task)| task.attempt().is_some()).count();
        let kinds =
            self.state.tasks.iter().map(|(_, task)| task.kind).collect::<std::collections::BTreeSet<_>>();
        if running != self.state.tasks.running.len() || kinds.len() != self.state.kinds.len() {
            return Some(format!("{running} run, {} are listed", self.state.tasks.running.len()));
        }
        let timed = self.state.keys.values().filter(|known| !known.until_end).count();
        let is_timed =
            |at, key| self.state.keys.get(key).is_some_and(|known| known.until == at && !known.until_end);
        let is_held = |known: &RememberedKey| !known.until_end || self.state.tasks.find(known.task).is_some();
        let keys_agree = self.indexes.key_ends.len() == timed
            && self.indexes.key_ends.iter().all(|(at, key)| is_timed(*at, key))
            && self.state.keys.values().all(is_held);
        (!keys_agree).then(|| "keys and their ends disagree".to_owned())
    }

    /// Slots taken = live attempts, lent ones once; counts, flags and routes agree with a full scan.
    fn wrong_lane(&self) -> Option<String> {
        let mut counts: BTreeMap<LaneIdx, (u32, u32, u32)> = BTreeMap::new();
        for (_, task) in self.state.tasks.iter() {
            for lane in &*self.state.lanes.route(task.route).lanes {
                let (running, waiting, retrying) = counts.entry(*lane).or_default();
                match &task.phase {
                    Phase::Running(attempt) => {
                        *running += u32::from(attempt.borrowed.iter().all(|(other, _)| other != lane));
                    }
                    Phase::BackingOff(_) => *retrying += 1,
                    _ => *waiting += 1,
                }
            }
        }
        for (number, lane) in self.state.lanes.iter() {
            let counted = counts.remove(&number).unwrap_or_default();
            let name = &lane.name;
            if (lane.running, lane.waiting, lane.retrying) != counted {
                let told = (lane.running, lane.waiting, lane.retrying);
                return Some(format!("{name} says {told:?} run, wait, retry; {counted:?} do"));
            }
            let routes = self.state.lanes.routes().filter(|route| route.lanes.contains(&number)).count();
            if lane.routes as usize != routes {
                return Some(format!("{name} is on {routes} routes, not {}", lane.routes));
            }
            if self.is_idle(number) {
                return Some(format!("{name} is kept for nothing"));
            }
            if let Some(wrong) = self.wrong_flags(number) {
                return Some(wrong);
            }
        }
        let gone = counts.pop_first().map(|(lane, _)| format!("lane {lane:?} is gone, but tasks name it"));
        gone.or_else(|| self.state.lanes.disagreement())
    }

    fn wrong_flags(&self, idx: LaneIdx) -> Option<String> {
        let lane = &self.state.lanes[idx];
        let settings = self.settings(idx);
        let ready = settings.rate_limit.is_none_or(|rate| lane.bucket.ready_at(rate) <= self.state.now);
        let passable = !lane.gate.paused && ready;
        let kept = u32::from(lane.reserved.is_some());
        let open = passable && settings.max_concurrency.is_none_or(|slots| lane.running + kept < slots);
        if (lane.passable, lane.open) != (passable, open) {
            return Some(format!("{} says passable {}, open {}", lane.name, lane.passable, lane.open));
        }
        if lane.quiet != LiveLane::LOUD && lane.quiet != lane.quiet_within(settings) {
            return Some(format!("{} is quiet while {:?} wait", lane.name, lane.quiet));
        }
        let reserved = lane.reserved.is_none_or(|task| self.state.reservations.contains(&task));
        (!reserved).then(|| format!("{} keeps a slot for no task", lane.name))
    }

    /// Fences grow, and lent slots match borrowed ones.
    fn wrong_lease(&self) -> Option<String> {
        for (fence, task) in self.state.tasks.running.iter() {
            let Some(attempt) = self.state.tasks.get(task).and_then(LiveTask::attempt) else {
                return Some(format!("{fence} is listed but does not run"));
            };
            if attempt.fence != fence || fence.0 > self.state.fences {
                return Some(format!("{fence} is listed, the attempt has {}", attempt.fence));
            }
            for (lane, lender) in &attempt.borrowed {
                let lent = self.state.tasks.get(*lender).and_then(LiveTask::attempt);
                if !lent.is_some_and(|lent| lent.lent.contains(&(*lane, task))) {
                    return Some(format!("{fence} borrowed lane {lane:?} from no task"));
                }
            }
            for (lane, user) in &attempt.lent {
                let borrowed = self.state.tasks.get(*user).and_then(LiveTask::attempt);
                if !borrowed.is_some_and(|borrowed| borrowed.borrowed.contains(&(*lane, task))) {
                    return Some(format!("{fence} lent lane {lane:?} to no task"));
                }
            }
        }
        None
    }

    fn wrong_ready_tree(&self) -> Option<String> {
        let is_closed = |need: LaneNeed| match need {
            LaneNeed::Slot(lane) => !self.state.lanes[lane].open,
            LaneNeed::Gate(lane) => !self.state.lanes[lane].passable,
        };
        if let Some(wrong) = self.indexes.ready.disagreement(is_closed) {
            return Some(wrong);
        }
        let mut in_line = [0; LEVEL_MAX as usize + 1];
        let mut under_key: BTreeSet<FairKeyIdx> = BTreeSet::new();
        let mut best: Option<((u8, u64, u64), TaskIdx)> = None;
        for (idx, task) in self.state.tasks.iter().filter(|(_, task)| matches!(task.phase, Phase::Waiting)) {
            in_line[task.urgency() as usize] += 1;
            let Some(key) = task.leaf.and_then(|leaf| self.indexes.ready.key_of(leaf)) else {
                return Some(format!("{} waits and is not in the line", task.id));
            };
            under_key.insert(key);
            let tag = self.state.fair.keys[key].tag;
            let rank = (u8::MAX - task.level(), tag, task.arrival);
            if task.handler == Handler::External
                && self.may_run(idx)
                && best.is_none_or(|(other, _)| rank < other)
            {
                best = Some((rank, idx));
            }
        }
        if in_line != self.indexes.ready_by_level || in_line.iter().sum::<u32>() != self.indexes.ready_count {
            return Some(format!("in line by level {:?}, not {in_line:?}", self.indexes.ready_by_level));
        }
        let told = self.indexes.ready.best(EXTERNAL);
        if told != best.map(|(_, idx)| idx) {
            return Some(format!("the line offers {told:?}, a scan {best:?}"));
        }
        let agree =
            self.state.fair.keys.iter().all(|(key, fair)| fair.is_waiting == under_key.contains(&key));
        (!agree).then(|| "a fair key is wrong about its waiting tasks".to_owned())
    }

    /// No task that may run waits.
    fn runnable_but_waiting(&self) -> Option<String> {
        if self.local.is_stopped {
            return None;
        }
        if let Some(idx) = self.indexes.ready.best(INTERNAL) {
            return Some(format!("{} could run", self.state.tasks[idx].id));
        }
        let mut waiting = self.state.tasks.iter().filter(|(_, task)| matches!(task.phase, Phase::Waiting));
        let idle = waiting.find(|(idx, task)| task.handler != Handler::External && self.may_run(*idx));
        idle.map(|(_, task)| format!("{} could run, and the line does not know", task.id))
    }

    fn wrong_timer(&self) -> Option<String> {
        let mut timed = 0;
        for (_, task) in self.state.tasks.iter() {
            let boost = self.next_boost(task).map_or(Timestamp::NEVER, |(at, _)| at);
            let due = task.next_due(boost);
            if task.due != due || due <= self.state.now {
                return Some(format!(
                    "{} is due at {due} at {}, the timers say {}",
                    task.id, self.state.now, task.due
                ));
            }
            if due != Timestamp::NEVER {
                timed += 1;
                if !self.indexes.timers.has_task(due, task.arrival) {
                    return Some(format!("the timers forgot {}", task.id));
                }
            }
        }
        let waiting = self.indexes.ready_count as usize;
        if self.indexes.timers.wait_check_count() > 2 * waiting + 64 {
            return Some(format!(
                "{} looks for {waiting} waiting tasks",
                self.indexes.timers.wait_check_count()
            ));
        }
        (timed != self.indexes.timers.task_count())
            .then(|| format!("{timed} timers, not {}", self.indexes.timers.task_count()))
    }

    fn wrong_dead_letters(&self) -> Option<String> {
        let mut dead_letters: BTreeMap<ClassIdx, u32> = BTreeMap::new();
        self.state.dead_letters.classes().for_each(|class| *dead_letters.entry(class).or_default() += 1);
        for (class, count) in dead_letters {
            let class = self.state.lane_config.class(class);
            if class.dead_letters != count || count > class.settings.dead_letters_max {
                return Some(format!(
                    "{} has {count} dead letters, {} told",
                    class.label, class.dead_letters
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
