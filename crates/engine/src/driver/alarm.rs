//! When the engine has something to do although it was sent nothing.

use laneway_core::Timestamp;
use tokio::time::Instant;

use crate::driver::engine::Engine;
use crate::driver::shutdown::Closing;

impl Engine {
    /// Notes when something is due next.
    pub(super) fn set_alarm(&mut self) -> Option<Instant> {
        self.alarm = self.due_at();
        self.positions.is_alarm_set = true;
        let due = self.alarm.map(|at| Instant::now() + self.clock.until(at));
        [due, self.other_alarm()].into_iter().flatten().min()
    }

    /// Whether something is due before the alarm. If so, the caller must notify the timer, and the alarm counts as set.
    pub(super) fn is_alarm_late(&mut self) -> bool {
        let due = self.due_at();
        let is_late = due.is_some_and(|due| self.alarm.is_none_or(|alarm| due < alarm));
        if is_late {
            self.alarm = due;
        }
        self.closing.is_some() || self.positions.wants_alarm() || is_late
    }

    /// Whether something is due now.
    pub(super) fn is_due(&mut self) -> bool {
        let is_other_due = self.other_alarm().is_some_and(|at| at <= Instant::now());
        is_other_due || self.due_at().is_some_and(|at| at <= self.clock.now())
    }

    /// When the scheduler or a lease wants to be looked at.
    fn due_at(&self) -> Option<Timestamp> {
        let is_waiting = self.storage.outage.is_some() || self.storage.broken.is_some();
        let wakeup = self.scheduler.next_wakeup().map(|at| at + self.jitter());
        let wakeup = match (&self.resources.faults, wakeup) {
            (Some(faults), Some(at)) => faults.wakeup(at),
            _ => wakeup,
        };
        let due = [wakeup, self.runs.next_renewal(), self.replica_due_at()];
        due.into_iter().flatten().min().filter(|_| !is_waiting)
    }

    /// When a shutdown loses its patience, or places in line are looked at.
    fn other_alarm(&self) -> Option<Instant> {
        let closing = self.closing.as_ref().map(Closing::alarm);
        // Nothing is looked at while the state here may not be that of the log.
        let query =
            self.positions.due.filter(|_| self.storage.outage.is_none() && self.storage.broken.is_none());
        [closing, query].into_iter().flatten().min()
    }
}
