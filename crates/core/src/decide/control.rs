//! What operators and callers ask for: cancel, pause, configure, redrive.

use std::sync::Arc;

use crate::api::command::{Reply, Selector};
use crate::api::event::{CancelReason, End, Event, LetterGone};
use crate::api::ids::TaskId;
use crate::api::lane_settings::{Block, PRIORITY_MAX};
use crate::api::name::{LaneName, Pattern};
use crate::api::rejection::{BadTask, Rejection};
use crate::scheduler::Scheduler;
use crate::state::lane::Gate;
use crate::state::task::Phase;
use crate::step::Step;

impl Step<'_> {
    pub(crate) fn configure(&mut self, blocks: Vec<Block>) -> Result<Reply, Rejection> {
        for settings in blocks.iter().filter_map(|block| block.settings.as_ref()) {
            settings.check().map_err(|error| Rejection::BadSetting(Box::new(error)))?;
        }
        if !blocks.is_empty() {
            self.emit(Event::Configured { blocks });
        }
        for (class, most) in self.state.book.letter_limits() {
            self.drop_letters(class, most);
        }
        Ok(Reply::Done)
    }

    pub(crate) fn change_settings(
        &mut self,
        lanes: Pattern,
        settings: &[(Arc<str>, Arc<str>)],
    ) -> Result<Reply, Rejection> {
        let block = self.state.book.blocks().find(|(pattern, _)| **pattern == lanes);
        let mut changed = block.map(|(_, settings)| settings.clone()).unwrap_or_default();
        for (key, value) in settings {
            changed.set(key, value).map_err(|error| Rejection::BadSetting(Box::new(error)))?;
        }
        self.configure(vec![Block { lanes, settings: Some(changed) }])
    }

    pub(crate) fn leave(&mut self, task: TaskId) -> Result<Reply, Rejection> {
        let slot = self.live(task)?;
        if self.state.tasks[slot].rare.as_ref().is_some_and(|rare| rare.joined > 0) {
            self.emit(Event::Left { task });
            return Ok(Reply::Done);
        }
        self.cancel(task, CancelReason::Caller)
    }

    pub(crate) fn cancel(&mut self, task: TaskId, reason: CancelReason) -> Result<Reply, Rejection> {
        let slot = self.live(task)?;
        let waited = self.cancel_slot(slot, reason);
        Ok(if waited { Reply::CancelledWhileWaiting } else { Reply::Stopping })
    }

    pub(crate) fn cancel_waiting(&mut self, which: &Selector, reason: CancelReason) -> Reply {
        let slots = self.waiting_tasks(which);
        let mut freed = Vec::new();
        for slot in &slots {
            let task = &self.state.tasks[*slot];
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
                .is_some_and(|slot| matches!(self.state.tasks[slot].phase, Phase::Held))
            {
                self.emit(Event::Ready { task });
            }
        }
        Reply::Cancelled(slots.len())
    }

    pub(crate) fn reprioritise(&mut self, task: TaskId, priority: u8) -> Result<Reply, Rejection> {
        if priority > PRIORITY_MAX {
            return Err(Rejection::BadTask(BadTask::Priority));
        }
        let slot = self.live(task)?;
        if matches!(self.state.tasks[slot].phase, Phase::Running(_)) {
            return Err(Rejection::NotWaiting { task });
        }
        if self.state.tasks[slot].priority != priority {
            self.emit(Event::Reprioritised { task, priority });
        }
        Ok(Reply::Done)
    }

    pub(crate) fn force_release(&mut self, lane: &LaneName) -> Reply {
        let Some(lane) = self.state.lanes.find(lane) else { return Reply::Released(vec![]) };
        let names_it =
            |slot: &u32| self.state.lanes.route(self.state.tasks[*slot].route).lanes.contains(&lane);
        let running: Vec<TaskId> = self
            .state
            .tasks
            .running
            .iter()
            .map(|(_, slot)| slot)
            .filter(names_it)
            .map(|slot| self.state.tasks[slot].id)
            .collect();
        for task in &running {
            if let Some(slot) = self.state.tasks.find(*task) {
                self.end(slot, End::Cancelled { reason: CancelReason::Released });
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

    pub(crate) fn redrive(&mut self, letter: TaskId, task: TaskId) -> Result<Reply, Rejection> {
        let dead = self.state.letters.get(letter).ok_or(Rejection::NoSuchLetter { letter })?;
        let spec = Box::new(dead.spec.clone());
        let reply = self.submit(task, spec)?;
        self.emit(Event::LetterGone { letter, why: LetterGone::Redriven(task) });
        Ok(reply)
    }

    pub(crate) fn discard(&mut self, letter: TaskId) -> Result<Reply, Rejection> {
        self.state.letters.get(letter).ok_or(Rejection::NoSuchLetter { letter })?;
        self.emit(Event::LetterGone { letter, why: LetterGone::Discarded });
        Ok(Reply::Done)
    }
}

impl Scheduler {
    /// How many tasks a cancel of what waits and fits would end.
    pub fn waiting_count(&self, which: &Selector) -> usize {
        self.waiting_tasks(which).len()
    }

    /// The tasks that wait and fit, in the order of arrival.
    fn waiting_tasks(&self, which: &Selector) -> Vec<u32> {
        let lane = match &which.lane {
            None => None,
            Some(name) => match self.state.lanes.find(name) {
                None => return vec![],
                found => found,
            },
        };
        let fits = |slot: u32| self.state.tasks[slot].attempt().is_none() && self.fits(slot, lane, which);
        let mut slots = self.candidates(lane);
        slots.retain(|slot| fits(*slot));
        slots.sort_unstable_by_key(|slot| self.state.tasks[*slot].arrival);
        slots
    }

    /// Tasks among which those that wait in `lane` are: of the line only its own part, if all are there.
    fn candidates(&self, lane: Option<u32>) -> Vec<u32> {
        if let Some(lane) = lane {
            let in_line = self.indexes.line.tasks_of_lane(crate::decide::dispatch::slot_of(lane));
            if in_line.len() as u32 == self.state.lanes[lane].waiting + self.state.lanes[lane].retrying {
                return in_line;
            }
        }
        self.state.tasks.iter().map(|(slot, _)| slot).collect()
    }

    fn gate(&self, lane: &LaneName) -> Gate {
        self.state.lanes.find(lane).map_or(Gate::OPEN, |lane| self.state.lanes[lane].gate)
    }
}
