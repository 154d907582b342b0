//! From the events of a log to arrivals.

use std::collections::BTreeMap;

use laneway_core::{End, Event, LaneName, SessionDelta, StopReason, TaskId, TaskSpec};
use laneway_store::Batch;

use crate::trace::{Arrival, AttemptEnd, RecordedAttempt, TaskOutcome};

/// A task, before it has a number.
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
    /// Whether it waited; `None`: not known.
    pub(crate) detached: Option<bool>,
}

/// What a trace does not replay, and how often it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotReplayed {
    pub(crate) gates: u64,
    pub(crate) settings: u64,
    pub(crate) priorities: u64,
    pub(crate) turns: u64,
}

/// Collects the tasks of a log, from its first batch to its last.
#[derive(Default)]
pub(crate) struct Recorder {
    tasks: BTreeMap<TaskId, Recording>,
    pub(crate) not_replayed: NotReplayed,
    /// When the first batch was.
    pub(crate) from: Option<u64>,
    /// When the last one was.
    pub(crate) to: u64,
}

struct Recording {
    known: Known,
    /// An attempt runs.
    runs: bool,
    /// When it was asked to stop, and whether because it took too long.
    stopping: Option<(u64, bool)>,
}

impl Recorder {
    pub(crate) fn record(&mut self, batch: Batch) {
        let at = batch.at.0;
        self.from.get_or_insert(at);
        self.to = self.to.max(at);
        for event in batch.events {
            self.record_event(at, event);
        }
    }

    fn record_event(&mut self, at: u64, event: Event) {
        match event {
            Event::Submitted { task, spec, .. } => self.submitted(at, task, *spec),
            Event::Granted { task, borrowed, .. } => {
                if let Some(recording) = self.tasks.get_mut(&task) {
                    recording.start(at, borrowed);
                }
            }
            Event::Stopping { task, reason, .. } => {
                if let Some(recording) = self.tasks.get_mut(&task) {
                    recording.stopping = Some((at, reason == StopReason::Timeout));
                }
            }
            Event::Retrying { task, .. } => self.attempt_over(at, task, AttemptEnd::Failed),
            Event::Redelivered { task, .. } => self.attempt_over(at, task, AttemptEnd::Lost),
            Event::Ended { task, end } => self.ended(at, task, &end),
            // What was set up before the first task arrived is no change.
            Event::Configured { .. } | Event::MessagesConfigured { .. } if self.tasks.is_empty() => {}
            Event::Paused { .. } | Event::Resumed { .. } | Event::Draining { .. } => {
                self.not_replayed.gates += 1
            }
            Event::Configured { .. } | Event::MessagesConfigured { .. } => self.not_replayed.settings += 1,
            Event::Reprioritised { .. } => self.not_replayed.priorities += 1,
            Event::Session(event) => {
                let is_turn = matches!(event.change, SessionDelta::TurnBegan { .. });
                self.not_replayed.turns += u64::from(is_turn);
            }
            _ => {}
        }
    }

    fn submitted(&mut self, at: u64, task: TaskId, spec: TaskSpec) {
        let parent =
            spec.parent.map(|parent| KnownParent { task: parent.task, detached: Some(parent.detached) });
        let known = Known { task, parent, after: spec.after, arrival: asked(at, spec) };
        self.tasks.insert(task, Recording { known, runs: false, stopping: None });
    }

    fn attempt_over(&mut self, at: u64, task: TaskId, end: AttemptEnd) {
        if let Some(recording) = self.tasks.get_mut(&task) {
            let is_late = recording.stopping.is_some_and(|(_, is_late)| is_late);
            recording.stop(at, if is_late { AttemptEnd::TimedOut } else { end });
        }
    }

    fn ended(&mut self, at: u64, task: TaskId, end: &End) {
        let (outcome, reason) = outcome(end);
        self.attempt_over(at, task, attempt_end(outcome));
        if let Some(recording) = self.tasks.get_mut(&task) {
            let arrival = &mut recording.known.arrival;
            (arrival.outcome, arrival.reason) = (outcome, reason);
            arrival.ended_ms = Some(at.saturating_sub(arrival.at_ms));
        }
    }

    /// All tasks whose acceptance is in the log.
    pub(crate) fn into_tasks(mut self) -> Vec<Known> {
        self.tasks.values_mut().for_each(|recording| recording.stop(self.to, AttemptEnd::Cut));
        self.tasks.into_values().map(|recording| recording.known).collect()
    }
}

impl Recording {
    fn start(&mut self, at: u64, borrowed: Vec<u8>) {
        let start_ms = at.saturating_sub(self.known.arrival.at_ms);
        let attempt = RecordedAttempt { start_ms, run_ms: 0, end: AttemptEnd::Cut, stop_ms: None, borrowed };
        self.known.arrival.attempts.push(attempt);
        (self.runs, self.stopping) = (true, None);
    }

    /// The attempt is over, if one runs.
    fn stop(&mut self, at: u64, end: AttemptEnd) {
        let arrived = self.known.arrival.at_ms;
        if let Some(attempt) = self.known.arrival.attempts.last_mut().filter(|_| self.runs) {
            attempt.run_ms = at.saturating_sub(arrived + attempt.start_ms);
            attempt.end = end;
            attempt.stop_ms = self.stopping.map(|(asked, _)| at.saturating_sub(asked));
        }
        self.runs = false;
    }
}

/// A request, without anything that followed it.
pub(crate) fn asked(at: u64, spec: TaskSpec) -> Arrival {
    Arrival {
        id: 0,
        at_ms: at,
        session: session_of(&spec.lanes),
        kind: spec.kind,
        lanes: spec.lanes,
        source: spec.source,
        priority: spec.priority,
        fair_key: spec.fair_key,
        parent: None,
        after: None,
        wait_timeout_ms: spec.wait_timeout.map(|length| length.0),
        timeout_ms: spec.timeout.map(|length| length.0),
        deadline_ms: spec.deadline.map(|length| length.0),
        run_after_ms: spec.run_after.map(|length| length.0),
        retry: spec.retry,
        attempts: Vec::new(),
        outcome: TaskOutcome::Live,
        reason: None,
        ended_ms: None,
    }
}

/// The session of a task, from the names of its lanes.
fn session_of(lanes: &[LaneName]) -> Option<String> {
    let key = lanes.iter().find_map(|lane| lane.as_str().strip_prefix("session:"))?;
    Some(key.split_once('/').map_or(key, |(key, _)| key).to_owned())
}

/// How the last attempt of a task with this outcome ended.
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
