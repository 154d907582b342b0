//! The attempts that run here, and the renewal of their leases.

use laneway_core::{Command, Fence, Millis, Name, TaskId, Timestamp};

use crate::driver::ids::ByTask;
use crate::runs::stop::{StopSignal, Stopped};

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

/// The attempts that run here, by task. The newest is held in place: much work is over before any other begins.
#[derive(Default)]
struct Here {
    newest: Option<(TaskId, Run)>,
    others: ByTask<Run>,
}

impl Here {
    fn insert(&mut self, task: TaskId, run: Run) {
        if let Some((before, run)) = self.newest.replace((task, run)) {
            self.others.insert(before, run);
        }
    }

    fn remove(&mut self, task: TaskId) -> Option<Run> {
        match self.newest.take_if(|(newest, _)| *newest == task) {
            Some((_, run)) => Some(run),
            None => self.others.remove(&task),
        }
    }

    fn get(&self, task: TaskId) -> Option<&Run> {
        match &self.newest {
            Some((newest, run)) if *newest == task => Some(run),
            _ => self.others.get(&task),
        }
    }

    fn is_empty(&self) -> bool {
        self.newest.is_none() && self.others.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (TaskId, &Run)> {
        let newest = self.newest.iter().map(|(task, run)| (*task, run));
        newest.chain(self.others.iter().map(|(task, run)| (*task, run)))
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (TaskId, &mut Run)> {
        let newest = self.newest.iter_mut().map(|(task, run)| (*task, run));
        newest.chain(self.others.iter_mut().map(|(task, run)| (*task, run)))
    }
}

/// All attempts that run here, and what is known of others.
#[derive(Default)]
pub(crate) struct Runs {
    here: Here,
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
        self.here.insert(task, run);
        self.next_renewal = Some(self.next_renewal.map_or(renew_at, |next| next.min(renew_at)));
        stop
    }

    /// Forgets an attempt that is over, whoever said so, and tells it to stop should it not know.
    pub(crate) fn remove(&mut self, task: TaskId, reason: Stopped) {
        if let Some(run) = self.here.remove(task) {
            run.stop.tell(reason);
        }
        if !self.elsewhere.is_empty() {
            self.elsewhere.remove(&task);
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
        self.here.iter().for_each(|(_, run)| run.stop.tell(reason));
    }

    pub(crate) fn get(&self, task: TaskId, fence: Fence) -> Option<&Run> {
        self.here.get(task).filter(|run| run.fence == fence)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.here.is_empty()
    }

    pub(crate) fn attempts(&self) -> Vec<(TaskId, Fence)> {
        self.here.iter().map(|(task, run)| (task, run.fence)).collect()
    }

    pub(crate) fn next_renewal(&self) -> Option<Timestamp> {
        self.next_renewal
    }

    /// Signs of life of everything that runs here, and how long they last at the least before the next.
    pub(crate) fn signs_of_life(&self) -> (Vec<Command>, Millis) {
        let beat = |(task, run): (TaskId, &Run)| Command::Heartbeat { task, fence: run.fence };
        let least = self.here.iter().map(|(_, run)| third(run.lease)).min().unwrap_or(Millis::MAX);
        (self.here.iter().map(beat).collect(), least)
    }

    /// The signs of life that are due.
    pub(crate) fn renewals(&mut self, now: Timestamp) -> Vec<Command> {
        if self.next_renewal.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for (task, run) in self.here.iter_mut() {
            if run.renew_at <= now {
                run.renew_at = now + third(run.lease);
                due.push(Command::Heartbeat { task, fence: run.fence });
            }
        }
        self.next_renewal = self.here.iter().map(|(_, run)| run.renew_at).min();
        due
    }
}

/// A lease is renewed each third of its length.
fn third(lease: Millis) -> Millis {
    Millis((lease.0 / 3).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tasks whose leases are renewed at this moment, in order.
    fn renewed(runs: &mut Runs, at: u64) -> Vec<u128> {
        let tasks = runs.renewals(Timestamp(at)).into_iter().filter_map(|command| match command {
            Command::Heartbeat { task, .. } => Some(task.0),
            _ => None,
        });
        let mut tasks: Vec<u128> = tasks.collect();
        tasks.sort_unstable();
        tasks
    }

    #[test]
    fn each_run_is_there_until_it_ends_whichever_began_last() {
        let mut runs = Runs::default();
        let stops: Vec<StopSignal> = (1..=4)
            .map(|number| runs.insert(TaskId(number), Fence(number as u64), Millis(30), Timestamp(0)))
            .collect();
        let fences = |runs: &Runs| -> Vec<u64> {
            (1..=4).filter(|number| runs.get(TaskId(u128::from(*number)), Fence(*number)).is_some()).collect()
        };
        assert_eq!((fences(&runs), runs.attempts().len()), (vec![1, 2, 3, 4], 4));
        assert_eq!(renewed(&mut runs, 10), [1, 2, 3, 4]);
        assert_eq!(runs.next_renewal(), Some(Timestamp(20)));
        runs.remove(TaskId(2), Stopped::Timeout);
        runs.remove(TaskId(4), Stopped::Revoked);
        assert_eq!((fences(&runs), renewed(&mut runs, 20)), (vec![1, 3], vec![1, 3]));
        runs.tell_all(Stopped::Shutdown);
        let told: Vec<Option<Stopped>> = stops.iter().map(StopSignal::reason).collect();
        let [shutdown, timeout, revoked] = [Stopped::Shutdown, Stopped::Timeout, Stopped::Revoked].map(Some);
        assert_eq!(told, [shutdown, timeout, shutdown, revoked]);
        runs.remove(TaskId(1), Stopped::Revoked);
        assert!(!runs.is_quiet());
        runs.remove(TaskId(3), Stopped::Revoked);
        assert!(runs.is_quiet());
    }
}
