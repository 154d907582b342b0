//! What the clock brings.

use crate::api::event::{AlertLevel, End, Event, StopReason};
use crate::api::lane_settings::{Boost, LEVEL_MAX};
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::task::{LiveTask, Phase, TaskIdx};
use crate::state::timers::{CappedTask, WaitCheck};
use crate::step::Step;

impl Step<'_> {
    /// Lets the time pass up to now: ends what has lasted too long, wakes what has slept enough.
    pub(super) fn expire(&mut self) {
        if self.indexes.timers.may_be_due(self.state.now) {
            self.expire_due();
        } else if self.indexes.timers.has_capped() {
            self.catch_up();
        }
    }

    fn expire_due(&mut self) {
        while let Some(task) = self.indexes.timers.due_task(self.state.now) {
            self.come_due(task);
        }
        while let Some(check) = self.take_due_wait_check() {
            if self.is_live(&check) {
                self.check_wait(check.task);
            }
        }
        self.start_due_turns();
        self.update_changed_sessions();
        self.catch_up();
        self.caught_up();
        self.grant();
    }

    /// The moment of a task has come; what for depends on what it does.
    fn come_due(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        let (id, now) = (task.id, self.state.now);
        match &task.phase {
            Phase::Running(attempt) if attempt.stopping.is_some() => self.conclude_stop(idx),
            Phase::Running(attempt) if attempt.timeout_at <= attempt.lease_until => {
                self.stop(idx, StopReason::Timeout);
            }
            Phase::Running(_) => self.lapse(idx),
            _ if task.deadline() <= now && task.deadline() <= task.wait_until => {
                self.end(idx, End::Expired);
            }
            Phase::Delayed(_) | Phase::Held | Phase::Waiting if task.wait_until <= now => {
                self.end(idx, End::WaitTimeout);
            }
            Phase::Delayed(_) | Phase::BackingOff(_) => self.emit(Event::Ready { task: id }),
            Phase::Held | Phase::Waiting => {
                if let Some((_, levels)) = self.next_boost(task) {
                    self.emit(Event::Boosted { task: id, levels });
                }
            }
        }
    }

    /// Ageing never raises a task above the highest level in the line. When a more urgent task joins, the other tasks
    /// rise at once by what they have waited, so that they stay ahead of newer work.
    fn catch_up(&mut self) {
        let highest = self.highest_ready_level();
        while let Some(capped) = self.take_capped_below(highest) {
            if self.is_capped(&capped) {
                self.check_wait(capped.task);
            }
        }
    }

    /// Checks whether a waiting task is due for a notice, or has risen by waiting.
    fn check_wait(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        let id = task.id;
        let waited = self.state.now.since(task.since);
        let notice_after = self.settings(self.state.lanes.route(task.route).first_lane()).notice_after;
        if !task.noticed && notice_after.is_some_and(|after| after <= waited) {
            let ahead = self.ahead(idx) as u32;
            self.emit(Event::Noticed { task: id, waited, ahead });
        }
        let task = &self.state.tasks[idx];
        let level = self.level_by_waiting(task).min(self.highest_ready_level());
        let levels = level.saturating_sub(task.urgency());
        if levels > task.aged {
            self.emit(Event::Aged { task: id, levels });
        }
        self.plan_next_wait_check(idx);
    }

    /// Reports lanes whose line grew long or empty.
    pub(super) fn report_depths(&mut self) {
        // By position, because an event may remove a lane.
        for index in 0..self.scratch.touched.lanes().len() {
            let touched = self.scratch.touched.lanes()[index];
            if let Some(lane) = self.still_there(touched)
                && !self.state.lanes[lane].is_quiet()
            {
                self.report_depth(lane);
            }
        }
    }

    fn report_depth(&mut self, idx: LaneIdx) {
        let lane = &self.state.lanes[idx];
        let settings = self.settings(idx);
        let waiting = lane.waiting;
        let told = (lane.under_pressure, lane.warned, lane.critical);
        let over = |threshold: u32| waiting >= threshold;
        let pressure = over(settings.pressure_threshold) || lane.under_pressure && waiting > 0;
        let now = (pressure, over(settings.alert_warning), over(settings.alert_critical));
        if told == now && !lane.gate.draining {
            return;
        }
        let mut told: smallvec::SmallVec<[Event; 2]> = smallvec::SmallVec::new();
        let name = || lane.name.clone();
        if waiting >= settings.pressure_threshold && !lane.under_pressure {
            told.push(Event::Pressure { lane: name(), waiting });
        }
        if waiting == 0 && lane.under_pressure {
            told.push(Event::Idle { lane: name() });
        }
        let levels = [
            (AlertLevel::Warning, settings.alert_warning, lane.warned),
            (AlertLevel::Critical, settings.alert_critical, lane.critical),
        ];
        for (level, threshold, was_told) in levels {
            if waiting >= threshold && !was_told {
                told.push(Event::Alert { lane: name(), level, waiting });
            } else if waiting < threshold && was_told {
                told.push(Event::AlertOver { lane: name(), level });
            }
        }
        let empty = waiting == 0 && lane.running == 0 && lane.retrying == 0;
        if lane.gate.draining && empty && !lane.drained {
            told.push(Event::Drained { lane: name() });
        }
        for event in told {
            self.emit(event);
        }
    }
}

impl Scheduler {
    /// When a task's deadline next raises its priority, and to how many levels above its own.
    pub(crate) fn next_boost(&self, task: &LiveTask) -> Option<(Timestamp, u8)> {
        let boost: Boost = self.settings(self.state.lanes.route(task.route).first_lane()).boost?;
        let by = match task.deadline() {
            Timestamp::NEVER => task.submitted + boost.deadline?,
            deadline => deadline,
        };
        boost.next(task.submitted, by, task.boosted)
    }

    /// Whether a check still counts: its task waits and has no other check planned.
    pub(crate) fn is_live(&self, check: &WaitCheck) -> bool {
        self.state.tasks.get(check.task).is_some_and(|task| {
            task.arrival == check.arrival && task.check_at == check.at && matches!(task.phase, Phase::Waiting)
        })
    }

    fn highest_ready_level(&self) -> u8 {
        self.indexes.ready_by_level.iter().rposition(|tasks| *tasks > 0).unwrap_or_default() as u8
    }

    /// The level that a task would have by waiting, without the cap by the highest level in the line. Levels from
    /// deadlines count here and in the cap, so that boosted work cannot starve the rest.
    pub(crate) fn level_by_waiting(&self, task: &LiveTask) -> u8 {
        let Some(ageing) = self.settings(self.state.lanes.route(task.route).first_lane()).ageing else {
            return 0;
        };
        let turns = self.state.now.since(task.since).0 / ageing.after.0;
        (task.urgency() + turns.min(LEVEL_MAX.into()) as u8).min(ageing.max)
    }

    /// Whether a task still waits where the highest level in the line held it.
    pub(crate) fn is_capped(&self, capped: &CappedTask) -> bool {
        self.state.tasks.get(capped.task).is_some_and(|task| {
            let is_it = task.arrival == capped.arrival && matches!(task.phase, Phase::Waiting);
            is_it && task.level() == capped.level && self.level_by_waiting(task) > capped.level
        })
    }
}
