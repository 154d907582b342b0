//! Slots that parents lend to children: how they pass from one attempt to another.

use smallvec::SmallVec;

use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::task::{Attempt, Phase, TaskIdx};

impl Scheduler {
    /// Takes slots of the lanes at these indexes from the tasks that lend them.
    pub(crate) fn borrow(&mut self, task: TaskIdx, indexes: &[u8]) -> SmallVec<[(LaneIdx, TaskIdx); 2]> {
        let parent = self.parent_of(task);
        let mut borrowed = SmallVec::new();
        for index in indexes {
            let lane = self.state.lanes.route(self.state.tasks[task].route).lanes[*index as usize];
            if let Some(lender) = self.lender(parent, lane)
                && let Some(attempt) = self.state.tasks[lender].attempt_mut()
            {
                attempt.lent.push((lane, task));
                borrowed.push((lane, lender));
            }
        }
        borrowed
    }

    /// Settles who holds the slots of an attempt that is over. A slot that a descendant still uses passes to
    /// it; a borrowed one goes back; of the others the lanes are returned, to be freed.
    pub(crate) fn give_back(&mut self, task: TaskIdx, attempt: &Attempt) -> SmallVec<[LaneIdx; 8]> {
        let lanes = self.state.lanes.route(self.state.tasks[task].route).lanes.clone();
        let mut free = SmallVec::new();
        for lane in lanes {
            let lender = attempt.borrowed.iter().find(|(other, _)| *other == lane).map(|(_, lender)| *lender);
            let user = attempt.lent.iter().find(|(other, _)| *other == lane).map(|(_, user)| *user);
            if let Some(user) = user
                && let Some(users) = self.state.tasks[user].attempt_mut()
            {
                users.borrowed.retain(|(other, _)| *other != lane);
                users.borrowed.extend(lender.map(|lender| (lane, lender)));
            }
            match lender.and_then(|lender| self.state.tasks[lender].attempt_mut()) {
                Some(lenders) => {
                    lenders.lent.retain(|(other, _)| *other != lane);
                    lenders.lent.extend(user.map(|user| (lane, user)));
                }
                None if user.is_none() => free.push(lane),
                None => {}
            }
        }
        free
    }

    /// Puts the waiting descendants of `task` where they belong after it lent a slot or got one back.
    pub(crate) fn reroute_family(&mut self, task: TaskIdx) {
        for child in self.state.tasks[task].children().to_vec() {
            match self.state.tasks[child].phase {
                Phase::Waiting => self.reroute(child),
                Phase::Running(_) => self.reroute_family(child),
                _ => {}
            }
        }
    }
}
