//! Time: what follows from it without an event, and when a task must be looked at next.

use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::task::{Phase, TaskIdx};
use crate::state::timers::{CappedTask, WaitCheck};

impl Scheduler {
    /// What follows from the time alone and needs no event: buckets fill, old keys are forgotten.
    pub(super) fn elapse(&mut self) {
        while let Some(lane) = self.indexes.timers.due_lane(self.state.now) {
            if self.state.lanes.get(lane).is_some() {
                self.refresh_lane(lane);
                self.drop_if_idle(lane);
            }
        }
        while let Some((at, key)) = self.indexes.key_ends.first().cloned()
            && at <= self.state.now
        {
            self.indexes.key_ends.pop_first();
            self.state.keys.remove(&key);
        }
        self.state.sessions.forget(self.state.now);
    }

    /// Tells the clock when to look at a waiting task next: at its notice, and each time it has waited for
    /// another `after`, as long as waiting could still raise it.
    pub(crate) fn plan_wait_check(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        let home = self.settings(self.state.lanes.route(task.route).first_lane());
        let notice = home.notice_after.filter(|_| !task.noticed).map(|after| task.since + after);
        let ageing = home.ageing.filter(|ageing| task.level() < ageing.max);
        // Most have just joined the line.
        let has_waited = self.state.now > task.since;
        let ageing = ageing.map_or(Timestamp::NEVER, |ageing| {
            let turns = if has_waited { self.state.now.since(task.since).0 / ageing.after.0 } else { 0 };
            task.since + Millis(ageing.after.0.saturating_mul(turns + 1))
        });
        let at = notice.map_or(ageing, |notice| notice.min(ageing));
        let (arrival, level) = (task.arrival, task.level());
        if has_waited && self.level_by_waiting(task) > level {
            self.indexes.timers.add_capped(CappedTask { level, arrival, task: idx });
        }
        let known = std::mem::replace(&mut self.state.tasks[idx].check_at, at);
        if at != known && at != Timestamp::NEVER {
            self.indexes.timers.add_wait_check(WaitCheck { at, arrival, task: idx });
        }
    }

    /// Tells the clock when something must happen to a task.
    pub(super) fn plan(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        let boost = match task.phase {
            Phase::Waiting => self.next_boost(task).map_or(Timestamp::NEVER, |(at, _)| at),
            _ => Timestamp::NEVER,
        };
        let (old, new, arrival) = (task.due, task.next_due(boost), task.arrival);
        if old != new {
            self.indexes.timers.move_task(old, new, arrival, idx);
            self.state.tasks[idx].due = new;
        }
    }
}
