//! Whose caller waits for a task: whoever has the caller runs it, as long as it is there.

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::name::Name;
use crate::scheduler::Scheduler;
use crate::state::task::TaskIdx;
use crate::step::Step;

impl Step<'_> {
    /// Leaves to anybody what was to be run by one who ends.
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
    /// As whom an attempt is run that is granted here. After the first one whoever had the caller may be gone.
    pub(crate) fn runner_of(&self, idx: TaskIdx) -> Option<Name> {
        let task = &self.state.tasks[idx];
        if let Some(claimer) = task.claimer() {
            return Some(claimer.worker.clone());
        }
        let home = task.rare.as_ref().and_then(|rare| rare.home.as_ref()).filter(|_| task.attempts == 0);
        home.or(self.local.runner.as_ref()).cloned()
    }
}
