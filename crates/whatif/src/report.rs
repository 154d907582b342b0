//! A timeline in numbers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use laneway_core::LaneName;
use laneway_protocol::At;
use serde::Serialize;

use crate::script::Assumptions;
use crate::timeline::{Fate, TaskTimeline, Timeline};
use crate::trace::{Arrival, TaskOutcome, Trace};

/// Two courses of the same work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// How many arrivals there were.
    pub arrivals: usize,
    /// The first of them.
    pub from: At,
    /// The last thing that was recorded.
    pub to: At,
    /// What the trace does not hold.
    pub missing: Vec<String>,
    /// How it was, or would have been with the old configuration.
    pub before: Report,
    /// How it would have been.
    pub after: Report,
}

/// How the work of a trace went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `recorded`, or the configuration.
    pub name: String,
    /// How many tasks came to which end.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// How many were refused, by code.
    pub refusals: BTreeMap<String, u64>,
    /// From the first arrival to the last end.
    pub span_ms: u64,
    /// The lanes, those with the most tasks first; all sessions are one.
    pub lanes: Vec<LaneReport>,
    /// How evenly the waiting was spread over fair keys.
    pub fair_keys: Fairness,
    /// How evenly the waiting was spread over sessions.
    pub sessions: Fairness,
    /// What had to be assumed; nothing of what really happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumptions: Option<Assumptions>,
    /// The most that waited in each of [`PARTS`] equal parts of the span, for the picture.
    #[serde(skip)]
    pub(crate) waiting: Vec<u32>,
}

/// How it went in a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneReport {
    /// Its name; `session:*` stands for all sessions.
    pub lane: String,
    /// Tasks that named it and were asked for.
    pub tasks: u64,
    /// Those of them that ran.
    pub ran: u64,
    /// Half of those that ran waited no longer.
    pub wait_p50_ms: u64,
    /// Nine of ten did.
    pub wait_p90_ms: u64,
    /// Ninety-nine of a hundred did.
    pub wait_p99_ms: u64,
    /// None did.
    pub wait_max_ms: u64,
    /// How many of its slots were taken, on average over the span.
    pub busy: f64,
    /// How many it has; none where there is no limit, or it stands for many lanes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

/// Jain's index of mean waits: 1 when all wait alike, 1/n when one of n does all the waiting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// How many there are whose work ran.
    pub count: u64,
    /// The index.
    pub index: f64,
}

/// The number of parts into which the picture divides the span.
pub(crate) const PARTS: usize = 240;

impl Report {
    /// The numbers of a timeline.
    pub fn new(name: impl Into<String>, trace: &Trace, played: &Timeline) -> Report {
        let tasks = || trace.arrivals.iter().zip(&played.tasks);
        let start = trace.arrivals.first().map_or(0, |arrival| arrival.at_ms);
        let times = |task: &TaskTimeline| {
            task.runs.last().map(|run| run.end).into_iter().chain(task.ended).chain([task.arrived])
        };
        let span_ms = played.tasks.iter().flat_map(times).max().unwrap_or(start).saturating_sub(start);
        let (outcomes, refusals) = fates(&played.tasks);
        Report {
            name: name.into(),
            outcomes,
            refusals,
            span_ms,
            lanes: lanes(tasks(), span_ms, &played.limits),
            fair_keys: fairness(tasks(), |arrival| Some(Cow::Borrowed(fair_key(arrival)))),
            sessions: fairness(tasks(), session),
            assumptions: played.assumptions,
            waiting: waiting(&played.tasks, start, span_ms),
        }
    }

    pub(crate) fn lane(&self, name: &str) -> Option<&LaneReport> {
        self.lanes.iter().find(|lane| lane.lane == name)
    }
}

impl LaneReport {
    /// How much of its slots was taken, 0 to 1.
    pub fn utilisation(&self) -> Option<f64> {
        self.slots.map(|slots| self.busy / f64::from(slots))
    }
}

fn fates(tasks: &[TaskTimeline]) -> (BTreeMap<&'static str, u64>, BTreeMap<String, u64>) {
    let (mut outcomes, mut refusals) = (BTreeMap::new(), BTreeMap::new());
    for task in tasks {
        match &task.fate {
            Fate::Accepted(outcome) => *outcomes.entry(outcome.as_str()).or_default() += 1,
            Fate::Refused(code) => {
                *outcomes.entry(TaskOutcome::Refused.as_str()).or_default() += 1;
                *refusals.entry(code.clone()).or_default() += 1;
            }
            Fate::Unasked => {}
        }
    }
    (outcomes, refusals)
}

/// The numbers of a lane, or of all sessions.
#[derive(Default)]
struct Seen {
    tasks: u64,
    waits: Vec<u64>,
    busy_ms: u64,
}

