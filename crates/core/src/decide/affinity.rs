//! Whose caller waits for a task: whoever has the caller runs it, as long as it is there.

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::name::Name;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// As whom an attempt is run that is granted here. After the first one whoever had the caller may be gone.
    pub(crate) fn runner_of(&self, slot: u32) -> Option<Name> {
        let task = &self.tasks[slot];
        if let Some(claimer) = task.claimer() {
            return Some(claimer.worker.clone());
        }
        let home = task.rare.as_ref().and_then(|rare| rare.home.as_ref()).filter(|_| task.attempts == 0);
        home.or(self.runner.as_ref()).cloned()
    }

    /// Leaves to anybody what was to be run by one who ends.
    pub(crate) fn unbind(&mut self, home: Name, events: &mut Vec<Event>) -> Reply {
        let is_bound = self
            .tasks
            .iter()
            .any(|(_, task)| task.rare.as_ref().is_some_and(|rare| rare.home.as_ref() == Some(&home)));
        if is_bound {
            self.emit(Event::Unbound { home }, events);
        }
        Reply::Done
    }

    pub(crate) fn on_unbound(&mut self, home: &Name) {
        let is_bound = |rare: &crate::state::task::Rare| rare.home.as_ref() == Some(home);
        let bound: Vec<u32> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.rare.as_deref().is_some_and(is_bound))
            .map(|(slot, _)| slot)
            .collect();
        for slot in bound {
            self.tasks[slot].rare().home = None;
        }
    }
}
