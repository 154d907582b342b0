//! The attempts that run here, and the renewal of their leases.

use laneway_core::{Command, Fence, Millis, Name, TaskId, Timestamp};

use crate::driver::ids::ByTask;
use crate::runs::stop::{StopSignal, Stopped};

/// What happened so long before it is decided keeps its own time in the records.
pub(crate) const LATE: Millis = Millis(100);

/// An attempt that runs here.
pub(crate) struct Run {
    pub(crate) fence: Fence,
    pub(crate) stop: StopSignal,
    started: Timestamp,
    /// When it began here, if that was much later than the log says, because the store stood still.
    pub(crate) began_late: Option<Timestamp>,
    lease: Millis,
    renew_at: Timestamp,
}

/// The beginning of an attempt.
#[derive(Clone)]
pub(crate) struct AttemptStart {
    pub(crate) fence: Fence,
    pub(crate) started: Timestamp,
    pub(crate) worker: Option<Name>,
}

/// All attempts that run here, and what is known of others.
#[derive(Default)]
pub(crate) struct Runs {
    here: ByTask<Run>,
    /// Attempts that run elsewhere, or ran at a replica that is dead: what the history tells of them.
    elsewhere: ByTask<AttemptStart>,
    /// No lease needs renewal before this. It may be too early, never too late.
    next_renewal: Option<Timestamp>,
}

impl Runs {
    /// Notes an attempt that was granted at `started` and begins now.
    pub(crate) fn insert(
        &mut self,
        task: TaskId,
        fence: Fence,
        lease: Millis,
        started: Timestamp,
        now: Timestamp,
    ) -> StopSignal {
        let stop = StopSignal::default();
        let renew_at = started + third(lease);
        let began_late = (now.since(started) > LATE).then_some(now);
        let run = Run { fence, stop: stop.clone(), started, began_late, lease, renew_at };
        self.here.insert(task, run);
        self.next_renewal = Some(self.next_renewal.map_or(renew_at, |next| next.min(renew_at)));
        stop
    }

    /// Forgets an attempt that is over, and stops it in case it did not end by itself.
    pub(crate) fn remove(&mut self, task: TaskId, reason: Stopped) {
        if let Some(run) = self.here.remove(&task) {
            run.stop.tell(reason);
        }
        if !self.elsewhere.is_empty() {
            self.elsewhere.remove(&task);
        }
    }

    /// Remembers an attempt that does not run here.
    pub(crate) fn note(&mut self, task: TaskId, start_of: AttemptStart) {
        self.elsewhere.insert(task, start_of);
    }

    /// Forgets all attempts that do not run here.
    pub(crate) fn forget_elsewhere(&mut self) {
        self.elsewhere.clear();
    }

    /// How an attempt began, if that is known.
    pub(crate) fn start_of(&self, task: TaskId, fence: Fence) -> Option<AttemptStart> {
        let here = self.get(task, fence).map(|run| AttemptStart {
            fence,
            started: run.began_late.unwrap_or(run.started),
            worker: None,
        });
        here.or_else(|| self.elsewhere.get(&task).filter(|start_of| start_of.fence == fence).cloned())
    }

    pub(crate) fn tell(&self, task: TaskId, fence: Fence, reason: Stopped) {
        if let Some(run) = self.get(task, fence) {
            run.stop.tell(reason);
        }
    }

    pub(crate) fn tell_all(&self, reason: Stopped) {
        self.here.values().for_each(|run| run.stop.tell(reason));
    }

    pub(crate) fn get(&self, task: TaskId, fence: Fence) -> Option<&Run> {
        self.here.get(&task).filter(|run| run.fence == fence)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.here.is_empty()
    }

    pub(crate) fn attempts(&self) -> Vec<(TaskId, Fence)> {
        self.here.iter().map(|(task, run)| (*task, run.fence)).collect()
    }

    pub(crate) fn next_renewal(&self) -> Option<Timestamp> {
        self.next_renewal
    }

    /// The heartbeats that are due.
    pub(crate) fn renewals(&mut self, now: Timestamp) -> Vec<Command> {
        if self.next_renewal.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for (task, run) in &mut self.here {
            if run.renew_at <= now {
                run.renew_at = now + third(run.lease);
                due.push(Command::Heartbeat { task: *task, fence: run.fence });
            }
        }
        self.next_renewal = self.here.values().map(|run| run.renew_at).min();
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
    fn each_run_is_there_until_it_ends() {
        let mut runs = Runs::default();
        let stops: Vec<StopSignal> = (1..=4)
            .map(|number| {
                runs.insert(TaskId(number), Fence(number as u64), Millis(30), Timestamp(0), Timestamp(0))
            })
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
        assert_eq!(
            told,
            [
                Some(Stopped::Shutdown),
                Some(Stopped::Timeout),
                Some(Stopped::Shutdown),
                Some(Stopped::Revoked)
            ]
        );
        runs.remove(TaskId(1), Stopped::Revoked);
        assert!(!runs.is_quiet());
        runs.remove(TaskId(3), Stopped::Revoked);
        assert!(runs.is_quiet());
    }
}
