//! What happened to each task, in the recording or in a replay: the same form for both, so that both are told alike.

use std::collections::BTreeMap;

use laneway_core::LaneName;

use crate::script::Assumptions;
use crate::trace::{Arrival, TaskOutcome, Trace};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// To each task, in the order of the trace.
    pub tasks: Vec<PlayedTask>,
    /// How many slots the lanes had, where they are limited; sessions are left out.
    pub limits: BTreeMap<LaneName, u32>,
    /// What had to be assumed; `None` of what really happened.
    pub assumptions: Option<Assumptions>,
}

/// What happened to one task. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedTask {
    /// When it was asked for.
    pub arrived: u64,
    /// From when on it might have started: what it asked to be put off does not count as waiting.
    pub ready: u64,
    /// When it ran.
    pub runs: Vec<Run>,
    /// When it was over.
    pub ended: Option<u64>,
    /// What became of it.
    pub fate: Fate,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it started.
    pub start: u64,
    /// When its slots were free again.
    pub end: u64,
    /// Which of its lanes (by place; `global` last) it borrowed a parent's slot of.
    pub borrowed: Vec<u8>,
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was accepted.
    Accepted(TaskOutcome),
    /// It was not, with this code.
    Refused(String),
    /// Its parent did not get so far as to ask for it.
    Unasked,
}

impl Played {
    /// What a trace says that happened.
    pub fn recorded(trace: &Trace) -> Played {
        let tasks = trace.arrivals.iter().map(PlayedTask::recorded).collect();
        Played { tasks, limits: trace.header.limits.clone(), assumptions: None }
    }
}

impl PlayedTask {
    /// A task that has not arrived yet.
    pub(crate) fn to_come(arrival: &Arrival) -> PlayedTask {
        PlayedTask {
            arrived: arrival.at_ms,
            ready: arrival.at_ms,
            runs: Vec::new(),
            ended: None,
            fate: Fate::Unasked,
        }
    }

    fn recorded(arrival: &Arrival) -> PlayedTask {
        let run = |attempt| {
            let (start, end) = arrival.span(attempt);
            Run { start, end, borrowed: attempt.borrowed.clone() }
        };
        let fate = match (arrival.outcome, &arrival.reason) {
            (TaskOutcome::Refused, Some(code)) => Fate::Refused(code.clone()),
            (TaskOutcome::Refused, None) => Fate::Refused("UNKNOWN".to_owned()),
            (outcome, _) => Fate::Accepted(outcome),
        };
        PlayedTask {
            arrived: arrival.at_ms,
            ready: arrival.at_ms + arrival.run_after_ms.unwrap_or_default(),
            runs: arrival.attempts.iter().map(run).collect(),
            ended: arrival.ended(),
            fate,
        }
    }

    /// How long it waited before its first run; `None`: it never ran.
    pub fn waited(&self) -> Option<u64> {
        self.runs.first().map(|first| first.start.saturating_sub(self.ready))
    }

    /// From when to when it waited for its first run; `None`: it never waited, or still does.
    pub(crate) fn waiting(&self) -> Option<(u64, u64)> {
        let until = self.runs.first().map(|first| first.start).or(self.ended)?;
        (until > self.ready).then_some((self.ready, until))
    }
}
