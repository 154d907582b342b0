//! Parents lend slots to children.
//!
//! A task that waits for its child cannot use its slots, so the child borrows the slot of each lane that both name.
//! One child at a time uses a slot, the slot counts once, and it can be lent on. So a lane with one slot never
//! deadlocks on its own children.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::ids::TaskId;
use crate::api::rejection::Rejection;
use crate::api::task_spec::TaskSpec;
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::task::{Attempt, Phase, TaskIdx};
use crate::step::Step;

impl Step<'_> {
    /// Ends everything that the task waits for, because it waits no more.
    pub(super) fn cancel_children(&mut self, idx: TaskIdx) {
        if self.state.tasks[idx].children().is_empty() {
            return;
        }
        for child in self.state.tasks[idx].children().to_vec() {
            // Ending one child can end another: the list is as it was.
            if self
                .state
                .tasks
                .get(child)
                .is_some_and(|task| task.waiting_parent() == Some(self.state.tasks[idx].id))
            {
                self.cancel_slot(child, crate::api::event::CancelReason::Parent);
            }
        }
    }
}

impl Scheduler {
    /// `first` and every task that waits for it, the nearest first.
    pub(super) fn ancestors(&self, first: Option<TaskIdx>) -> impl Iterator<Item = TaskIdx> {
        std::iter::successors(first, |task| self.state.tasks.find(self.state.tasks[*task].waiting_parent()?))
    }

    /// The nearest of `parent` and its ancestors that has a slot of `lane` to lend.
    pub(crate) fn lender(&self, parent: Option<TaskIdx>, lane: LaneIdx) -> Option<TaskIdx> {
        // Where slots are unlimited there is nothing to lend.
        self.settings(lane).max_concurrency?;
        self.ancestors(parent).find(|idx| {
            let task = &self.state.tasks[*idx];
            let free = |attempt: &Attempt| {
                attempt.stopping.is_none() && attempt.lent.iter().all(|(lent, _)| *lent != lane)
            };
            task.attempt().is_some_and(free) && self.state.lanes.route(task.route).lanes.contains(&lane)
        })
    }

    pub(crate) fn can_borrow(&self, parent: Option<TaskIdx>, lane: LaneIdx) -> bool {
        self.state.lanes[lane].passable && self.lender(parent, lane).is_some()
    }

    pub(crate) fn parent_of(&self, task: TaskIdx) -> Option<TaskIdx> {
        self.state.tasks[task].waiting_parent().and_then(|parent| self.state.tasks.find(parent))
    }

    /// Which of its lanes, by index, a task would borrow if it were granted now.
    pub(crate) fn borrowed_lanes(&self, task: TaskIdx) -> Vec<u8> {
        let Some(parent) = self.parent_of(task) else { return vec![] };
        let lanes = self.state.lanes.route(self.state.tasks[task].route).lanes.iter().enumerate();
        lanes
            .filter(|(_, lane)| self.lender(Some(parent), **lane).is_some())
            .map(|(index, _)| index as u8)
            .collect()
    }

    /// Refuses a child that could never start, because every holder of a lane that it needs waits for it in the end. For
    /// example, two parents hold what each other's children need.
    pub(super) fn check_deadlock(
        &self,
        spec: &TaskSpec,
        mut lanes: impl Iterator<Item = LaneIdx>,
    ) -> Result<(), Rejection> {
        let parent = spec.parent.filter(|parent| !parent.detached);
        let Some(parent) = parent.and_then(|parent| self.state.tasks.find(parent.task)) else {
            return Ok(());
        };
        let holders = self.holders();
        let able = self.able_to_finish(&holders, parent);
        let stuck = |lane: LaneIdx, holder: TaskIdx| Err(self.would_deadlock(lane, holder));
        let stuck_in = |parent: Option<TaskIdx>, lane: LaneIdx| {
            // A pause or a used-up rate is over one day; it is no deadlock.
            let opens = self.lender(parent, lane).is_some() || self.may_open(lane, &holders, &able);
            let holder = holders.get(&lane).and_then(|holders| holders.first());
            (!opens).then_some((lane, *holder?))
        };
        if let Some((lane, holder)) = lanes.find_map(|lane| stuck_in(Some(parent), lane)) {
            return stuck(lane, holder);
        }
        // Nor can it start before those end that it is to start after.
        for before in self.chain_before(spec.after) {
            let lanes = &self.state.lanes.route(self.state.tasks[before].route).lanes;
            if self.state.tasks[before].attempt().is_some() {
                if !able.contains(&before) {
                    return stuck(lanes[0], before);
                }
            } else if let Some((lane, holder)) =
                lanes.iter().find_map(|lane| stuck_in(self.parent_of(before), *lane))
            {
                return stuck(lane, holder);
            }
        }
        Ok(())
    }

