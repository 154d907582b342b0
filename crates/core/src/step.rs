//! A decision in progress: it reads the whole scheduler and changes it by events alone.

use std::ops::Deref;

use crate::api::event::Event;
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::sessions::table::SessionIdx;
use crate::state::task::TaskIdx;
use crate::state::timers::{CappedTask, WaitCheck};

/// What a decision works with: a scheduler to read, and the events so far.
///
/// There is no `DerefMut`, so the compiler refuses a decision that changes the scheduler in another way than by an event.
/// This decision compiles:
///
/// ```
/// fn decide(step: &mut laneway_core::walls::Step<'_>) {
///     let _now = step.now();
/// }
/// ```
///
/// and this one does not, because [`advance_to`](Scheduler::advance_to) needs `&mut Scheduler`:
///
/// ```compile_fail,E0596
/// fn decide(step: &mut laneway_core::walls::Step<'_>) {
///     let now = step.now();
///     step.advance_to(now);
/// }
/// ```
pub struct Step<'a> {
    scheduler: &'a mut Scheduler,
    events: &'a mut Vec<Event>,
}

impl Deref for Step<'_> {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        self.scheduler
    }
}

impl<'a> Step<'a> {
    /// Begins a step at `now`, which adds what happens to `events`.
    pub(crate) fn begin(
        scheduler: &'a mut Scheduler,
        now: Timestamp,
        events: &'a mut Vec<Event>,
    ) -> Step<'a> {
        scheduler.begin_step(now);
        Step { scheduler, events }
    }

    /// Applies an event at once and records it. Later decisions of the step see what it changed.
    pub(crate) fn emit(&mut self, event: Event) {
        self.scheduler.apply_event(&event);
        self.events.push(event);
    }

    /// Ends the step.
    pub(crate) fn close(self) {
        self.scheduler.end_step();
    }
}

/// Lists that a step works off. What is on them follows from the state, so taking an entry off needs no event.
impl Step<'_> {
    /// The next look at a waiting task that is due.
    pub(crate) fn take_due_wait_check(&mut self) -> Option<WaitCheck> {
        let now = self.now();
        self.scheduler.indexes.timers.due_wait_check(now)
    }

    /// The next waiting task that ageing could raise to `level`.
    pub(crate) fn take_capped_below(&mut self, level: u8) -> Option<CappedTask> {
        self.scheduler.indexes.timers.next_capped_below(level)
    }

    /// Plans when a waiting task is looked at next.
    pub(crate) fn plan_next_wait_check(&mut self, task: TaskIdx) {
        self.scheduler.plan_wait_check(task);
    }

    /// The sessions that changed and were not looked at since.
    pub(crate) fn take_changed_sessions(&mut self) -> Vec<SessionIdx> {
        std::mem::take(&mut self.scheduler.scratch.changed_sessions)
    }

    /// Plans when the next turn of a session may begin.
    pub(crate) fn replan_session(&mut self, session: SessionIdx) {
        self.scheduler.plan_session(session);
    }

    /// Notes that everything due by now is done.
    pub(crate) fn caught_up(&mut self) {
        let next = self.next_wakeup().unwrap_or(Timestamp::NEVER);
        self.scheduler.indexes.timers.nothing_due_before(next);
    }

    /// Notes that nothing more can be granted.
    pub(crate) fn granted_all(&mut self) {
        self.scheduler.indexes.may_grant = false;
    }
}
