//! Workers: claiming, signs of life, completions; and dead letters.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;
use crate::turns::TurnMessageView;

/// A worker's request for tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// The name of the worker.
    #[schema(min_length = 1, max_length = 128)]
    pub worker: String,
    /// The home lanes: names or patterns. At least one, unless `ids` are set.
    #[serde(default)]
    pub lanes: Vec<String>,
    /// Only those of these tasks that may run now, regardless of the order. At most 1000; without
    /// `lanes`, `kinds` and `max`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub ids: Vec<String>,
    /// The kinds. Default: any.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// The largest number of tasks. Default 1, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max: Option<u32>,
    /// The longest wait for a task. Default 0, at most 60 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60_000)]
    pub wait_ms: Option<u64>,
    /// The lease without a heartbeat. Default: the setting of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub lease_ms: Option<u64>,
}

impl ClaimBody {
    /// One task of any kind from these home lanes, if there is one now.
    pub fn new(worker: impl Into<String>, lanes: Vec<String>) -> ClaimBody {
        ClaimBody { worker: worker.into(), lanes, ..ClaimBody::default() }
    }
}

/// The tasks that a worker claimed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimAnswer {
    /// The claimed tasks.
    pub tasks: Vec<ClaimedTask>,
}

/// A task that a worker holds until the lease lapses.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimedTask {
    /// The task.
    pub id: String,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its home lane.
    pub lane: String,
    /// The kind.
    pub kind: String,
    /// The payload.
    pub payload: Value,
    /// The number of the attempt, counted from one.
    pub attempt: u32,
    /// The fence, for every report of the worker.
    pub fence: u64,
    /// When the lease lapses without a heartbeat.
    pub lease_until: At,
    /// How long the attempt may take.
    pub timeout_ms: Option<u64>,
    /// The time that is left.
    pub remaining_ms: Option<u64>,
    /// The trace of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A heartbeat.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    /// The fence of the attempt.
    pub fence: u64,
    /// The progress, for clients that watch the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Value>,
    /// More of the text that the attempt produces, for clients that watch the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<String>,
    /// What the attempt has used so far, such as tokens, for clients that watch the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Whether the turn takes steering from now on. Only for turns of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_steering: Option<bool>,
    /// The ids of messages in `steering` that the attempt has taken, or an empty list. Other messages stay on offer, so that
    /// a lost answer loses nothing. Without this field all messages in the answer count as taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steered: Option<Vec<String>>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// When the lease lapses now.
    pub lease_until: At,
    /// Whether the worker must stop.
    pub cancel_requested: bool,
    /// The texts of steering messages since the last heartbeat. For a worker that sends `steered`, all that it has not taken.
    pub steer: Vec<String>,
    /// The same messages with their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<TurnMessageView>,
}

/// The end of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBody {
    /// The fence of the attempt.
    pub fence: u64,
    /// Whether the attempt succeeded.
    pub success: bool,
    /// The result. A failure may have one too, such as the output of a command that failed. The task keeps it with the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether a retry may help. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The ids of messages that the attempt has taken and not sent with a heartbeat. Messages that it never names wait for a
    /// turn of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<String>,
}

impl CompleteBody {
    /// A success without a result.
    pub fn success(fence: u64) -> CompleteBody {
        CompleteBody { fence, success: true, result: None, error: None, retryable: None, steered: Vec::new() }
    }
}

/// A task that waits for a worker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExternalTask {
    /// The task.
    pub id: String,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its home lane.
    pub lane: String,
    /// The kind.
    pub kind: String,
    /// The payload.
    pub payload: Value,
    /// The longest time of one attempt.
    pub timeout_ms: Option<u64>,
    /// The time until the wait times out.
    pub remaining_ms: Option<u64>,
    /// The number of the next attempt, counted from one.
    pub attempt: u32,
}

/// A worker that holds tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    /// The id of the person.
    pub worker: String,
    /// The tasks of the worker.
    pub tasks: Vec<String>,
    /// When its first lease lapses.
    pub lease_until: At,
    /// The last heartbeat.
    pub last_heartbeat: At,
    /// The leases, one for each task.
    pub leases: Vec<LeaseView>,
}

/// The lease of a worker on one task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseView {
    /// The task.
    pub task: String,
    /// The kind.
    pub kind: String,
    /// When the worker claimed the task.
    pub started_at: At,
    /// The last heartbeat for this task.
    pub last_heartbeat: At,
    /// When the lease lapses.
    pub lease_until: At,
}

/// A dead letter: a task that failed for good.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterView {
    /// The task.
    pub id: String,
    /// Its home lane.
    pub lane: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The kind.
    pub kind: String,
    /// The payload.
    pub payload: Value,
    /// The last error.
    pub error: String,
    /// What the last attempt produced all the same, while the history has the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The number of attempts.
    pub attempts: u32,
    /// When the task failed for good.
    pub at: At,
}

/// Which dead letters: those that match all fields. At least one field must be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LettersSelector {
    /// Tasks with this home lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Tasks of this session, also of its tool lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Tasks of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only counts the dead letters.
    #[serde(default, skip_serializing_if = "crate::tasks::is_false")]
    pub dry_run: bool,
}

/// The result for dead letters.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RedriveAnswer {
    /// The number.
    pub count: u64,
    /// The new tasks of a redrive.
    pub tasks: Vec<String>,
}
