//! What happened to each task, in the recording or in a replay.

use std::collections::BTreeMap;

use laneway_core::LaneName;

use crate::script::Assumptions;
use crate::trace::{Arrival, TaskOutcome, Trace};

/// What happened to each task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The tasks, in the order of the trace.
    pub tasks: Vec<TaskTimeline>,
    /// How many slots the lanes had, where they are limited; sessions are left out.
    pub limits: BTreeMap<LaneName, u32>,
    /// What the replay had to assume; `None` for a recording.
    pub assumptions: Option<Assumptions>,
}

/// What happened to one task. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTimeline {
    /// When it was submitted.
    pub arrived: u64,
    /// From when on it might have started: a delay that it asked for does not count as waiting.
    pub ready: u64,
    /// When it ran.
    pub runs: Vec<Run>,
    /// When it ended.
    pub ended: Option<u64>,
    /// How it ended.
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

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was accepted.
    Accepted(TaskOutcome),
    /// It was not, with this code.
    Refused(String),
    /// Its parent ended before it submitted the task.
    Unasked,
}

impl Timeline {
    /// The timeline of a trace.
    pub fn recorded(trace: &Trace) -> Timeline {
        let tasks = trace.arrivals.iter().map(TaskTimeline::recorded).collect();
        Timeline { tasks, limits: trace.header.limits.clone(), assumptions: None }
    }
}

impl TaskTimeline {
    /// A task that has not arrived yet.
    pub(crate) fn to_come(arrival: &Arrival) -> TaskTimeline {
        TaskTimeline {
            arrived: arrival.at_ms,
            ready: arrival.at_ms,
            runs: Vec::new(),
            ended: None,
            fate: Fate::Unasked,
        }
    }

    fn recorded(arrival: &Arrival) -> TaskTimeline {
        let run = |attempt| {
            let (start, end) = arrival.span(attempt);
            Run { start, end, borrowed: attempt.borrowed.clone() }
        };
        let fate = match (arrival.outcome, &arrival.reason) {
            (TaskOutcome::Refused, Some(code)) => Fate::Refused(code.clone()),
            (TaskOutcome::Refused, None) => Fate::Refused("UNKNOWN".to_owned()),
            (outcome, _) => Fate::Accepted(outcome),
        };
        TaskTimeline {
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
