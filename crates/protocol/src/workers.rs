//! Workers: claiming, signs of life, completions; and dead letters.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;

/// What a worker asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// Who asks.
    #[schema(min_length = 1, max_length = 128)]
    pub worker: String,
    /// From which home lanes: names or patterns. At least one, unless `ids` are given.
    #[serde(default)]
    pub lanes: Vec<String>,
    /// These tasks and no others, whoever stands before them: those of them that may run now. At most 1000; without
    /// `lanes`, `kinds` and `max`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub ids: Vec<String>,
    /// Of which kinds. Default: any.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// At most so many. Default 1, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max: Option<u32>,
    /// How long to wait for work. Default 0, at most 60 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60_000)]
    pub wait_ms: Option<u64>,
    /// For how long without a sign of life. Default: as the lane says.
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

/// What a worker got.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimAnswer {
    /// The tasks that are the worker's now.
    pub tasks: Vec<ClaimedTask>,
}

/// A task that is a worker's until its lease lapses.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClaimedTask {
    /// Which task.
    pub id: String,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its home lane.
    pub lane: String,
    /// What sort of work it is.
    pub kind: String,
    /// What to do.
    pub payload: Value,
    /// Which attempt, counted from one.
    pub attempt: u32,
    /// To be shown with everything that the worker reports.
    pub fence: u64,
    /// When it lapses without a sign of life.
    pub lease_until: At,
    /// How long the attempt may take.
    pub timeout_ms: Option<u64>,
    /// How much of that is left.
    pub remaining_ms: Option<u64>,
    /// The trace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A sign of life.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    /// Which attempt.
    pub fence: u64,
    /// How far it is; told to whoever watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Value>,
    /// Whether the turn takes steering from now on; without it nothing is handed over. Only of turns of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_steering: Option<bool>,
    /// The ids of messages in `steering` that the run has taken, or an empty list: what is not named stays on offer, so that
    /// a lost answer loses nothing. Without it what is handed over counts as taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steered: Option<Vec<String>>,
}

/// What a sign of life is answered with.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// When the lease lapses now.
    pub lease_until: At,
    /// Whether to stop.
    pub cancel_requested: bool,
    /// What was said to the run since the last sign of life; to one that names what it has `steered`, all that it has not.
    pub steer: Vec<String>,
    /// The same with the messages' ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<SteeringView>,
}

/// Something that was said to a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SteeringView {
    /// The message, to be named when the run has taken it.
    pub id: String,
    /// What was said.
    pub text: String,
    /// Who said it, as people know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
}

/// How an attempt went.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBody {
    /// Which attempt.
    pub fence: u64,
    /// Whether it succeeded.
    pub success: bool,
    /// What it produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether another attempt could help. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The ids of messages that the run has taken and not named in a sign of life; those that it never named wait for a
    /// turn of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<String>,
}

impl CompleteBody {
    /// A success of which nothing else is said.
    pub fn success(fence: u64) -> CompleteBody {
        CompleteBody { fence, success: true, result: None, error: None, retryable: None, steered: Vec::new() }
    }
}

/// A task that waits for a worker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExternalTask {
    /// Which task.
    pub id: String,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its home lane.
    pub lane: String,
    /// What sort of work it is.
    pub kind: String,
    /// What to do.
    pub payload: Value,
    /// How long an attempt may take.
    pub timeout_ms: Option<u64>,
    /// How long it may still wait.
    pub remaining_ms: Option<u64>,
    /// Which attempt comes next, counted from one.
    pub attempt: u32,
}

/// A worker that has work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    /// Who.
    pub worker: String,
    /// What it has.
    pub tasks: Vec<String>,
    /// When the first of its leases lapses.
    pub lease_until: At,
    /// When it was last heard of.
    pub last_heartbeat: At,
    /// Its leases, one for each task.
    pub leases: Vec<LeaseView>,
}

/// What a worker has of one task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseView {
    /// Which task.
    pub task: String,
    /// What sort of work it is.
    pub kind: String,
    /// Since when the worker has it.
    pub started_at: At,
    /// When the worker last said that it is at it.
    pub last_heartbeat: At,
    /// When the lease lapses.
    pub lease_until: At,
}

/// A task that could not be done.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterView {
    /// The task.
    pub id: String,
    /// Its home lane.
    pub lane: String,
    /// What sort of work it was.
    pub kind: String,
    /// What was to be done.
    pub payload: Value,
    /// What went wrong last.
    pub error: String,
    /// How many attempts there were.
    pub attempts: u32,
    /// When it died.
    pub at: At,
}

/// Which dead letters are meant: those that fit everything that is given; at least one thing must be.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LettersSelector {
    /// Of tasks with this home lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only counts them: nothing becomes of them.
    #[serde(default, skip_serializing_if = "crate::tasks::is_false")]
    pub dry_run: bool,
}

/// What became of dead letters.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RedriveAnswer {
    /// How many.
    pub count: u64,
    /// The new tasks, where some were made.
    pub tasks: Vec<String>,
}