    /// The live tasks that must end before a task that starts after `first`, the nearest first.
    fn chain_before(&self, first: Option<TaskId>) -> impl Iterator<Item = TaskIdx> {
        let first = first.and_then(|first| self.state.tasks.find(first));
        std::iter::successors(first, |task| {
            self.state.tasks.find(self.state.tasks[*task].rare.as_ref().and_then(|rare| rare.after)?)
        })
    }

    /// The tasks that hold a slot of each lane. A borrowed slot counts for its borrower.
    fn holders(&self) -> BTreeMap<LaneIdx, Vec<TaskIdx>> {
        let mut holders: BTreeMap<LaneIdx, Vec<TaskIdx>> = BTreeMap::new();
        for (_, idx) in self.state.tasks.running.iter() {
            let task = &self.state.tasks[idx];
            let lent = task.attempt().map_or(&[][..], |attempt| &attempt.lent);
            for lane in &*self.state.lanes.route(task.route).lanes {
                if lent.iter().all(|(other, _)| other != lane) {
                    holders.entry(*lane).or_default().push(idx);
                }
            }
        }
        holders
    }

    /// Running tasks that can come to an end, all of whose children can: found by adding to the set until
    /// nothing more can be added. `parent` waits for the newcomer, so it and its ancestors cannot yet.
    fn able_to_finish(
        &self,
        holders: &BTreeMap<LaneIdx, Vec<TaskIdx>>,
        parent: TaskIdx,
    ) -> BTreeSet<TaskIdx> {
        let waiting_for_newcomer: Vec<TaskIdx> = self.ancestors(Some(parent)).collect();
        let mut able = BTreeSet::new();
        loop {
            let before = able.len();
            for (_, task) in self.state.tasks.running.iter() {
                let child_is_able = |child: &TaskIdx| match self.state.tasks[*child].phase {
                    Phase::Running(_) => able.contains(child),
                    _ => self.may_start(*child, holders, &able),
                };
                if !waiting_for_newcomer.contains(&task)
                    && self.state.tasks[task].children().iter().all(child_is_able)
                {
                    able.insert(task);
                }
            }
            if able.len() == before {
                return able;
            }
        }
    }

    fn may_start(
        &self,
        task: TaskIdx,
        holders: &BTreeMap<LaneIdx, Vec<TaskIdx>>,
        able: &BTreeSet<TaskIdx>,
    ) -> bool {
        let parent = self.parent_of(task);
        let lanes = self.state.lanes.route(self.state.tasks[task].route).lanes.iter();
        lanes.copied().all(|lane| self.lender(parent, lane).is_some() || self.may_open(lane, holders, able))
    }

    /// Whether a lane has a slot or will, as far as its holders are concerned.
    fn may_open(
        &self,
        lane: LaneIdx,
        holders: &BTreeMap<LaneIdx, Vec<TaskIdx>>,
        able: &BTreeSet<TaskIdx>,
    ) -> bool {
        let has_slot =
            self.settings(lane).max_concurrency.is_none_or(|slots| self.state.lanes[lane].running < slots);
        has_slot || holders.get(&lane).is_none_or(|holders| holders.iter().any(|task| able.contains(task)))
    }
}
