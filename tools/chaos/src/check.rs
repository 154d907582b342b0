//! Looks at every moment of a log, and at what the replicas said.

use std::collections::{HashMap, HashSet};

use laneway_core::{End, Event, LaneName, Owner, ReplicaId, TaskId};
use laneway_store::Batch;

use crate::{LEASE_MS, REPLICA_LEASE_MS, WORK_MAX};

/// How late the end of a lease may be noticed.
const LATE_MS: u64 = 1000;
/// When no replica appends for longer than this, the store is away, and silence is no fault of a replica.
const SILENCE_MS: u64 = 300;
/// After a silence of this length, replicas may be back from an outage and renew leases that none could renew.
const OUTAGE_MS: u64 = 100;

/// What the log shows.
#[derive(Debug, Default)]
pub struct Findings {
    /// Tasks that were accepted, closures among them.
    pub tasks: usize,
    /// How many ended as completed.
    pub completed: usize,
    /// How many ended as lost.
    pub lost: usize,
    /// Attempts whose lease lapsed.
    pub lapsed: usize,
    /// Attempts that were done after their lease had lapsed, and were refused.
    pub stale: usize,
    /// The most that ran at once.
    pub running_most: u32,
    /// Everything that must not be.
    pub violations: Vec<String>,
}

struct Task {
    lanes: Vec<LaneName>,
    /// Whose slot it is, if it is one.
    slot_of: Option<ReplicaId>,
    arrival: usize,
    attempts: u32,
    running: Option<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    fence: u64,
    lease_until: u64,
}

/// How long any replica has been appending, and how often all were silent.
#[derive(Clone, Copy, Default)]
struct Moment {
    active_ms: u64,
    outages: u64,
}

#[derive(Default)]
struct Checker {
    findings: Findings,
    live: HashMap<TaskId, Task>,
    ended: HashSet<TaskId>,
    running: HashMap<LaneName, u32>,
    /// The arrival of the turn of each conversation that was started last.
    last_started: HashMap<LaneName, usize>,
    /// Attempts whose lease lapsed.
    lapsed: HashSet<(TaskId, u64)>,
    /// When each replica appended last, in time during which any replica did.
    seen: HashMap<u64, Moment>,
    now: Moment,
    last_at: u64,
}

/// Checks a whole log. `accepted` are the tasks whose callers got an acceptance, `done` the attempts that
/// were finished.
pub fn check(log: &[Batch], accepted: &[TaskId], done: &HashSet<(TaskId, u64)>) -> Findings {
    let mut checker = Checker::default();
    for batch in log {
        checker.pass_time(batch);
        eprintln!(
            "{} by {:x}: {} events {:?}",
            batch.at.0 % 1000000,
            (batch.id.0 >> 112) as u64,
            batch.events.len(),
            batch
                .events
                .iter()
                .map(|e| format!("{e:?}").chars().take(90).collect::<String>())
                .filter(|e| !e.starts_with("Submitted"))
                .collect::<Vec<_>>()
        );
        for event in &batch.events {
            checker.event(event, done);
        }
        checker.look(batch);
    }
    for task in accepted {
        if !checker.ended.contains(task) && !checker.live.contains_key(task) {
            checker.violation(format!("{task} was accepted and is not in the log"));
        }
    }
    let left: Vec<String> = checker.live.keys().map(|task| format!("{task} has not ended")).collect();
    checker.findings.violations.extend(left);
    checker.findings.lapsed = checker.lapsed.len();
    checker.findings.stale = done.intersection(&checker.lapsed).count();
    checker.findings
}

impl Checker {
    fn violation(&mut self, text: String) {
        self.findings.violations.push(format!("at {}: {text}", self.last_at));
    }

    fn pass_time(&mut self, batch: &Batch) {
        if self.last_at == 0 {
            self.last_at = batch.at.0;
        }
        if batch.at.0 < self.last_at {
            self.violation(format!("the time went back to {}", batch.at.0));
        }
        let silence = batch.at.0.saturating_sub(self.last_at);
        self.now.active_ms += silence.min(SILENCE_MS);
        self.now.outages += u64::from(silence >= OUTAGE_MS);
        self.last_at = batch.at.0;
        self.seen.insert((batch.id.0 >> 64) as u64, self.now);
    }

