//! What each task does when it runs: as recorded, and where nothing is recorded, as assumed. Each assumption is counted.

use std::collections::BTreeMap;

use laneway_core::{Command, Fence, Millis, Name, Outcome, Parent, TaskId, TaskSpec};
use serde::Serialize;

use crate::family::{Child, Family};
use crate::trace::{Arrival, AttemptEnd, RecordedAttempt, Trace};

/// The run time of a task when nothing of the trace ran to its end.
const RUN_UNKNOWN_MS: u64 = 1000;

/// What a replay had to assume, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Assumptions {
    /// Runs of tasks that never ran in the recording: they take the median time of their kind, and succeed.
    pub never_ran: u64,
    /// Runs that were cut off in the recording (a timeout, a cancel, the end of the trace): they take the median time of
    /// their kind, or as long as they had if that is more, and succeed.
    pub cut_off: u64,
    /// Attempts beyond those that were recorded: they go as the last recorded one did.
    pub further: u64,
    /// Children whose parent's run is not in the trace: they arrive when they did, without a parent.
    pub orphans: u64,
    /// Children that were never submitted, because their parent did not get so far.
    pub unasked: u64,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// It succeeds.
    #[default]
    Success,
    /// It fails.
    Failure,
    /// Its lease lapses.
    Silence,
}

/// One run in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunPlan {
    pub(crate) run_ms: u64,
    pub(crate) end: RunEnd,
    /// How long it goes on after it was asked to stop.
    pub(crate) stop_ms: u64,
}

/// The parent's attempt in which a task was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskedBy {
    pub(crate) parent: usize,
    /// Counted from one.
    pub(crate) attempt: u32,
    pub(crate) detached: bool,
}

/// What all tasks of a trace do.
pub(crate) struct Script<'a> {
    pub(crate) arrivals: &'a [Arrival],
    pub(crate) assumptions: Assumptions,
    /// Attempts (counted from one) that have children.
    pub(crate) families: BTreeMap<(usize, u32), Family>,
    asked_by: Vec<Option<AskedBy>>,
    places: BTreeMap<u64, usize>,
    medians: BTreeMap<&'a Name, u64>,
    median: u64,
}

