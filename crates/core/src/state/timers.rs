//! What is due, and when.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use crate::api::time::Timestamp;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::ranked_list::RankedList;
use crate::state::task::TaskIdx;

/// A moment at which a waiting task is checked: to give a notice, or because waiting may have raised it.
///
/// Every waiting task has one, and most tasks are granted long before it. So checks are not removed but found stale,
/// and swept out when they outnumber the waiting tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitCheck {
    pub(crate) at: Timestamp,
    pub(crate) arrival: u64,
    pub(crate) task: TaskIdx,
}

/// A waiting task that waiting would raise above this level, if a more urgent task were in the line. It is found stale
/// like a [`WaitCheck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CappedTask {
    pub(crate) level: u8,
    pub(crate) arrival: u64,
    pub(crate) task: TaskIdx,
}

#[derive(Default)]
pub(crate) struct Timers {
    /// Tasks with something that must happen at a moment, by (when, arrival).
    tasks: RankedList<(Timestamp, u64)>,
    /// Lanes with an empty bucket: (when a token is there or the bucket is full, lane).
    lanes: BTreeSet<(Timestamp, LaneIdx)>,
    /// Checks that were added in the order of their time, as most are.
    wait_checks: VecDeque<WaitCheck>,
    /// The other checks.
    unordered_checks: BinaryHeap<Reverse<WaitCheck>>,
    /// The lowest level first.
    capped: BTreeSet<CappedTask>,
    /// Nothing is due before this.
    nothing_before: Timestamp,
}

impl Timers {
    /// Whether something may be due at `now`: cheap to ask, and never wrong when it says no.
    pub(crate) fn may_be_due(&self, now: Timestamp) -> bool {
        self.nothing_before <= now
    }

    /// Something else is due at `at`.
    pub(crate) fn expect(&mut self, at: Timestamp) {
        self.nothing_before = self.nothing_before.min(at);
    }

    /// Everything that was due is done; the next thing is due at `next`.
    pub(crate) fn nothing_due_before(&mut self, next: Timestamp) {
        self.nothing_before = next;
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        let tasks = self.tasks.first().map(|((at, _), _)| at);
        let lanes = self.lanes.first().map(|(at, _)| *at);
        let wait_checks = self.wait_checks.front().map(|check| check.at);
        let stray = self.unordered_checks.peek().map(|Reverse(check)| check.at);
        [tasks, lanes, wait_checks, stray].into_iter().flatten().min()
    }

    pub(crate) fn move_task(&mut self, old: Timestamp, new: Timestamp, arrival: u64, task: TaskIdx) {
        if old != Timestamp::NEVER {
            self.tasks.remove((old, arrival));
        }
        if new != Timestamp::NEVER {
            self.tasks.insert((new, arrival), task);
            self.expect(new);
        }
    }

    /// The first task whose moment has come.
    pub(crate) fn due_task(&self, now: Timestamp) -> Option<TaskIdx> {
        self.tasks.first().filter(|((at, _), _)| *at <= now).map(|(_, task)| task)
    }

    pub(crate) fn add_lane(&mut self, at: Timestamp, lane: LaneIdx) {
        self.lanes.insert((at, lane));
        self.expect(at);
    }

    pub(crate) fn due_lane(&mut self, now: Timestamp) -> Option<LaneIdx> {
        let (at, lane) = *self.lanes.first()?;
        if at > now {
            return None;
        }
        self.lanes.pop_first();
        Some(lane)
    }

    pub(crate) fn add_wait_check(&mut self, check: WaitCheck) {
        self.expect(check.at);
        if self.wait_checks.back().is_none_or(|last| *last <= check) {
            self.wait_checks.push_back(check);
        } else {
            self.unordered_checks.push(Reverse(check));
        }
    }

    /// The first look whose moment has come.
    pub(crate) fn due_wait_check(&mut self, now: Timestamp) -> Option<WaitCheck> {
        let orderly = self.wait_checks.front().copied();
        let stray = self.unordered_checks.peek().map(|Reverse(check)| *check);
        let first = [orderly, stray].into_iter().flatten().min().filter(|check| check.at <= now)?;
        if orderly == Some(first) {
            self.wait_checks.pop_front()
        } else {
            self.unordered_checks.pop().map(|Reverse(check)| check)
        }
    }

    /// Whether stale looks outnumber the `waiting` tasks.
    pub(crate) fn needs_sweep(&self, waiting: u32) -> bool {
        let stale_max = 2 * waiting as usize + 64;
        self.wait_check_count() > stale_max || self.capped.len() > stale_max
    }

    /// Nothing waits, so every look at a waiting task is stale.
    pub(crate) fn forget_waiting(&mut self) {
        self.wait_checks.clear();
        self.unordered_checks.clear();
        self.capped.clear();
    }

    /// Sweeps out stale looks.
    pub(crate) fn sweep(
        &mut self,
        is_live: impl Fn(&WaitCheck) -> bool,
        is_capped: impl Fn(&CappedTask) -> bool,
    ) {
        self.wait_checks.retain(&is_live);
        self.unordered_checks.retain(|Reverse(check)| is_live(check));
        self.capped.retain(is_capped);
    }

    /// Gives back what empty lists have grown to.
    pub(crate) fn shrink(&mut self) {
        if self.tasks.is_empty() {
            self.tasks = RankedList::default();
        }
        self.wait_checks.retain(|_| false);
        self.wait_checks.shrink_to_fit();
        self.unordered_checks.clear();
        self.unordered_checks.shrink_to_fit();
    }

    pub(crate) fn has_capped(&self) -> bool {
        !self.capped.is_empty()
    }

    pub(crate) fn add_capped(&mut self, capped: CappedTask) {
        self.capped.insert(capped);
    }

    /// Takes out the first task that is held below `level`.
    pub(crate) fn next_capped_below(&mut self, level: u8) -> Option<CappedTask> {
        if self.capped.first()?.level >= level { None } else { self.capped.pop_first() }
    }

    /// For the checks.
    pub(crate) fn task_count(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn has_task(&self, at: Timestamp, arrival: u64) -> bool {
        self.tasks.contains((at, arrival))
    }

    pub(crate) fn wait_check_count(&self) -> usize {
        self.wait_checks.len() + self.unordered_checks.len()
    }

    /// Forgets all timers, before they are planned again.
    pub(crate) fn clear(&mut self) {
        *self = Timers::default();
    }
}
