//! Lists of tasks, a page at a time, whose cost is that of the page and not of all that waits.

use crate::api::command::Selector;
use crate::api::ids::TaskId;
use crate::api::name::LaneName;
use crate::api::views::{LiveTaskView, TaskStatus};
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::task::{Phase, TaskIdx};

/// A task that has not started, and its place in the line of a lane, counted from one; `None`: not in it yet.
pub type InLine = (LiveTaskView, Option<usize>);

impl Scheduler {
    /// A page of at most `max` live tasks that fit, from a place in the table of tasks on, in order of arrival. Returns
    /// where the next page begins, if there may be one. A task keeps its place in the table as long as it lives.
    pub fn page(
        &self,
        which: &Selector,
        status: Option<TaskStatus>,
        from: u32,
        max: usize,
    ) -> (Vec<LiveTaskView>, Option<u32>) {
        let lane = match &which.lane {
            None => None,
            Some(name) => match self.state.lanes.find(name) {
                None => return (Vec::new(), None),
                found => found,
            },
        };
        let mut found: Vec<TaskIdx> = Vec::new();
        let mut next = None;
        for number in from..self.state.tasks.room() as u32 {
            let task = TaskIdx::new(number as usize);
            if self.state.tasks.get(task).is_none() {
                continue;
            }
            let fits =
                status.is_none_or(|status| status == self.status_of(task)) && self.fits(task, lane, which);
            if fits && found.len() == max {
                next = Some(number);
                break;
            }
            if fits {
                found.push(task);
            }
        }
        found.sort_unstable_by_key(|task| self.state.tasks[*task].arrival);
        (found.into_iter().map(|task| self.view(task)).collect(), next)
    }

    /// Whether `which` selects a task; `lane` is the lane that it names.
    pub(crate) fn fits(&self, idx: TaskIdx, lane: Option<LaneIdx>, which: &Selector) -> bool {
        let task = &self.state.tasks[idx];
        let rare = task.rare.as_ref();
        lane.is_none_or(|lane| self.state.lanes.route(task.route).lanes.contains(&lane))
            && which.kind.as_ref().is_none_or(|kind| self.state.kinds.name(task.kind) == kind)
            && which
                .group
                .as_ref()
                .is_none_or(|group| rare.and_then(|rare| rare.group.as_ref()) == Some(group))
            && which.parent.is_none_or(|parent| {
                rare.and_then(|rare| rare.parent.as_ref()).is_some_and(|known| known.task == parent)
            })
    }

    /// A page of the line of a lane: at most `max` tasks from place `from` on, counted from zero. Waiting tasks, at home
    /// there or not, come by level and arrival, each with its place, counted from one. Tasks whose time to join has not
    /// come follow. Returns where the next page begins, if there is one.
    pub fn line_in(&self, name: &LaneName, from: usize, max: usize) -> (Vec<InLine>, Option<usize>) {
        let Some(lane) = self.state.lanes.find(name) else { return (Vec::new(), None) };
        let waiting = self.state.lanes[lane].waiting as usize;
        let end = from.saturating_add(max);
        let waiting_list = self.state.lanes[lane]
            .waiting_list
            .as_ref()
            .filter(|list| list.len() == waiting && waiting > end);
        // One more than the page holds shows whether it is the last.
        let mut tasks: Vec<TaskIdx> = match waiting_list {
            // All tasks of the page are at home here, and the list has their order.
            Some(list) => list.iter().skip(from).take(max + 1).map(|(_, task)| task).collect(),
            None => self.queued_in(lane, from, max + 1),
        };
        let is_more = tasks.len() > max;
        tasks.truncate(max);
        let is_in_line = |task: TaskIdx| matches!(self.state.tasks[task].phase, Phase::Waiting);
        let place = |task: TaskIdx, at: usize| is_in_line(task).then_some(at + 1);
        let items = tasks.into_iter().zip(from..).map(|(task, at)| (self.view(task), place(task, at)));
        (items.collect(), is_more.then_some(end))
    }

    /// Tasks that have not started and name a lane, found by a scan of all tasks.
    fn queued_in(&self, lane: LaneIdx, from: usize, max: usize) -> Vec<TaskIdx> {
        let is_in = |task: &TaskIdx| {
            self.status_of(*task) == TaskStatus::Queued
                && self.state.lanes.route(self.state.tasks[*task].route).lanes.contains(&lane)
        };
        let rank = |task: TaskIdx| {
            (!matches!(self.state.tasks[task].phase, Phase::Waiting), self.state.tasks[task].rank())
        };
        let found = self.state.tasks.iter().map(|(task, _)| task).filter(is_in);
        let mut tasks: Vec<_> = found.map(|task| (rank(task), task)).collect();
        let end = from.saturating_add(max);
        // Only as many are put in order as are asked for.
        if end < tasks.len() {
            tasks.select_nth_unstable(end);
            tasks.truncate(end);
        }
        tasks.sort_unstable();
        tasks.into_iter().skip(from).map(|(_, task)| task).collect()
    }

    fn status_of(&self, task: TaskIdx) -> TaskStatus {
        match self.state.tasks[task].phase {
            Phase::Running(_) => TaskStatus::Running,
            Phase::BackingOff(_) => TaskStatus::Retrying,
            Phase::Delayed(_) | Phase::Held | Phase::Waiting => TaskStatus::Queued,
        }
    }

    /// The tasks that run in a lane, the longest first, and those that wait in it as their home, in line order. At most
    /// `max` of each.
    pub fn line_of(&self, name: &LaneName, max: usize) -> (Vec<LiveTaskView>, Vec<LiveTaskView>) {
        let Some(lane) = self.state.lanes.find(name) else { return (Vec::new(), Vec::new()) };
        let in_lane =
            |task: &TaskIdx| self.state.lanes.route(self.state.tasks[*task].route).lanes.contains(&lane);
        let running = self.state.tasks.running.iter().map(|(_, task)| task).filter(in_lane);
        let running = running.take(max).map(|task| self.view(task)).collect();
        let waiting = self.state.lanes[lane].waiting_list.iter().flat_map(|list| list.iter());
        let waiting = waiting.take(max).map(|(_, task)| self.view(task)).collect();
        (running, waiting)
    }

    /// When the task that has waited for longest with this lane as its home was accepted.
    pub fn oldest_waiting(&self, name: &LaneName) -> Option<crate::Timestamp> {
        let lane = self.state.lanes.find(name)?;
        let waiting = self.state.lanes[lane].waiting_list.iter().flat_map(|list| list.iter());
        waiting.take(OLDEST_OF).map(|(_, task)| self.state.tasks[task].submitted).min()
    }

    /// Who runs under a worker's claim.
    pub fn claimed(&self) -> Vec<LiveTaskView> {
        let running = self.state.tasks.running.iter().map(|(_, task)| task);
        let claimed = running.filter(|task| {
            self.state.tasks[*task].attempt().is_some_and(|attempt| attempt.owner.worker().is_some())
        });
        claimed.map(|task| self.view(task)).collect()
    }

    /// Whether a task is live.
    pub fn has(&self, task: TaskId) -> bool {
        self.state.tasks.find(task).is_some()
    }
}

/// Among how many at the head of a line the one that has waited for longest is looked for.
const OLDEST_OF: usize = 1000;