    fn event(&mut self, event: &Event, done: &HashSet<(TaskId, u64)>) {
        match event {
            Event::Submitted { task, spec, .. } => {
                let slot_of = spec.owner.as_ref().and_then(Owner::replica);
                let arrival = self.findings.tasks;
                self.findings.tasks += 1;
                let accepted =
                    Task { lanes: spec.lanes.clone(), slot_of, arrival, attempts: 0, running: None };
                if self.live.insert(*task, accepted).is_some() || self.ended.contains(task) {
                    self.violation(format!("{task} was accepted twice"));
                }
            }
            Event::Granted { task, fence, lease_until, .. } => self.granted(*task, fence.0, lease_until.0),
            Event::Renewed { task, fence, lease_until } => {
                match self.live.get_mut(task).and_then(|task| task.running.as_mut()) {
                    Some(run) if run.fence == fence.0 => run.lease_until = lease_until.0,
                    _ => self.violation(format!("{task} was renewed under an old fence")),
                }
            }
            Event::Retrying { task, fence, error, .. } => {
                if &**error == "the lease lapsed" {
                    self.lapsed.insert((*task, fence.0));
                }
                self.over(*task, Some(fence.0));
            }
            Event::Ended { task, end } => self.ended(*task, end, done),
            _ => {}
        }
    }

    fn granted(&mut self, id: TaskId, fence: u64, lease_until: u64) {
        let Some(task) = self.live.get_mut(&id) else {
            return self.violation(format!("{id} was granted and is not there"));
        };
        if task.running.is_some() {
            return self.violation(format!("{id} was granted while it ran"));
        }
        task.running = Some(Run { fence, lease_until });
        task.attempts += 1;
        let (lanes, arrival, is_first) = (task.lanes.clone(), task.arrival, task.attempts == 1);
        for lane in lanes {
            let running = self.running.entry(lane.clone()).or_default();
            *running += 1;
            let now = *running;
            let is_session = lane.as_str().starts_with("session:");
            if now > if is_session { 1 } else { WORK_MAX } {
                self.violation(format!("{now} run in {lane}"));
            }
            if !is_session {
                self.findings.running_most = self.findings.running_most.max(now);
            }
            let before = self.last_started.entry(lane.clone()).or_insert(arrival);
            if is_session && is_first && arrival < std::mem::replace(before, arrival) {
                self.violation(format!("{id} of {lane} started after one that came later"));
            }
        }
    }

    /// An attempt is over.
    fn over(&mut self, id: TaskId, fence: Option<u64>) {
        let Some(task) = self.live.get_mut(&id) else {
            return self.violation(format!("{id} is not there, and an attempt of it was over"));
        };
        let Some(run) = task.running.take() else { return };
        for lane in task.lanes.clone() {
            self.running.entry(lane).and_modify(|running| *running -= 1);
        }
        if fence.is_some_and(|fence| fence != run.fence) {
            self.violation(format!("an old attempt of {id} was ended"));
        }
    }

    fn ended(&mut self, id: TaskId, end: &End, done: &HashSet<(TaskId, u64)>) {
        let run = self.live.get(&id).and_then(|task| task.running);
        let is_turn = self.live.get(&id).is_some_and(|task| task.slot_of.is_none());
        self.over(id, None);
        match (end, run) {
            (End::Completed, Some(run)) => {
                self.findings.completed += 1;
                if is_turn && !done.contains(&(id, run.fence)) {
                    self.violation(format!("{id} was completed without its lease"));
                }
            }
            (End::Completed, None) => self.violation(format!("{id} was completed and did not run")),
            (End::Lost, _) => {
                self.findings.lost += 1;
                self.lapsed.extend(run.map(|run| (id, run.fence)));
            }
            _ => {}
        }
        self.live.remove(&id);
        if !self.ended.insert(id) {
            self.violation(format!("{id} ended twice"));
        }
    }

