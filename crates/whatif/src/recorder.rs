//! From the events of a log to arrivals.

use std::collections::BTreeMap;

use laneway_core::{End, Event, LaneName, SessionChange, StopReason, TaskId, TaskSpec};
use laneway_store::Batch;

use crate::trace::{Arrival, AttemptEnd, RecordedAttempt, TaskOutcome};

/// A task of which something is known, before it has a number.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) task: TaskId,
    pub(crate) parent: Option<KnownParent>,
    pub(crate) after: Option<TaskId>,
    /// Without its number, parent and predecessor.
    pub(crate) arrival: Arrival,
}

/// The task that asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownParent {
    pub(crate) task: TaskId,
    /// Whether it waited; `None`: nobody wrote that down.
    pub(crate) detached: Option<bool>,
}

/// What a trace does not replay, and how often it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Untold {
    pub(crate) gates: u64,
    pub(crate) settings: u64,
    pub(crate) priorities: u64,
    pub(crate) turns: u64,
}

/// Listens to a log, from its first batch to its last.
#[derive(Default)]
pub(crate) struct Recorder {
    tasks: BTreeMap<TaskId, Heard>,
    pub(crate) untold: Untold,
    /// When the first batch was.
    pub(crate) from: Option<u64>,
    /// When the last one was.
    pub(crate) to: u64,
}

struct Heard {
    known: Known,
    /// An attempt runs.
    runs: bool,
    /// When it was told to stop, and whether because it took too long.
    told: Option<(u64, bool)>,
}

impl Recorder {
    pub(crate) fn hear(&mut self, batch: Batch) {
        let at = batch.at.0;
        self.from.get_or_insert(at);
        self.to = self.to.max(at);
        for event in batch.events {
            self.hear_event(at, event);
        }
    }

    fn hear_event(&mut self, at: u64, event: Event) {
        match event {
            Event::Submitted { task, spec, .. } => self.submitted(at, task, *spec),
            Event::Granted { task, borrowed, .. } => {
                if let Some(heard) = self.tasks.get_mut(&task) {
                    heard.start(at, borrowed);
                }
            }
            Event::Stopping { task, reason, .. } => {
                if let Some(heard) = self.tasks.get_mut(&task) {
                    heard.told = Some((at, reason == StopReason::Timeout));
                }
            }
            Event::Retrying { task, .. } => self.attempt_over(at, task, AttemptEnd::Failed),
            Event::Redelivered { task, .. } => self.attempt_over(at, task, AttemptEnd::Lost),
            Event::Ended { task, end } => self.ended(at, task, &end),
            // What was set up before the first task arrived is no change.
            Event::Configured { .. } | Event::MessagesConfigured { .. } if self.tasks.is_empty() => {}
            Event::Paused { .. } | Event::Resumed { .. } | Event::Draining { .. } => self.untold.gates += 1,
            Event::Configured { .. } | Event::MessagesConfigured { .. } => self.untold.settings += 1,
            Event::Reprioritised { .. } => self.untold.priorities += 1,
            Event::Session(event) => {
                let is_turn = matches!(event.change, SessionChange::TurnBegan { .. });
                self.untold.turns += u64::from(is_turn);
            }
            _ => {}
        }
    }

    fn submitted(&mut self, at: u64, task: TaskId, spec: TaskSpec) {
        let parent =
            spec.parent.map(|parent| KnownParent { task: parent.task, detached: Some(parent.detached) });
        let known = Known { task, parent, after: spec.after, arrival: asked(at, spec) };
        self.tasks.insert(task, Heard { known, runs: false, told: None });
    }

    fn attempt_over(&mut self, at: u64, task: TaskId, end: AttemptEnd) {
        if let Some(heard) = self.tasks.get_mut(&task) {
            let is_late = heard.told.is_some_and(|(_, is_late)| is_late);
            heard.stop(at, if is_late { AttemptEnd::TimedOut } else { end });
        }
    }