impl<'a> Script<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Script<'a> {
        let arrivals = &trace.arrivals;
        let places = arrivals.iter().enumerate().map(|(place, arrival)| (arrival.id, place)).collect();
        let (medians, median) = medians(arrivals);
        let asked_by = vec![None; arrivals.len()];
        let (assumptions, families) = (Assumptions::default(), BTreeMap::new());
        let mut script = Script { arrivals, assumptions, families, asked_by, places, medians, median };
        script.find_families();
        script
    }

    fn find_families(&mut self) {
        let mut children: BTreeMap<(usize, u32), Vec<Child>> = BTreeMap::new();
        for (task, arrival) in self.arrivals.iter().enumerate() {
            let Some(parent) = arrival.parent else { continue };
            let place = self.places.get(&parent.id).copied();
            let run =
                place.and_then(|place| Some((place, running_at(&self.arrivals[place], arrival.at_ms)?)));
            let Some((place, attempt)) = run else {
                self.assumptions.orphans += 1;
                continue;
            };
            let over = arrival.ended().filter(|_| !parent.detached);
            children.entry((place, attempt)).or_default().push(Child { task, asked: arrival.at_ms, over });
            self.asked_by[task] = Some(AskedBy { parent: place, attempt, detached: parent.detached });
        }
        for ((place, number), children) in children {
            let arrival = &self.arrivals[place];
            let attempt = &arrival.attempts[number as usize - 1];
            let (start, _) = arrival.span(attempt);
            let run_ms = self.recorded(arrival, attempt).run_ms;
            self.families.insert((place, number), Family::new(start, start + run_ms, &children));
        }
    }

    /// The parent that submits a task; `None`: it has none in the trace.
    pub(crate) fn asked_by(&self, task: usize) -> Option<AskedBy> {
        self.asked_by[task]
    }

    /// The request. `is_live` says whether the task that it comes after is live.
    pub(crate) fn spec(&self, task: usize, is_live: impl Fn(usize) -> bool) -> TaskSpec {
        let arrival = &self.arrivals[task];
        let mut spec = TaskSpec::new(arrival.kind.clone(), arrival.lanes.clone());
        spec.source = arrival.source;
        spec.priority = arrival.priority;
        spec.fair_key = arrival.fair_key.clone();
        spec.wait_timeout = arrival.wait_timeout_ms.map(Millis);
        spec.timeout = arrival.timeout_ms.map(Millis);
        spec.deadline = arrival.deadline_ms.map(Millis);
        spec.run_after = arrival.run_after_ms.map(Millis);
        spec.retry = arrival.retry;
        spec.parent =
            self.asked_by[task].map(|asked| Parent { task: task_id(asked.parent), detached: asked.detached });
        let after = arrival.after.and_then(|after| self.places.get(&after).copied());
        spec.after = after.filter(|after| is_live(*after)).map(task_id);
        spec
    }

    /// How attempt number `attempt` (counted from one) of a task goes.
    pub(crate) fn act(&mut self, task: usize, attempt: u32) -> RunPlan {
        let arrival = &self.arrivals[task];
        let recorded = arrival.attempts.get(attempt as usize - 1);
        match (recorded, arrival.attempts.last()) {
            (Some(recorded), _) => {
                self.assumptions.cut_off += u64::from(is_cut(recorded));
                self.recorded(arrival, recorded)
            }
            (None, Some(last)) => {
                self.assumptions.further += 1;
                self.recorded(arrival, last)
            }
            (None, None) => {
                self.assumptions.never_ran += 1;
                RunPlan { run_ms: self.median_of(&arrival.kind), end: RunEnd::Success, stop_ms: 0 }
            }
        }
    }

    fn recorded(&self, arrival: &Arrival, attempt: &RecordedAttempt) -> RunPlan {
        let run_ms = if is_cut(attempt) {
            // It would have run longer.
            self.median_of(&arrival.kind).max(attempt.run_ms.saturating_add(1))
        } else {
            attempt.run_ms
        };
        let end = match attempt.end {
            AttemptEnd::Completed | AttemptEnd::TimedOut | AttemptEnd::Cut => RunEnd::Success,
            AttemptEnd::Failed => RunEnd::Failure,
            AttemptEnd::Lost => RunEnd::Silence,
        };
        RunPlan { run_ms, end, stop_ms: attempt.stop_ms.unwrap_or_default() }
    }

    fn median_of(&self, kind: &Name) -> u64 {
        self.medians.get(kind).copied().unwrap_or(self.median)
    }
}

impl RunEnd {
    /// How it is reported.
    pub(crate) fn command(self, task: usize, fence: Fence) -> Command {
        let task = task_id(task);
        let outcome = match self {
            RunEnd::Success => Outcome::Success,
            RunEnd::Failure => Outcome::Failure { error: "as recorded".into(), retryable: true },
            RunEnd::Silence => return Command::Lapse { task, fence },
        };
        Command::Finish { task, fence, taken: vec![], outcome }
    }
}

/// The id that a task has in a replay.
pub(crate) fn task_id(place: usize) -> TaskId {
    TaskId(place as u128 + 1)
}

fn is_cut(attempt: &RecordedAttempt) -> bool {
    matches!(attempt.end, AttemptEnd::TimedOut | AttemptEnd::Cut)
}

/// Which attempt (counted from one) ran at that time.
fn running_at(arrival: &Arrival, at: u64) -> Option<u32> {
    let runs = |attempt| {
        let (start, end) = arrival.span(attempt);
        (start..=end).contains(&at)
    };
    arrival.attempts.iter().rposition(runs).map(|place| place as u32 + 1)
}

/// The median time of runs that succeeded, by kind and over all.
fn medians(arrivals: &[Arrival]) -> (BTreeMap<&Name, u64>, u64) {
    let mut times: BTreeMap<&Name, Vec<u64>> = BTreeMap::new();
    for arrival in arrivals {
        let ran = arrival.attempts.iter().filter(|attempt| attempt.end == AttemptEnd::Completed);
        let ran: Vec<u64> = ran.map(|attempt| attempt.run_ms).collect();
        if !ran.is_empty() {
            times.entry(&arrival.kind).or_default().extend(ran);
        }
    }
    let mut all: Vec<u64> = times.values().flatten().copied().collect();
    let medians = times.into_iter().filter_map(|(kind, mut times)| Some((kind, median(&mut times)?)));
    (medians.collect(), median(&mut all).unwrap_or(RUN_UNKNOWN_MS))
}

fn median(times: &mut [u64]) -> Option<u64> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}