    /// Nothing is left of the dead for longer than a lease and a second.
    fn look(&mut self, batch: &Batch) {
        let mut ghosts = Vec::new();
        for (id, task) in &self.live {
            if let Some(run) = task.running
                && batch.at.0 > run.lease_until + LATE_MS
            {
                ghosts.push(format!("{id} runs on {} ms after its lease", batch.at.0 - run.lease_until));
            }
            let Some(replica) = task.slot_of else { continue };
            let seen = self.seen.get(&replica.0).copied().unwrap_or_default();
            let silent = self.now.active_ms - seen.active_ms;
            let extended = (self.now.outages - seen.outages) * LEASE_MS.max(REPLICA_LEASE_MS);
            // What runs has a lease; the last renewal may be as late as the last heartbeat.
            let lease = if task.running.is_some() { LEASE_MS } else { 0 };
            if silent > REPLICA_LEASE_MS + LATE_MS + lease + extended {
                ghosts.push(format!("{id} is there for a replica that has been silent for {silent} ms"));
            }
        }
        ghosts.into_iter().for_each(|ghost| self.violation(ghost));
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{Fence, Handler, Millis, Name, TaskSpec, Timestamp};
    use laneway_store::BatchId;

    use super::*;

    fn submitted(task: u128) -> Event {
        let lanes = vec![LaneName::new("work").unwrap(), LaneName::new("session:1").unwrap()];
        let spec = Box::new(TaskSpec::new(Name::new("turn").unwrap(), lanes));
        let (wait_until, deadline) = (None, None);
        Event::Submitted {
            task: TaskId(task),
            spec,
            priority: 1,
            handler: Handler::Internal,
            wait_until,
            deadline,
        }
    }

    fn granted(task: u128, fence: u64, lease_until: u64) -> Event {
        Event::Granted {
            task: TaskId(task),
            attempt: 1,
            fence: Fence(fence),
            lease_until: Timestamp(lease_until),
            lease: Millis(2000),
            timeout_at: None,
            owner: Owner::Replica(ReplicaId(1)),
            borrowed: vec![],
        }
    }

    fn completed(task: u128) -> Event {
        Event::Ended { task: TaskId(task), end: End::Completed }
    }

    fn violations(events: Vec<(u64, Vec<Event>)>, accepted: &[u128], done: &[(u128, u64)]) -> Vec<String> {
        let log: Vec<Batch> = events
            .into_iter()
            .map(|(at, events)| Batch { id: BatchId(1 << 64), at: Timestamp(at), events })
            .collect();
        let accepted: Vec<TaskId> = accepted.iter().map(|task| TaskId(*task)).collect();
        let done = done.iter().map(|(task, fence)| (TaskId(*task), *fence)).collect();
        check(&log, &accepted, &done).violations
    }

    #[test]
    fn each_sort_of_wrong_is_found() {
        let fine = vec![(1, vec![submitted(1), granted(1, 1, 2001)]), (9, vec![completed(1)])];
        assert_eq!(violations(fine.clone(), &[1], &[(1, 1)]), Vec::<String>::new());
        let cases = [
            (violations(fine.clone(), &[1, 2], &[(1, 1)]), "is not in the log"),
            (violations(fine, &[1], &[(1, 7)]), "without its lease"),
            (violations(vec![(1, vec![submitted(1)])], &[], &[]), "has not ended"),
            (
                violations(
                    vec![(1, vec![submitted(1), submitted(2), granted(1, 1, 9000), granted(2, 2, 9000)])],
                    &[],
                    &[],
                ),
                "2 run in session:1",
            ),
            (
                violations(
                    vec![
                        (1, vec![submitted(1), submitted(2), granted(2, 1, 9000)]),
                        (2, vec![completed(2), granted(1, 2, 9000)]),
                    ],
                    &[],
                    &[(2, 1)],
                ),
                "started after one that came later",
            ),
            (
                violations(vec![(1, vec![submitted(1), granted(1, 1, 2000)]), (3500, vec![])], &[], &[]),
                "after its lease",
            ),
        ];
        for (found, expected) in cases {
            assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
        }
    }
}
