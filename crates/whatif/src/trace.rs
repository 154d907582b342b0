//! A trace: when work arrived, what it asked for, how long it ran. No payload, no text.
//!
//! One JSON object on each line. The first is the [`Header`], each further one an [`Arrival`].

use std::collections::BTreeMap;

use laneway_core::{LaneName, Millis, Name, Retry, RetryStrategy, Source};
use laneway_protocol::At;
use serde::{Deserialize, Serialize};

/// The newest format of traces.
pub const TRACE_FORMAT: u32 = 1;

/// A whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What it covers.
    pub header: Header,
    /// What arrived, in that order.
    pub arrivals: Vec<Arrival>,
}

/// What a trace covers, and what it cannot tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The format: [`TRACE_FORMAT`].
    pub laneway_trace: u32,
    /// The store that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The first arrival.
    pub from: At,
    /// The last thing that is known to have happened.
    pub to: At,
    /// How many arrivals follow, so that a file that was cut off is noticed.
    pub arrivals: u64,
    /// Where they come from.
    #[serde(default)]
    pub sources: Sources,
    /// Whether names were replaced.
    #[serde(default)]
    pub anonymous: bool,
    /// How many slots the lanes had at the end; sessions are left out.
    #[serde(default)]
    pub limits: BTreeMap<LaneName, u32>,
    /// What the trace lacks, in sentences.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Where the arrivals of a trace come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// The log, which has the whole request.
    pub log: u64,
    /// The history of finished work.
    pub history: u64,
    /// The state: accepted before the log begins, and still live.
    pub live: u64,
}

/// One submitted task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// Its number in this trace.
    pub id: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its kind.
    pub kind: Name,
    /// The lanes that it named, the home lane first.
    pub lanes: Vec<LaneName>,
    /// Its session, from the names of its lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its source.
    #[serde(default, with = "SourceText")]
    pub source: Source,
    /// Its priority, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Its fair key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_key: Option<LaneName>,
    /// The running task that submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentOf>,
    /// It may start only when this one has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// How long it may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout_ms: Option<u64>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When it is too late to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How long it must wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_after_ms: Option<u64>,
    /// What follows a failure, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "retry_text")]
    pub retry: Option<Retry>,
    /// Its attempts, in order.
    #[serde(default)]
    pub attempts: Vec<RecordedAttempt>,
    /// How it ended.
    pub outcome: TaskOutcome,
    /// Why it was cancelled, or the code with which it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ended, counted from its arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

/// The task that submitted another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentOf {
    /// Its number in this trace.
    pub id: u64,
    /// It did not wait for the result.
    #[serde(default)]
    pub detached: bool,
}

/// One attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAttempt {
    /// When it started, counted from the arrival.
    pub start_ms: u64,
    /// How long it ran.
    pub run_ms: u64,
    /// How it ended.
    pub end: AttemptEnd,
    /// How long it went on after it was asked to stop, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ms: Option<u64>,
    /// Which of its lanes (by place; `global` last) it borrowed a parent's slot of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub borrowed: Vec<u8>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// Its lease lapsed.
    Lost,
    /// It was stopped because it took too long: how long it would have taken is not known.
    TimedOut,
    /// It was stopped, or still ran when the trace ends: how long it would have taken is not known.
    Cut,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// An attempt succeeded.
    Completed,
    /// The last attempt failed.
    Failed,
    /// The last attempt took too long.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// Its deadline passed while it waited.
    Expired,
    /// It waited for too long.
    WaitTimeout,
    /// Its lease lapsed, and it was not run again.
    Lost,
    /// It was not accepted. A store does not keep that; a trace from elsewhere may.
    Refused,
    /// It was not over when the trace ends.
    Live,
}

/// A source as a trace writes it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Source", rename_all = "snake_case")]
enum SourceText {
    User,
    Schedule,
    Agent,
    Background,
}

/// A retry strategy as a trace writes it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "RetryStrategy", rename_all = "snake_case")]
enum StrategyText {
    None,
    Fixed,
    Exponential,
}

/// A retry policy as a trace writes it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Retry", deny_unknown_fields)]
struct RetryText {
    #[serde(with = "StrategyText")]
    strategy: RetryStrategy,
    max_retries: u32,
    #[serde(rename = "initial_delay_ms")]
    initial_delay: Millis,
    #[serde(rename = "fixed_delay_ms")]
    fixed_delay: Millis,
    #[serde(rename = "max_delay_ms")]
    max_delay: Millis,
    jitter: bool,
}

/// The same where there may be none.
mod retry_text {
    use laneway_core::Retry;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Text(#[serde(with = "super::RetryText")] Retry);

    pub(super) fn serialize<S: Serializer>(retry: &Option<Retry>, serializer: S) -> Result<S::Ok, S::Error> {
        retry.map(Text).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Retry>, D::Error> {
        Ok(Option::<Text>::deserialize(deserializer)?.map(|text| text.0))
    }
}

impl Trace {
    /// The trace as a file holds it.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string(&self.header)?;
        for arrival in &self.arrivals {
            text.push('\n');
            text.push_str(&serde_json::to_string(arrival)?);
        }
        text.push('\n');
        Ok(text)
    }
}

impl Arrival {
    /// When an attempt started and ended, in milliseconds since 1970.
    pub(crate) fn span(&self, attempt: &RecordedAttempt) -> (u64, u64) {
        let start = self.at_ms.saturating_add(attempt.start_ms);
        (start, start.saturating_add(attempt.run_ms))
    }

    /// When it ended, in milliseconds since 1970.
    pub(crate) fn ended(&self) -> Option<u64> {
        self.ended_ms.map(|ended| self.at_ms.saturating_add(ended))
    }
}

impl TaskOutcome {
    /// All of them, in the order of the report.
    pub const ALL: [TaskOutcome; 9] = [
        TaskOutcome::Completed,
        TaskOutcome::Failed,
        TaskOutcome::TimedOut,
        TaskOutcome::Cancelled,
        TaskOutcome::Expired,
        TaskOutcome::WaitTimeout,
        TaskOutcome::Lost,
        TaskOutcome::Refused,
        TaskOutcome::Live,
    ];

    /// The word in reports and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskOutcome::Completed => "completed",
            TaskOutcome::Failed => "failed",
            TaskOutcome::TimedOut => "timed_out",
            TaskOutcome::Cancelled => "cancelled",
            TaskOutcome::Expired => "expired",
            TaskOutcome::WaitTimeout => "wait_timeout",
            TaskOutcome::Lost => "lost",
            TaskOutcome::Refused => "refused",
            TaskOutcome::Live => "live",
        }
    }
}
