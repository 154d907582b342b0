//! The replica that a task's caller is connected to runs the task, as long as that replica lives.

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::name::Name;
use crate::scheduler::Scheduler;
use crate::state::task::TaskIdx;
use crate::step::Step;

impl Step<'_> {
    /// Lets any replica run the tasks that were bound to `home`, which ends.
    pub(crate) fn unbind(&mut self, home: Name) -> Reply {
        let is_bound = self
            .state
            .tasks
            .iter()
            .any(|(_, task)| task.rare.as_ref().is_some_and(|rare| rare.home.as_ref() == Some(&home)));
        if is_bound {
            self.emit(Event::Unbound { home });
        }
        Reply::Done
    }
}

impl Scheduler {
    /// The owner of an attempt that is granted here. Only the first attempt stays with the caller's replica, which may
    /// be gone later.
    pub(crate) fn runner_of(&self, idx: TaskIdx) -> Option<Name> {
        let task = &self.state.tasks[idx];
        if let Some(claimer) = task.claimer() {
            return Some(claimer.worker.clone());
        }
        let home = task.rare.as_ref().and_then(|rare| rare.home.as_ref()).filter(|_| task.attempts == 0);
        home.or(self.local.runner.as_ref()).cloned()
    }
}
