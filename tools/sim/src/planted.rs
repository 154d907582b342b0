//! Bugs that are planted one at a time, in the store or in every engine, and how many seeds it takes to find each.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::{Command, Fence, Scheduler, TaskId, Timestamp};
use laneway_engine::Faults;
use laneway_store::testing::{resealed, rewritten};
use laneway_store::{Append, BatchId, ErrorKind, Head, StoreError, StoredBatch};

use crate::plan::Plan;
use crate::run::{Wanted, run};
use crate::world::{Sim, World};

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An engine believes every report of an end, whichever attempt it is of.
    FenceIgnored,
    /// An engine does not renew the leases of what it runs.
    LeaseNotRenewed,
    /// An append whose answer was lost is repeated under another id, where the log ends then.
    AppendedTwice,
    /// An engine does not read the first of several batches that it missed.
    TailSkipped,
    /// A decision on an old state is appended to a newer one.
    StaleGrant,
    /// An engine forgets what a run reports while the store is away.
    OutcomeDropped,
    /// An engine does not look at the clock for what is due.
    LapseUnseen,
    /// An engine believes a second report of the same end.
    CompletedTwice,
    /// What waits for a dead replica waits for ever.
    DeadNotReaped,
    /// An engine takes a batch of its own that it finds in the log for one that it knows, although its answer was lost.
    OwnBatchSkipped,
    /// The store answers before it appends.
    AnswerBeforeAppend,
    /// The store takes a batch whatever the log was expected to hold.
    VersionNotChecked,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 12] = [
        Bug::FenceIgnored,
        Bug::LeaseNotRenewed,
        Bug::AppendedTwice,
        Bug::TailSkipped,
        Bug::StaleGrant,
        Bug::OutcomeDropped,
        Bug::LapseUnseen,
        Bug::CompletedTwice,
        Bug::DeadNotReaped,
        Bug::OwnBatchSkipped,
        Bug::AnswerBeforeAppend,
        Bug::VersionNotChecked,
    ];

    /// The first seed that shows it, and what it shows.
    ///
    /// # Errors
    ///
    /// Where no seed shows it, or one shows something without it too: then it is not this bug that was found.
    pub fn found(self, seeds: u64) -> Result<(u64, String), String> {
        let wanted = Wanted { has_timeline: false, bug: Some(self) };
        let found = (0..seeds).find_map(|seed| {
            let violations = run(&Plan::of_seed(seed), wanted).violations;
            violations.into_iter().next().map(|violation| (seed, violation))
        });
        let Some((seed, violation)) = found else { return Err(format!("not found in {seeds} seeds")) };
        match run(&Plan::of_seed(seed), Wanted::default()).violations.first() {
            None => Ok((seed, violation)),
            Some(other) => Err(format!("not found: seed {seed} fails without it too: {other}")),
        }
    }
}

/// Plants a bug in an engine.
pub(crate) struct Planted {
    pub(crate) sim: Sim,
    pub(crate) replica: usize,
    pub(crate) bug: Bug,
    /// The reports that the engine has decided before.
    seen: Mutex<HashSet<(TaskId, Fence)>>,
}

impl Planted {
    pub(crate) fn new(sim: Sim, replica: usize, bug: Bug) -> Arc<Planted> {
        Arc::new(Planted { sim, replica, bug, seen: Mutex::default() })
    }
}

impl Faults for Planted {
    fn command(&self, state: &Scheduler, command: &mut Command) {
        let is_wrong = match (self.bug, &*command) {
            (Bug::FenceIgnored, Command::Finish { task, taken, outcome, .. }) => {
                if let Some(running) = state.task(*task).and_then(|view| view.running) {
                    *command = Command::Finish {
                        task: *task,
                        fence: running.fence,
                        taken: taken.clone(),
                        outcome: outcome.clone(),
                    };
                }
                false
            }
            (Bug::CompletedTwice, Command::Finish { task, .. }) => state.status(*task).is_none(),
            (Bug::LeaseNotRenewed, Command::Heartbeat { task, .. }) => {
                let run = state.task(*task).and_then(|view| view.running);
                run.is_some_and(|run| run.worker().is_none())
            }
            (Bug::OutcomeDropped, Command::Finish { task, fence, .. }) => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let is_repeated = !seen.insert((*task, *fence));
                is_repeated && self.sim.world().wires[self.replica].has_failed
            }
            (Bug::DeadNotReaped, Command::ReplicaGone { .. }) => true,
            _ => false,
        };
        if is_wrong {
            *command = Command::Tick;
        }
    }

    fn wakeup(&self, at: Timestamp) -> Option<Timestamp> {
        (self.bug != Bug::LapseUnseen).then_some(at)
    }
}

impl World {
    /// What becomes of an append under a planted bug, before the store looks at it.
    pub(crate) fn tamper_with_append(&mut self, replica: usize, append: Append) -> Append {
        let head = self.shared.head();
        let wire = &mut self.wires[replica];
        let is_repeated = wire.appended.replace(append.batch) == Some(append.batch) && wire.has_failed;
        let tampered = match self.bug {
            Some(Bug::VersionNotChecked) => Ok(Append { expected: head, ..append.clone() }),
            Some(Bug::StaleGrant) if append.expected != head && !is_repeated => {
                resealed(&append, head, |_| {})
            }
            Some(Bug::AppendedTwice) if is_repeated => {
                resealed(&append, head, |batch| batch.id = BatchId(batch.id.0 ^ 1 << 8))
            }
            _ => return append,
        };
        tampered.unwrap_or(append)
    }

    /// Notes whether a replica got an answer to its append.
    pub(crate) fn note_answer(&mut self, replica: usize, answer: &Result<Head, StoreError>) {
        let has_failed = |error: &StoreError| error.kind() == ErrorKind::Unavailable;
        self.wires[replica].has_failed = answer.as_ref().is_err_and(has_failed);
    }

    /// What planted bugs leave of what a replica reads.
    pub(crate) fn tamper_with_read(&self, reader: (usize, u32), batches: &mut [StoredBatch]) {
        let is_own = |author: u64| self.authors.get(&author) == Some(&reader);
        let is_alone = batches.len() == 1;
        let skips = matches!(self.bug, Some(Bug::TailSkipped | Bug::OwnBatchSkipped));
        let Some(first) = batches.first_mut().filter(|_| skips) else { return };
        let emptied = rewritten(first, |batch| {
            let is_skipped = match self.bug {
                Some(Bug::TailSkipped) => !is_alone,
                Some(Bug::OwnBatchSkipped) => is_alone && is_own(batch.id.author().0),
                _ => false,
            };
            if is_skipped {
                batch.events.clear();
            }
        });
        if let Ok(emptied) = emptied {
            *first = emptied;
        }
    }
}
