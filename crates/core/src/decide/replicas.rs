//! Replicas: which one executes an attempt, and what follows when one ends or dies.

use crate::api::command::Reply;
use crate::api::event::{CancelReason, Event};
use crate::api::ids::{Fence, TaskId};
use crate::api::owner::{Owner, ReplicaId};
use crate::scheduler::Scheduler;
use crate::state::task::TaskIdx;
use crate::step::Step;

impl Step<'_> {
    /// Lets any replica run the tasks whose callers are connected to `replica`, which ends.
    pub(crate) fn unbind(&mut self, replica: ReplicaId) -> Reply {
        if self.state.tasks.iter().any(|(_, task)| task.caller_at() == Some(replica)) {
            self.emit(Event::Unbound { replica });
        }
        Reply::Done
    }

    /// A replica is gone, and its callers with it. What it was granted and has not answered, it may never have seen;
    /// attempts that it has renewed have leases.
    pub(crate) fn replica_gone(&mut self, replica: ReplicaId, unanswered: &[(TaskId, Fence)]) -> Reply {
        let slots = self.waiting_where(|task| self.slot_of(task) == Some(replica));
        let left = self.waiting_where(|task| self.state.tasks[task].caller_at() == Some(replica));
        let left: Vec<TaskId> = left.into_iter().map(|task| self.state.tasks[task].id).collect();
        self.cancel_all(&slots, CancelReason::Caller);
        for (task, fence) in unanswered {
            // It is refused if the attempt is over.
            let _over = self.lapse_now(*task, *fence);
        }
        // First, because tasks with other callers go on elsewhere.
        self.unbind(replica);
        for task in left {
            let _ended = self.leave(task);
        }
        Reply::Done
    }
}

impl Scheduler {
    /// The owner of an attempt that is granted here. Only the first attempt stays with the caller's replica, which may
    /// be gone later.
    pub(crate) fn owner_of(&self, idx: TaskIdx) -> Owner {
        let task = &self.state.tasks[idx];
        self.fixed_owner(idx).unwrap_or_else(|| {
            let caller_at = task.caller_at().filter(|_| task.attempts == 0);
            Owner::Replica(caller_at.unwrap_or(self.local.replica))
        })
    }

    /// The owner that was fixed when the task was submitted.
    pub(crate) fn fixed_owner(&self, idx: TaskIdx) -> Option<Owner> {
        let worker = || self.state.tasks[idx].worker().cloned().map(Owner::Worker);
        self.slot_of(idx).map(Owner::Replica).or_else(worker)
    }

    /// The replica whose program the task is a slot of.
    pub(crate) fn slot_of(&self, idx: TaskIdx) -> Option<ReplicaId> {
        self.state.kinds.slot_of(self.state.tasks[idx].kind)
    }
}
