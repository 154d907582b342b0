//! The end of a step: checks of what it did, and memory that is of no more use.

use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::ReadyTree;
use crate::state::task::TaskIdx;

/// The tables of an empty scheduler may stay as large as this many tasks have made them.
const ROOM_KEPT: usize = 1024;

impl Scheduler {
    /// Ends a step: checks what it accepted, and frees memory.
    pub(crate) fn end_step(&mut self) {
        let mut is_quiet = true;
        for index in 0..self.scratch.touched.lanes().len() {
            let touched = self.scratch.touched.lanes()[index];
            if let Some(lane) = self.still_there(touched)
                && !self.state.lanes[lane].is_quiet()
            {
                is_quiet = false;
                self.plan_depth_report(lane);
            }
        }
        if !is_quiet {
            for index in 0..self.scratch.accepted.len() {
                self.check_depth(self.scratch.accepted[index]);
            }
        }
        self.tidy();
    }

    /// Reckons when there is something to report about a lane next.
    fn plan_depth_report(&mut self, lane: LaneIdx) {
        let class = self.state.lane_config.class(self.state.lanes[lane].class);
        self.state.lanes[lane].quiet = self.state.lanes[lane].quiet_within(&class.settings);
    }

    /// Checks that an accepted task found room in each of its lanes. Turns of accepted messages are never refused, so
    /// they may exceed the room.
    fn check_depth(&mut self, idx: TaskIdx) {
        let Some(task) = self.state.tasks.get(idx).filter(|task| task.attempts == 0) else { return };
        if self.is_message_turn(idx) {
            return;
        }
        for lane in &*self.state.lanes.route(task.route).lanes {
            let is_turn_here = |idx: &&TaskIdx| {
                let task = self.state.tasks.get(**idx);
                task.is_some_and(|task| self.state.lanes.route(task.route).lanes.contains(lane))
                    && self.is_message_turn(**idx)
            };
            let turns = self.scratch.accepted.iter().filter(is_turn_here).count() as u32;
            let (waiting, most) = (self.state.lanes[*lane].waiting, self.settings(*lane).max_queued);
            if waiting > most.saturating_add(turns) {
                let name = &self.state.lanes[*lane].name;
                self.scratch.overrun = Some(format!("{waiting} wait in {name}, which has room for {most}"));
            }
        }
    }

    /// Gives back what is of no more use.
    pub(super) fn tidy(&mut self) {
        if self.state.tasks.len() == 0 && self.state.tasks.room() > ROOM_KEPT {
            self.give_memory_back();
        }
        if self.indexes.ready_count == 0 {
            self.indexes.timers.forget_waiting();
        } else if self.indexes.timers.needs_sweep(self.indexes.ready_count) {
            let mut timers = std::mem::take(&mut self.indexes.timers);
            timers.sweep(|check| self.is_live(check), |held| self.is_capped(held));
            self.indexes.timers = timers;
        }
    }

    /// Nothing is live: what the tables have grown to for a crowd is of no more use.
    fn give_memory_back(&mut self) {
        self.state.tasks.shrink();
        self.state.lanes.shrink();
        self.state.fair.drop_idle();
        self.state.fair.shrink();
        self.indexes.ready = ReadyTree::new(self.local.seed);
        self.indexes.timers.shrink();
        self.scratch.touched.shrink_to(ROOM_KEPT);
        self.scratch.gone.shrink_to(ROOM_KEPT);
    }
}
