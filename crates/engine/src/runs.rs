//! The attempts that run here, and the renewal of their leases.

use laneway_core::{Command, Fence, Millis, Name, TaskId, Timestamp};

use crate::ids::ByTask;
use crate::stop::{StopSignal, Stopped};

/// An attempt that runs here.
pub(crate) struct Run {
    pub(crate) fence: Fence,
    pub(crate) stop: StopSignal,
    started: Timestamp,
    lease: Millis,
    renew_at: Timestamp,
}

/// The beginning of an attempt.
#[derive(Clone)]
pub(crate) struct Begun {
    pub(crate) fence: Fence,
    pub(crate) started: Timestamp,
    pub(crate) worker: Option<Name>,
}

/// All attempts that run here.
#[derive(Default)]
pub(crate) struct Runs {
    by_task: ByTask<Run>,
    /// Attempts that run elsewhere, or ran in a process that is dead: what the history tells of them.
    elsewhere: ByTask<Begun>,
    /// No lease needs renewal before this. It may be too early, never too late.
    next_renewal: Option<Timestamp>,
}

impl Runs {
    pub(crate) fn insert(&mut self, task: TaskId, fence: Fence, lease: Millis, now: Timestamp) -> StopSignal {
        let stop = StopSignal::default();
        let renew_at = now + third(lease);
        let run = Run { fence, stop: stop.clone(), started: now, lease, renew_at };
        self.by_task.insert(task, run);
        self.next_renewal = Some(self.next_renewal.map_or(renew_at, |next| next.min(renew_at)));
        stop
    }

    /// Forgets an attempt that is over, whoever said so, and tells it to stop should it not know.
    pub(crate) fn remove(&mut self, task: TaskId, reason: Stopped) {
        if let Some(run) = self.by_task.remove(&task) {
            run.stop.tell(reason);
        }
        if !self.elsewhere.is_empty() {
            self.elsewhere.remove(&task);
        }
    }

    /// Forgets an attempt that ended by itself, and tells so whoever else might listen.
    pub(crate) fn end(&mut self, task: TaskId) {
        if let Some(run) = self.by_task.remove(&task)
            && run.stop.has_listeners()
        {
            run.stop.tell(Stopped::Revoked);
        }
    }

    /// Remembers an attempt that does not run here.
    pub(crate) fn note(&mut self, task: TaskId, begun: Begun) {
        self.elsewhere.insert(task, begun);
    }

    /// Forgets all attempts that do not run here.
    pub(crate) fn forget_elsewhere(&mut self) {
        self.elsewhere.clear();
    }

    /// How an attempt began, if that is known.
    pub(crate) fn begun(&self, task: TaskId, fence: Fence) -> Option<Begun> {
        let here = self.get(task, fence).map(|run| Begun { fence, started: run.started, worker: None });
        here.or_else(|| self.elsewhere.get(&task).filter(|begun| begun.fence == fence).cloned())
    }

    pub(crate) fn tell(&self, task: TaskId, fence: Fence, reason: Stopped) {
        if let Some(run) = self.get(task, fence) {
            run.stop.tell(reason);
        }
    }

    pub(crate) fn tell_all(&self, reason: Stopped) {
        self.by_task.values().for_each(|run| run.stop.tell(reason));
    }

    pub(crate) fn get(&self, task: TaskId, fence: Fence) -> Option<&Run> {
        self.by_task.get(&task).filter(|run| run.fence == fence)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.by_task.is_empty()
    }

    pub(crate) fn attempts(&self) -> Vec<(TaskId, Fence)> {
        self.by_task.iter().map(|(task, run)| (*task, run.fence)).collect()
    }

    pub(crate) fn next_renewal(&self) -> Option<Timestamp> {
        self.next_renewal
    }

    /// Signs of life of everything that runs here, and how long they last at the least before the next.
    pub(crate) fn signs_of_life(&self) -> (Vec<Command>, Millis) {
        let beat = |(task, run): (&TaskId, &Run)| Command::Heartbeat { task: *task, fence: run.fence };
        let least = self.by_task.values().map(|run| third(run.lease)).min().unwrap_or(Millis::MAX);
        (self.by_task.iter().map(beat).collect(), least)
    }

    /// The signs of life that are due.
    pub(crate) fn renewals(&mut self, now: Timestamp) -> Vec<Command> {
        if self.next_renewal.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for (task, run) in &mut self.by_task {
            if run.renew_at <= now {
                run.renew_at = now + third(run.lease);
                due.push(Command::Heartbeat { task: *task, fence: run.fence });
            }
        }
        self.next_renewal = self.by_task.values().map(|run| run.renew_at).min();
        due
    }
}

/// A lease is renewed each third of its length.
fn third(lease: Millis) -> Millis {
    Millis((lease.0 / 3).max(1))
}
