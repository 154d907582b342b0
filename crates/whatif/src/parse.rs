//! Reads the text of a file as a [`Trace`], or says what is wrong with it and where.

use std::collections::BTreeSet;

use laneway_core::{LANES_PER_TASK_MAX, PRIORITY_MAX, Timestamp};
use serde::Deserialize;
use thiserror::Error;

use crate::trace::{Arrival, Header, TRACE_FORMAT, TaskOutcome, Trace};

/// What is wrong with a trace, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub problem: TraceProblem,
}

/// What is wrong with a line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the texts say it")]
pub enum TraceProblem {
    #[error("the trace is empty; its first line must be the header")]
    Empty,
    #[error(
        "expected the header of a trace, {{\"laneway_trace\": {TRACE_FORMAT}, …}}, as `laneway trace export` writes it"
    )]
    NoHeader,
    #[error("the trace has format {0}, and this version of Laneway reads format {TRACE_FORMAT}")]
    Format(u32),
    #[error("the header makes no sense: {0}")]
    Header(String),
    #[error("the header promises {promised} arrivals, and there are {found}; was the file cut off?")]
    CutOff { promised: u64, found: u64 },
    #[error("there are no arrivals, so there is nothing to replay")]
    NoArrivals,
    #[error("expected one arrival as a JSON object: {0}")]
    NoArrival(String),
    #[error("lanes has more than {LANES_PER_TASK_MAX} names")]
    TooManyLanes,
    #[error("priority must be a whole number from 0 to {PRIORITY_MAX}")]
    Priority,
    #[error("times must be at most {} (the year 2445)", Timestamp::MAX)]
    TooLate,
    #[error("a task that was refused cannot have attempts")]
    RefusedWithAttempts,
    #[error("at_ms is {at}, before the arrival above it at {above}; arrivals must be in order")]
    OutOfOrder { at: u64, above: u64 },
    #[error("{field} names arrival {id}, which does not stand above it")]
    NotAbove { field: &'static str, id: u64 },
    #[error("id {0} is used twice")]
    IdTwice(u64),
}

#[derive(Deserialize)]
struct Format {
    laneway_trace: u32,
}

/// Reads a trace and checks that it makes sense.
pub fn read_trace(text: &str) -> Result<Trace, TraceError> {
    let at = |line: usize| move |problem: TraceProblem| TraceError { line, problem };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (index, first) = lines.next().ok_or(TraceProblem::Empty).map_err(at(1))?;
    let header = read_header(first).map_err(at(index + 1))?;
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut seen = Seen::default();
    for (index, line) in lines {
        let arrival = read_arrival(line).map_err(at(index + 1))?;
        seen.check(&arrival).map_err(at(index + 1))?;
        arrivals.push(arrival);
    }
    let (promised, found) = (header.arrivals, arrivals.len() as u64);
    let last = at(text.lines().count());
    if found != promised {
        return Err(last(TraceProblem::CutOff { promised, found }));
    }
    if arrivals.is_empty() {
        return Err(last(TraceProblem::NoArrivals));
    }
    Ok(Trace { header, arrivals })
}

fn read_header(line: &str) -> Result<Header, TraceProblem> {
    let format: Format = serde_json::from_str(line).map_err(|_| TraceProblem::NoHeader)?;
    if format.laneway_trace != TRACE_FORMAT {
        return Err(TraceProblem::Format(format.laneway_trace));
    }
    serde_json::from_str(line).map_err(|error| TraceProblem::Header(plain(&error)))
}

fn read_arrival(line: &str) -> Result<Arrival, TraceProblem> {
    let arrival: Arrival =
        serde_json::from_str(line).map_err(|error| TraceProblem::NoArrival(plain(&error)))?;
    if arrival.lanes.len() > LANES_PER_TASK_MAX {
        return Err(TraceProblem::TooManyLanes);
    }
    if arrival.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
        return Err(TraceProblem::Priority);
    }
    let lasts = arrival.attempts.last().map(|last| last.start_ms.saturating_add(last.run_ms));
    let longest = lasts.into_iter().chain(arrival.ended_ms).max().unwrap_or_default();
    if arrival.at_ms.saturating_add(longest) > Timestamp::MAX.0 {
        return Err(TraceProblem::TooLate);
    }
    if arrival.outcome == TaskOutcome::Refused && !arrival.attempts.is_empty() {
        return Err(TraceProblem::RefusedWithAttempts);
    }
    Ok(arrival)
}

/// The text of an error without its line, which serde counts from this line.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// The arrivals so far.
#[derive(Default)]
struct Seen {
    ids: BTreeSet<u64>,
    latest: u64,
}

impl Seen {
    fn check(&mut self, arrival: &Arrival) -> Result<(), TraceProblem> {
        let above = std::mem::replace(&mut self.latest, arrival.at_ms);
        if arrival.at_ms < above {
            return Err(TraceProblem::OutOfOrder { at: arrival.at_ms, above });
        }
        let others = [("parent", arrival.parent.map(|parent| parent.id)), ("after", arrival.after)];
        for (field, id) in others {
            if let Some(id) = id.filter(|id| !self.ids.contains(id)) {
                return Err(TraceProblem::NotAbove { field, id });
            }
        }
        if self.ids.insert(arrival.id) { Ok(()) } else { Err(TraceProblem::IdTwice(arrival.id)) }
    }
}
