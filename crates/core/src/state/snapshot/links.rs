//! What ties tasks to each other: parents, followers, borrowed slots.

use crate::scheduler::Scheduler;
use crate::state::snapshot::{SavedPhase, SavedTask};

impl Scheduler {
    /// Ties a task to others, when all are there.
    pub(super) fn restore_links(&mut self, saved: &SavedTask) {
        let Some(task) = self.state.tasks.find(saved.id) else { return };
        if let Some(parent) = self.parent_of(task) {
            self.state.tasks[parent].rare().children.push(task);
        }
        let after = saved.rare.as_ref().and_then(|rare| rare.after);
        if let Some(after) = after.and_then(|after| self.state.tasks.find(after)) {
            self.state.tasks[after].rare().followers.push(task);
        }
        let SavedPhase::Running(attempt) = &saved.phase else { return };
        for (name, lender) in &attempt.borrowed {
            if let (Some(lane), Some(lender)) = (self.state.lanes.find(name), self.state.tasks.find(*lender))
            {
                if let Some(attempt) = self.state.tasks[task].attempt_mut() {
                    attempt.borrowed.push((lane, lender));
                }
                if let Some(attempt) = self.state.tasks[lender].attempt_mut() {
                    attempt.lent.push((lane, task));
                }
            }
        }
    }
}
