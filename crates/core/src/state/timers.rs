//! What the clock has to look at, and when.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use crate::api::time::Timestamp;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::ranked_list::Ordered;
use crate::state::task::TaskIdx;

/// A moment at which a waiting task is looked at: to give a notice, or because waiting may have raised it.
///
/// Every waiting task has one, and most are granted long before it comes; so these are not taken back
/// but found stale, and swept out when they are more than the tasks that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Look {
    pub(crate) at: Timestamp,
    pub(crate) arrival: u64,
    pub(crate) task: TaskIdx,
}

/// A waiting task that waiting would have raised above this level, had anybody more urgent been in the line.
/// Found stale like a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub(crate) level: u8,
    pub(crate) arrival: u64,
    pub(crate) task: TaskIdx,
}

#[derive(Default)]
pub(crate) struct Timers {
    /// Tasks with something that must happen at a moment, by (when, arrival).
    tasks: Ordered<(Timestamp, u64)>,
    /// Lanes with an empty bucket: (when a token is there or the bucket is full, lane).
    lanes: BTreeSet<(Timestamp, LaneIdx)>,
    /// Looks that were asked for in the order of their time, as most are.
    looks: VecDeque<Look>,
    /// The others.
    stray_looks: BinaryHeap<Reverse<Look>>,
    /// The lowest level first.
    held: BTreeSet<Held>,
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
        let looks = self.looks.front().map(|look| look.at);
        let stray = self.stray_looks.peek().map(|Reverse(look)| look.at);
        [tasks, lanes, looks, stray].into_iter().flatten().min()
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

    pub(crate) fn add_look(&mut self, look: Look) {
        self.expect(look.at);
        if self.looks.back().is_none_or(|last| *last <= look) {
            self.looks.push_back(look);
        } else {
            self.stray_looks.push(Reverse(look));
        }
    }

    /// The first look whose moment has come.
    pub(crate) fn due_look(&mut self, now: Timestamp) -> Option<Look> {
        let orderly = self.looks.front().copied();
        let stray = self.stray_looks.peek().map(|Reverse(look)| *look);
        let first = [orderly, stray].into_iter().flatten().min().filter(|look| look.at <= now)?;
        if orderly == Some(first) {
            self.looks.pop_front()
        } else {
            self.stray_looks.pop().map(|Reverse(look)| look)
        }
    }

    /// Whether stale looks outnumber the `waiting` tasks, or nothing waits and all are stale.
    pub(crate) fn needs_sweep(&self, waiting: u32) -> bool {
        let stale_max = if waiting == 0 { 0 } else { 2 * waiting as usize + 64 };
        self.look_count() > stale_max || self.held.len() > stale_max
    }

    /// Sweeps out stale looks.
    pub(crate) fn sweep(&mut self, is_live: impl Fn(&Look) -> bool, is_held: impl Fn(&Held) -> bool) {
        self.looks.retain(&is_live);
        self.stray_looks.retain(|Reverse(look)| is_live(look));
        self.held.retain(is_held);
    }

    /// Gives back what empty lists have grown to.
    pub(crate) fn shrink(&mut self) {
        if self.tasks.is_empty() {
            self.tasks = Ordered::default();
        }
        self.looks.retain(|_| false);
        self.looks.shrink_to_fit();
        self.stray_looks.clear();
        self.stray_looks.shrink_to_fit();
    }

    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    pub(crate) fn hold(&mut self, held: Held) {
        self.held.insert(held);
    }

    /// Takes out the first task that is held below `level`.
    pub(crate) fn next_held_below(&mut self, level: u8) -> Option<Held> {
        if self.held.first()?.level >= level { None } else { self.held.pop_first() }
    }

    /// For the checks.
    pub(crate) fn task_count(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn has_task(&self, at: Timestamp, arrival: u64) -> bool {
        self.tasks.contains((at, arrival))
    }

    pub(crate) fn look_count(&self) -> usize {
        self.looks.len() + self.stray_looks.len()
    }

    /// Forgets everything, to be told anew.
    pub(crate) fn clear(&mut self) {
        *self = Timers::default();
    }
}
