//! From the text of a file to a [`Trace`], or to what is wrong with it and where.

use std::collections::BTreeMap;
use std::fmt;

use laneway_core::{LANES_PER_TASK_MAX, PRIORITY_MAX, Timestamp};
use serde::Deserialize;

use crate::trace::{Arrival, Header, TRACE_FORMAT, TaskOutcome, Trace};

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for TraceError {}

#[derive(Deserialize)]
struct Format {
    laneway_trace: u32,
}

/// Reads a trace and checks that it makes sense.
pub fn read_trace(text: &str) -> Result<Trace, TraceError> {
    let wrong = |line: usize, what: String| TraceError { line, what };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((at, first)) = lines.next() else {
        return Err(wrong(1, "the trace is empty; its first line must be the header".to_owned()));
    };
    let header = read_header(first).map_err(|what| wrong(at + 1, what))?;
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut seen = Seen::default();
    for (at, line) in lines {
        let arrival = read_arrival(line).map_err(|what| wrong(at + 1, what))?;
        seen.check(&arrival, arrivals.len()).map_err(|what| wrong(at + 1, what))?;
        arrivals.push(arrival);
    }
    let last = text.lines().count();
    if arrivals.len() as u64 != header.arrivals {
        let what = format!(
            "the header promises {} arrivals, and there are {}; was the file cut off?",
            header.arrivals,
            arrivals.len()
        );
        return Err(wrong(last, what));
    }
    if arrivals.is_empty() {
        return Err(wrong(last, "there are no arrivals, so there is nothing to replay".to_owned()));
    }
    Ok(Trace { header, arrivals })
}

fn read_header(line: &str) -> Result<Header, String> {
    let format: Format = serde_json::from_str(line).map_err(|_| {
        format!("expected the header of a trace, {{\"laneway_trace\": {TRACE_FORMAT}, …}}, as `laneway trace export` writes it")
    })?;
    if format.laneway_trace != TRACE_FORMAT {
        return Err(format!(
            "the trace has format {}, and this version of Laneway reads format {TRACE_FORMAT}",
            format.laneway_trace
        ));
    }
    serde_json::from_str(line).map_err(|error| format!("the header makes no sense: {}", plain(&error)))
}

fn read_arrival(line: &str) -> Result<Arrival, String> {
    let arrival: Arrival = serde_json::from_str(line)
        .map_err(|error| format!("expected one arrival as a JSON object: {}", plain(&error)))?;
    if arrival.lanes.len() > LANES_PER_TASK_MAX {
        return Err(format!("lanes has more than {LANES_PER_TASK_MAX} names"));
    }
    if arrival.priority.is_some_and(|priority| priority > PRIORITY_MAX) {
        return Err(format!("priority must be a whole number from 0 to {PRIORITY_MAX}"));
    }
    let lasts = arrival.attempts.last().map(|last| last.start_ms.saturating_add(last.run_ms));
    let longest = lasts.into_iter().chain(arrival.ended_ms).max().unwrap_or_default();
    if arrival.at_ms.saturating_add(longest) > Timestamp::MAX.0 {
        return Err(format!("times must be at most {} (the year 2445)", Timestamp::MAX));
    }
    if arrival.outcome == TaskOutcome::Refused && !arrival.attempts.is_empty() {
        return Err("a task that was refused cannot have attempts".to_owned());
    }
    Ok(arrival)
}

/// serde's own words, without the place in the line, which it counts from a line of its own.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// The arrivals so far.
#[derive(Default)]
struct Seen {
    numbers: BTreeMap<u64, usize>,
    latest: u64,
}

impl Seen {
    fn check(&mut self, arrival: &Arrival, place: usize) -> Result<(), String> {
        if arrival.at_ms < self.latest {
            return Err(format!(
                "at_ms is {}, before the arrival above it at {}; arrivals must be in order",
                arrival.at_ms, self.latest
            ));
        }
        self.latest = arrival.at_ms;
        let others = [("parent", arrival.parent.map(|parent| parent.id)), ("after", arrival.after)];
        for (field, other) in others {
            if let Some(other) = other.filter(|other| !self.numbers.contains_key(other)) {
                return Err(format!("{field} names arrival {other}, which does not stand above it"));
            }
        }
        match self.numbers.insert(arrival.id, place) {
            Some(_) => Err(format!("id {} is used twice", arrival.id)),
            None => Ok(()),
        }
    }
}