    fn ended(&mut self, at: u64, task: TaskId, end: &End) {
        let (outcome, reason) = outcome(end);
        self.attempt_over(at, task, attempt_end(outcome));
        if let Some(heard) = self.tasks.get_mut(&task) {
            let arrival = &mut heard.known.arrival;
            (arrival.outcome, arrival.reason) = (outcome, reason);
            arrival.ended_ms = Some(at.saturating_sub(arrival.at_ms));
        }
    }

    /// All tasks whose acceptance was heard.
    pub(crate) fn into_tasks(mut self) -> Vec<Known> {
        self.tasks.values_mut().for_each(|heard| heard.stop(self.to, AttemptEnd::Cut));
        self.tasks.into_values().map(|heard| heard.known).collect()
    }
}

impl Heard {
    fn start(&mut self, at: u64, borrowed: Vec<u8>) {
        let start_ms = at.saturating_sub(self.known.arrival.at_ms);
        let attempt = RecordedAttempt { start_ms, run_ms: 0, end: AttemptEnd::Cut, stop_ms: None, borrowed };
        self.known.arrival.attempts.push(attempt);
        (self.runs, self.told) = (true, None);
    }

    /// The attempt is over, if one runs.
    fn stop(&mut self, at: u64, end: AttemptEnd) {
        let arrived = self.known.arrival.at_ms;
        if let Some(attempt) = self.known.arrival.attempts.last_mut().filter(|_| self.runs) {
            attempt.run_ms = at.saturating_sub(arrived + attempt.start_ms);
            attempt.end = end;
            attempt.stop_ms = self.told.map(|(told, _)| at.saturating_sub(told));
        }
        self.runs = false;
    }
}

/// What was asked, with nothing known of what came of it.
pub(crate) fn asked(at: u64, spec: TaskSpec) -> Arrival {
    Arrival {
        id: 0,
        at_ms: at,
        session: session_of(&spec.lanes),
        kind: spec.kind,
        lanes: spec.lanes,
        source: spec.source.into(),
        priority: spec.priority,
        fair_key: spec.fair_key,
        parent: None,
        after: None,
        wait_timeout_ms: spec.wait_timeout.map(|length| length.0),
        timeout_ms: spec.timeout.map(|length| length.0),
        deadline_ms: spec.deadline.map(|length| length.0),
        run_after_ms: spec.run_after.map(|length| length.0),
        retry: spec.retry.map(Into::into),
        attempts: Vec::new(),
        outcome: TaskOutcome::Live,
        reason: None,
        ended_ms: None,
    }
}

/// The conversation of a task, as it stands in the names of its lanes.
fn session_of(lanes: &[LaneName]) -> Option<String> {
    let key = lanes.iter().find_map(|lane| lane.as_str().strip_prefix("session:"))?;
    Some(key.split_once('/').map_or(key, |(key, _)| key).to_owned())
}

/// How an attempt ended with which the task ended so.
pub(crate) fn attempt_end(outcome: TaskOutcome) -> AttemptEnd {
    match outcome {
        TaskOutcome::Completed => AttemptEnd::Completed,
        TaskOutcome::Failed => AttemptEnd::Failed,
        TaskOutcome::TimedOut => AttemptEnd::TimedOut,
        TaskOutcome::Lost => AttemptEnd::Lost,
        _ => AttemptEnd::Cut,
    }
}

/// The end of a task, and why it was cancelled.
pub(crate) fn outcome(end: &End) -> (TaskOutcome, Option<String>) {
    match end {
        End::Completed => (TaskOutcome::Completed, None),
        End::Failed { .. } => (TaskOutcome::Failed, None),
        End::TimedOut => (TaskOutcome::TimedOut, None),
        End::Cancelled { reason } => {
            (TaskOutcome::Cancelled, Some(laneway_protocol::cancel_reason(*reason).to_owned()))
        }
        End::Expired => (TaskOutcome::Expired, None),
        End::WaitTimeout => (TaskOutcome::WaitTimeout, None),
        End::Lost => (TaskOutcome::Lost, None),
    }
}
