//! What operators and callers ask for: cancel, pause, configure, redrive.

use crate::api::command::{Reply, Selector};
use crate::api::event::{CancelReason, DeadLetterRemoval, End, Event};
use crate::api::held_settings::SettingsChange;
use crate::api::ids::TaskId;
use crate::api::lane_settings::{Block, PRIORITY_MAX};
use crate::api::name::LaneName;
use crate::api::rejection::{BadTask, Rejection};
use crate::scheduler::Scheduler;
use crate::state::lane::{Gate, LaneIdx};
use crate::state::ready_tree::node::LaneNeed;
use crate::state::task::{Phase, TaskIdx};
use crate::step::Step;

impl Step<'_> {
    pub(super) fn configure(&mut self, blocks: Vec<Block>) -> Result<Reply, Rejection> {
        for settings in blocks.iter().filter_map(|block| block.settings.as_ref()) {
            settings.check().map_err(|error| Rejection::BadSetting(Box::new(error)))?;
        }
        if !blocks.is_empty() {
            self.emit(Event::Configured { blocks });
        }
        for (class, most) in self.state.lane_config.dead_letter_limits() {
            self.drop_dead_letters(class, most);
        }
        Ok(Reply::Done)
    }

    pub(super) fn change_settings(&mut self, change: SettingsChange) -> Result<Reply, Rejection> {
        // The block gets only what the change names, so that the rest follows later changes of patterns.
        let mut changed = self.state.lane_config.own(&change.lanes);
        let all = self.state.lane_config.asked_for(&change.lanes);
        change.apply(&mut changed, all).map_err(|error| Rejection::BadSetting(Box::new(error)))?;
        let SettingsChange { lanes, has_block, notes, .. } = change;
        self.change_notes(notes)?;
        self.configure(vec![Block { lanes, settings: has_block.then_some(changed) }])
    }

    pub(crate) fn leave(&mut self, task: TaskId) -> Result<Reply, Rejection> {
        let idx = self.live(task)?;
        if self.state.tasks[idx].rare.as_ref().is_some_and(|rare| rare.joined > 0) {
            self.emit(Event::Left { task });
            return Ok(Reply::Done);
        }
        self.cancel(task, CancelReason::Caller)
    }

    pub(crate) fn cancel(&mut self, task: TaskId, reason: CancelReason) -> Result<Reply, Rejection> {
        let idx = self.live(task)?;
        let waited = self.cancel_slot(idx, reason);
        Ok(if waited { Reply::CancelledWhileWaiting } else { Reply::Stopping })
    }

    pub(super) fn cancel_waiting(&mut self, which: &Selector, reason: CancelReason) -> Reply {
        let waiting = self.waiting_tasks(which);
        let mut freed = Vec::new();
        for idx in &waiting {
            let task = &self.state.tasks[*idx];
            freed.extend(
                task.rare.iter().flat_map(|rare| &rare.followers).map(|held| self.state.tasks[*held].id),
            );
            self.emit(Event::Ended { task: task.id, end: End::Cancelled { reason } });
        }
        for task in freed {
            if self
                .state
                .tasks
                .find(task)
                .is_some_and(|idx| matches!(self.state.tasks[idx].phase, Phase::Held))
            {
                self.emit(Event::Ready { task });
            }
        }
        Reply::Cancelled(waiting.len())
    }

    pub(crate) fn reprioritise(&mut self, task: TaskId, priority: u8) -> Result<Reply, Rejection> {
        if priority > PRIORITY_MAX {
            return Err(Rejection::BadTask(BadTask::Priority));
        }
        let idx = self.live(task)?;
        if matches!(self.state.tasks[idx].phase, Phase::Running(_)) {
            return Err(Rejection::NotWaiting { task });
        }
        if self.state.tasks[idx].priority != priority {
            self.emit(Event::Reprioritised { task, priority });
        }
        Ok(Reply::Done)
    }

    pub(crate) fn force_release(&mut self, lane: &LaneName) -> Reply {
        let Some(lane) = self.state.lanes.find(lane) else { return Reply::Released(vec![]) };
        let names_it =
            |idx: &TaskIdx| self.state.lanes.route(self.state.tasks[*idx].route).lanes.contains(&lane);
        let running: Vec<TaskId> = self
            .state
            .tasks
            .running
            .iter()
            .map(|(_, idx)| idx)
            .filter(names_it)
            .map(|idx| self.state.tasks[idx].id)
            .collect();
        for task in &running {
            if let Some(idx) = self.state.tasks.find(*task) {
                self.end(idx, End::Cancelled { reason: CancelReason::Released });
            }
        }
        Reply::Released(running)
    }

    pub(crate) fn pause(&mut self, lane: LaneName) -> Reply {
        if !self.gate(&lane).paused {
            self.emit(Event::Paused { lane });
        }
        Reply::Done
    }

    pub(crate) fn resume(&mut self, lane: LaneName) -> Reply {
        if self.gate(&lane) != Gate::OPEN {
            self.emit(Event::Resumed { lane });
        }
        Reply::Done
    }

    pub(crate) fn drain(&mut self, lane: LaneName) -> Reply {
        if !self.gate(&lane).draining {
            self.emit(Event::Draining { lane });
        }
        Reply::Done
    }

    pub(crate) fn redrive(&mut self, dead_letter: TaskId, task: TaskId) -> Result<Reply, Rejection> {
        let dead =
            self.state.dead_letters.get(dead_letter).ok_or(Rejection::NoSuchDeadLetter { dead_letter })?;
        let spec = Box::new(dead.spec.clone());
        let reply = self.submit(task, spec)?;
        self.emit(Event::DeadLetterRemoved { dead_letter, why: DeadLetterRemoval::Redriven(task) });
        Ok(reply)
    }

    pub(super) fn discard(&mut self, dead_letter: TaskId) -> Result<Reply, Rejection> {
        self.state.dead_letters.get(dead_letter).ok_or(Rejection::NoSuchDeadLetter { dead_letter })?;
        self.emit(Event::DeadLetterRemoved { dead_letter, why: DeadLetterRemoval::Discarded });
        Ok(Reply::Done)
    }
}

impl Scheduler {
    /// How many tasks a cancel of what waits and fits would end.
    pub fn waiting_count(&self, which: &Selector) -> usize {
        self.waiting_tasks(which).len()
    }

    /// The tasks that wait and fit, in the order of arrival.
    fn waiting_tasks(&self, which: &Selector) -> Vec<TaskIdx> {
        let lane = match &which.lane {
            None => None,
            Some(name) => match self.state.lanes.find(name) {
                None => return vec![],
                found => found,
            },
        };
        let fits = |task: TaskIdx| self.state.tasks[task].attempt().is_none() && self.fits(task, lane, which);
        let mut tasks = self.candidates(lane);
        tasks.retain(|task| fits(*task));
        tasks.sort_unstable_by_key(|task| self.state.tasks[*task].arrival);
        tasks
    }

    /// Tasks among which those that wait in `lane` are: of the line only its own part, if all are there.
    fn candidates(&self, lane: Option<LaneIdx>) -> Vec<TaskIdx> {
        if let Some(lane) = lane {
            let in_line = self.indexes.ready.tasks_with(LaneNeed::Slot(lane));
            if in_line.len() as u32 == self.state.lanes[lane].waiting + self.state.lanes[lane].retrying {
                return in_line;
            }
        }
        self.state.tasks.iter().map(|(task, _)| task).collect()
    }

    fn gate(&self, lane: &LaneName) -> Gate {
        self.state.lanes.find(lane).map_or(Gate::OPEN, |lane| self.state.lanes[lane].gate)
    }
}
