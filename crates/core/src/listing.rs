//! Lists of tasks, a page at a time, whose cost is that of the page and not of all that waits.

use crate::command::Selector;
use crate::id::TaskId;
use crate::name::LaneName;
use crate::scheduler::Scheduler;
use crate::task::Phase;
use crate::view::{TaskStatus, TaskView};

impl Scheduler {
    /// Live tasks that fit, at most `max`, from a place in the table of tasks on; and where to go on, if there may be
    /// more. Within a page they come in the order of arrival; a task keeps its place in the table as long as it lives.
    pub fn page(
        &self,
        which: &Selector,
        status: Option<TaskStatus>,
        from: u32,
        max: usize,
    ) -> (Vec<TaskView>, Option<u32>) {
        let lane = match &which.lane {
            None => None,
            Some(name) => match self.lanes.find(name) {
                None => return (Vec::new(), None),
                found => found,
            },
        };
        let mut slots: Vec<u32> = Vec::new();
        let mut next = None;
        for slot in from..self.tasks.table_len() {
            let Some(task) = self.tasks.get(slot) else { continue };
            let group = task.rare.as_ref().and_then(|rare| rare.group.as_ref());
            let fits = status.is_none_or(|status| status == self.status_of(slot))
                && lane.is_none_or(|lane| self.lanes.route(task.route).lanes.contains(&lane))
                && which.kind.as_ref().is_none_or(|kind| self.kinds.name(task.kind) == kind)
                && (which.group.is_none() || group == which.group.as_ref());
            if fits && slots.len() == max {
                next = Some(slot);
                break;
            }
            if fits {
                slots.push(slot);
            }
        }
        slots.sort_unstable_by_key(|slot| self.tasks[*slot].arrival);
        (slots.into_iter().map(|slot| self.view(slot)).collect(), next)
    }

    fn status_of(&self, slot: u32) -> TaskStatus {
        match self.tasks[slot].phase {
            Phase::Running(_) => TaskStatus::Running,
            Phase::BackingOff(_) => TaskStatus::Retrying,
            Phase::Delayed(_) | Phase::Held | Phase::Waiting => TaskStatus::Queued,
        }
    }

    /// Those that run in a lane, the longest first, and those that wait in it as their home, in the order of the line;
    /// at most `max` of each.
    pub fn line_of(&self, name: &LaneName, max: usize) -> (Vec<TaskView>, Vec<TaskView>) {
        let Some(lane) = self.lanes.find(name) else { return (Vec::new(), Vec::new()) };
        let in_lane = |slot: &u32| self.lanes.route(self.tasks[*slot].route).lanes.contains(&lane);
        let running = self.tasks.running.iter().map(|(_, slot)| slot).filter(in_lane);
        let running = running.take(max).map(|slot| self.view(slot)).collect();
        let waiting = self.lanes[lane].roll.iter().flat_map(|roll| roll.iter());
        let waiting = waiting.take(max).map(|(_, slot)| self.view(slot)).collect();
        (running, waiting)
    }

    /// When the task that has waited for longest with this lane as its home was accepted.
    pub fn oldest_waiting(&self, name: &LaneName) -> Option<crate::Timestamp> {
        let lane = self.lanes.find(name)?;
        let waiting = self.lanes[lane].roll.iter().flat_map(|roll| roll.iter());
        waiting.take(OLDEST_OF).map(|(_, slot)| self.tasks[slot].submitted).min()
    }

    /// Who runs under a worker's claim.
    pub fn claimed(&self) -> Vec<TaskView> {
        let running = self.tasks.running.iter().map(|(_, slot)| slot);
        let claimed = running
            .filter(|slot| self.tasks[*slot].attempt().is_some_and(|attempt| attempt.worker.is_some()));
        claimed.map(|slot| self.view(slot)).collect()
    }

    /// Whether a task is live.
    pub fn has(&self, task: TaskId) -> bool {
        self.tasks.find(task).is_some()
    }
}

/// Among how many at the head of a line the one that has waited for longest is looked for.
const OLDEST_OF: usize = 1000;
