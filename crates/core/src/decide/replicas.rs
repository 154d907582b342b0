//! Replicas: which one executes an attempt, and what follows when one ends or dies.

use crate::api::command::Reply;
use crate::api::event::{CancelReason, End, Event};
use crate::api::ids::{Fence, TaskId};
use crate::api::owner::{Owner, ReplicaId};
use crate::scheduler::Scheduler;
use crate::state::task::{Attempt, LiveTask, TaskIdx};
use crate::step::Step;

impl Step<'_> {
    /// Lets any replica run the tasks whose callers are connected to `replica`, which ends.
    pub(super) fn unbind(&mut self, replica: ReplicaId) -> Reply {
        if self.state.tasks.iter().any(|(_, task)| task.caller_at() == Some(replica)) {
            self.emit(Event::Unbound { replica });
        }
        Reply::Done
    }

    /// A replica is gone, and its callers and runs with it.
    pub(super) fn replica_gone(&mut self, replica: ReplicaId) -> Reply {
        let slots = self.not_begun_at(replica, |task| self.slot_of(task) == Some(replica));
        let bound = self.not_begun_at(replica, |task| self.state.tasks[task].caller_at() == Some(replica));
        for task in slots {
            self.give_up(task);
        }
        // First, because tasks with other callers go on elsewhere.
        self.unbind(replica);
        for task in bound {
            self.give_up(task);
        }
        for (task, fence) in self.attempts_of(Some(replica)) {
            match self.state.tasks.find(task).filter(|idx| self.slot_of(*idx).is_some()) {
                // Not lost: only its program could use it, so it leaves no dead letter.
                Some(slot) => self.end(slot, End::Cancelled { reason: CancelReason::Caller }),
                // It is refused if the attempt is over.
                None => drop(self.lapse_now(task, fence)),
            }
        }
        Reply::Done
    }

    /// No heartbeat could be stored until now: renews the leases of all attempts, or of this replica's.
    pub(super) fn renew_leases(&mut self, replica: Option<ReplicaId>) -> Reply {
        for (task, fence) in self.attempts_of(replica) {
            // Each runs, so that nothing is refused.
            drop(self.renew_lease(task, fence));
        }
        Reply::Done
    }

    /// The caller of a task that has not begun is gone. Other callers may still wait for it.
    fn give_up(&mut self, task: TaskId) {
        let Some(idx) = self.state.tasks.find(task) else { return };
        if self.state.tasks[idx].rare.as_ref().is_none_or(|rare| rare.joined == 0) {
            return self.end(idx, End::Cancelled { reason: CancelReason::Caller });
        }
        self.emit(Event::Left { task });
        self.lapse(idx);
    }
}

impl Scheduler {
    /// The owner of an attempt that is granted here. Only the first attempt stays with the caller's replica, which may
    /// be gone later.
    pub(super) fn owner_of(&self, idx: TaskIdx) -> Owner {
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

    /// The attempts that a replica runs, or all attempts.
    fn attempts_of(&self, replica: Option<ReplicaId>) -> Vec<(TaskId, Fence)> {
        let running = self.state.tasks.running.iter().map(|(_, idx)| &self.state.tasks[idx]);
        let attempts = running.filter_map(|task| Some((task.id, task.attempt()?)));
        let meant = attempts
            .filter(|(_, attempt)| replica.is_none_or(|replica| attempt.owner == Owner::Replica(replica)));
        meant.map(|(task, attempt)| (task, attempt.fence)).collect()
    }

    /// Who runs something, once for each attempt.
    pub fn running_owners(&self) -> impl Iterator<Item = &Owner> {
        let running = self.state.tasks.running.iter().map(|(_, idx)| &self.state.tasks[idx]);
        running.filter_map(|task| Some(&task.attempt()?.owner))
    }

    /// Tasks that fit and have not begun, in the order of arrival. One that was granted to the replica in this very moment
    /// has not either, because the replica cannot have heard of it.
    fn not_begun_at(&self, replica: ReplicaId, fits: impl Fn(TaskIdx) -> bool) -> Vec<TaskId> {
        let is_new =
            |attempt: &Attempt| attempt.started == self.state.now && attempt.owner == Owner::Replica(replica);
        let has_begun = |task: &LiveTask| task.attempt().is_some_and(|attempt| !is_new(attempt));
        let tasks = self.state.tasks.iter().filter(|(idx, task)| !has_begun(task) && fits(*idx));
        let mut tasks: Vec<(u64, TaskId)> = tasks.map(|(_, task)| (task.arrival, task.id)).collect();
        tasks.sort_unstable();
        tasks.into_iter().map(|(_, task)| task).collect()
    }

    /// The replica whose program the task is a slot of.
    pub(crate) fn slot_of(&self, idx: TaskIdx) -> Option<ReplicaId> {
        self.state.kinds.slot_of(self.state.tasks[idx].kind)
    }
}
