//! The naive scheduler's parents and children.

use laneway_core::{LaneName, Rejection, TaskId, TaskSpec};

use crate::naive::{Naive, Phase, Task};

impl Naive {
    /// `first` and every live task that waits for it, the nearest first.
    pub(crate) fn ancestors(&self, first: Option<TaskId>) -> Vec<usize> {
        let mut ancestors = vec![];
        let mut next = first;
        while let Some(index) = next.and_then(|id| self.find(id)) {
            ancestors.push(index);
            next = self.tasks[index].parent;
        }
        ancestors
    }

    fn has_lent(&self, lender: TaskId, lane: &LaneName) -> bool {
        let borrows = |task: &Task| task.borrowed.iter().any(|(other, id)| other == lane && *id == lender);
        self.tasks.iter().any(borrows)
    }

    /// The nearest running ancestor that has a slot of a limited lane and has not lent it yet.
    pub(crate) fn lender(&self, parent: Option<TaskId>, lane: &LaneName) -> Option<TaskId> {
        self.settings(lane).max_concurrency?;
        let may_lend = |task: &&Task| {
            task.phase == Phase::Running
                && task.stopping.is_none()
                && task.lanes.contains(lane)
                && !self.has_lent(task.id, lane)
        };
        self.ancestors(parent).into_iter().map(|index| &self.tasks[index]).find(may_lend).map(|task| task.id)
    }

    /// An attempt is over: a borrower of its slots now borrows from its lender, or owns the slot.
    pub(crate) fn give_back(&mut self, id: TaskId) {
        let Some(index) = self.find(id) else { return };
        if self.tasks[index].phase != Phase::Running {
            return;
        }
        self.tasks[index].phase = Phase::Held;
        let over = std::mem::take(&mut self.tasks[index].borrowed);
        for task in &mut self.tasks {
            for (lane, lender) in std::mem::take(&mut task.borrowed) {
                let next = over.iter().find(|(other, _)| *other == lane).map(|(_, lender)| *lender);
                let lender = if lender == id { next } else { Some(lender) };
                task.borrowed.extend(lender.map(|lender| (lane, lender)));
            }
        }
    }

    /// Refuses a child that could never start, because every holder of a lane that it needs waits for it.
    pub(crate) fn check_deadlock(&self, spec: &TaskSpec, lanes: &[LaneName]) -> Result<(), Rejection> {
        let parent = Naive::waiting_parent(spec.parent);
        let ancestors = self.ancestors(parent);
        let Some(first) = ancestors.first().map(|index| self.tasks[*index].id) else { return Ok(()) };
        let able = self.able_to_finish(&ancestors);
        let stuck = |lane: &LaneName| {
            let holder = self.holders(lane).first().map_or(first, |index| self.tasks[*index].id);
            Err(Rejection::WouldDeadlock { lane: lane.clone(), label: "".into(), holder })
        };
        if let Some(lane) = self.stuck_lane(parent, lanes, &able) {
            return stuck(lane);
        }
        let mut next = spec.after;
        while let Some(index) = next.and_then(|id| self.find(id)) {
            let before = &self.tasks[index];
            if before.phase == Phase::Running {
                if !able.contains(&index) {
                    return Err(Rejection::WouldDeadlock {
                        lane: before.lanes[0].clone(),
                        label: "".into(),
                        holder: before.id,
                    });
                }
            } else if let Some(lane) = self.stuck_lane(before.parent, &before.lanes, &able) {
                return stuck(lane);
            }
            next = before.after;
        }
        Ok(())
    }

    /// The first of these lanes that will not have a slot for a child of `parent`.
    fn stuck_lane<'a>(
        &self,
        parent: Option<TaskId>,
        lanes: &'a [LaneName],
        able: &[usize],
    ) -> Option<&'a LaneName> {
        lanes.iter().find(|lane| self.lender(parent, lane).is_none() && !self.may_open(lane, able))
    }

    /// The tasks that use a slot of a lane.
    fn holders(&self, lane: &LaneName) -> Vec<usize> {
        let uses = |index: &usize| {
            let task = &self.tasks[*index];
            task.lanes.contains(lane) && !self.has_lent(task.id, lane)
        };
        self.running().into_iter().filter(uses).collect()
    }

    fn may_open(&self, lane: &LaneName, able: &[usize]) -> bool {
        let holders = self.holders(lane);
        self.has_free_slot(lane) || holders.is_empty() || holders.iter().any(|index| able.contains(index))
    }

    /// Running tasks that can end because all their children can, without those that wait for the new task. Tasks are
    /// added one by one until no more can be added.
    fn able_to_finish(&self, waiting: &[usize]) -> Vec<usize> {
        let mut able: Vec<usize> = vec![];
        loop {
            let is_able = |index: &usize| {
                let children =
                    self.children(self.tasks[*index].id).into_iter().filter_map(|id| self.find(id));
                let mut children = children.map(|child| (child, &self.tasks[child]));
                children.all(|(child, task)| match task.phase {
                    Phase::Running => able.contains(&child),
                    _ => self.stuck_lane(task.parent, &task.lanes, &able).is_none(),
                })
            };
            let more =
                self.running().into_iter().filter(|index| !waiting.contains(index) && !able.contains(index));
            let Some(next) = more.into_iter().find(is_able) else { return able };
            able.push(next);
        }
    }
}