fn lanes<'a>(
    tasks: impl Iterator<Item = (&'a Arrival, &'a TaskTimeline)>,
    span_ms: u64,
    limits: &BTreeMap<LaneName, u32>,
) -> Vec<LaneReport> {
    let mut seen: BTreeMap<Cow<'a, str>, Seen> = BTreeMap::new();
    for (arrival, task) in tasks.filter(|(_, task)| task.fate != Fate::Unasked) {
        let rows = rows(arrival);
        for row in rows.iter().collect::<BTreeSet<_>>() {
            let lane = seen.entry(row.clone()).or_default();
            lane.tasks += 1;
            lane.waits.extend(task.waited());
        }
        for run in &task.runs {
            let own = rows.iter().enumerate().filter(|(place, _)| !run.borrowed.contains(&(*place as u8)));
            own.for_each(|(_, row)| {
                seen.entry(row.clone()).or_default().busy_ms += run.end.saturating_sub(run.start);
            });
        }
    }
    let limit = |name: &str| limits.iter().find(|(lane, _)| lane.as_str() == name).map(|(_, slots)| *slots);
    let report = |(name, mut seen): (Cow<'_, str>, Seen)| {
        seen.waits.sort_unstable();
        let rank = |percent: usize| percentile(&seen.waits, percent);
        LaneReport {
            tasks: seen.tasks,
            ran: seen.waits.len() as u64,
            wait_p50_ms: rank(50),
            wait_p90_ms: rank(90),
            wait_p99_ms: rank(99),
            wait_max_ms: rank(100),
            busy: rounded(seen.busy_ms as f64 / span_ms.max(1) as f64),
            slots: limit(&name),
            lane: name.into_owned(),
        }
    };
    let mut lanes: Vec<LaneReport> = seen.into_iter().map(report).collect();
    lanes.sort_by(|a, b| b.tasks.cmp(&a.tasks).then_with(|| a.lane.cmp(&b.lane)));
    lanes
}

/// The rows in which a task counts: its lanes, with all sessions as one, and `global`, in that order.
fn rows(arrival: &Arrival) -> Vec<Cow<'_, str>> {
    let mut rows: Vec<Cow<'_, str>> = arrival.lanes.iter().map(|lane| row(lane.as_str())).collect();
    if rows.is_empty() {
        rows.push(Cow::Borrowed("main"));
    }
    if !rows.iter().any(|row| row == "global") {
        rows.push(Cow::Borrowed("global"));
    }
    rows
}

fn row(lane: &str) -> Cow<'_, str> {
    match lane.strip_prefix("session:").map(|key| key.split_once('/')) {
        None => Cow::Borrowed(lane),
        Some(None) => Cow::Borrowed("session:*"),
        Some(Some((_, rest))) => Cow::Owned(format!("session:*/{rest}")),
    }
}

/// The smallest value that `percent` of a hundred do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn fair_key(arrival: &Arrival) -> &str {
    let home = arrival.lanes.first().map_or("main", LaneName::as_str);
    arrival.fair_key.as_ref().map_or(home, LaneName::as_str)
}

fn session(arrival: &Arrival) -> Option<Cow<'_, str>> {
    arrival.session.as_deref().map(Cow::Borrowed)
}

fn fairness<'a>(
    tasks: impl Iterator<Item = (&'a Arrival, &'a TaskTimeline)>,
    name: impl Fn(&'a Arrival) -> Option<Cow<'a, str>>,
) -> Fairness {
    let mut waits: BTreeMap<Cow<'a, str>, (u64, u64)> = BTreeMap::new();
    for (arrival, task) in tasks {
        if let (Some(name), Some(waited)) = (name(arrival), task.waited()) {
            let (sum, count) = waits.entry(name).or_default();
            (*sum, *count) = (*sum + waited, *count + 1);
        }
    }
    let means: Vec<f64> = waits.values().map(|(sum, count)| *sum as f64 / *count as f64).collect();
    let (sum, squares): (f64, f64) = (means.iter().sum(), means.iter().map(|mean| mean * mean).sum());
    // Without any wait, all wait alike.
    let index = if squares == 0.0 { 1.0 } else { sum * sum / (means.len() as f64 * squares) };
    Fairness { count: means.len() as u64, index: rounded(index) }
}

/// Three decimals: more would be noise, and differ between machines.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The most that waited at once in each part of the span.
fn waiting(tasks: &[TaskTimeline], start: u64, span_ms: u64) -> Vec<u32> {
    let mut changes: Vec<(u64, i32)> = Vec::new();
    for (from, until) in tasks.iter().filter_map(TaskTimeline::waiting) {
        changes.extend([(from, 1), (until, -1)]);
    }
    // At one moment, ends of waits come first.
    changes.sort_unstable();
    let mut parts = vec![0_u32; PARTS];
    let (mut now, mut last) = (0_i32, 0_usize);
    for (at, change) in changes {
        let part = (at.saturating_sub(start) as u128 * PARTS as u128 / (u128::from(span_ms) + 1)) as usize;
        let part = part.min(PARTS - 1);
        let still = u32::try_from(now).unwrap_or_default();
        parts[(last + 1).min(part + 1)..=part].fill(still);
        now += change;
        parts[part] = parts[part].max(u32::try_from(now).unwrap_or_default());
        last = part;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_wait_that_really_was() {
        let waits: Vec<u64> = (1..=200).collect();
        let ranks = [0, 50, 90, 99, 100].map(|percent| percentile(&waits, percent));
        assert_eq!(ranks, [1, 100, 180, 198, 200]);
        assert_eq!((percentile(&[], 50), percentile(&[7], 50), percentile(&[7, 9], 50)), (0, 7, 7));
    }

    #[test]
    fn the_most_that_waited_is_known_of_each_part_of_the_span() {
        let task = |ready: u64, start: u64| TaskTimeline {
            arrived: ready,
            ready,
            runs: vec![crate::timeline::Run { start, end: start, borrowed: vec![] }],
            ended: Some(start),
            fate: Fate::Accepted(TaskOutcome::Completed),
        };
        // A span of 239 ms: one part for each.
        let parts = waiting(&[task(0, 100), task(50, 60), task(239, 239)], 0, 239);
        let changes: Vec<(usize, u32)> = (0..PARTS)
            .filter(|at| *at == 0 || parts[*at] != parts[*at - 1])
            .map(|at| (at, parts[at]))
            .collect();
        assert_eq!(changes, [(0, 1), (50, 2), (61, 1), (101, 0)]);
    }
}
