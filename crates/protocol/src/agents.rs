//! Asking an agent, and how its line stands.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;
use crate::words::PriorityRequest;

/// Somebody for whom a token speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRef {
    /// Who.
    #[schema(min_length = 1, max_length = 128)]
    pub id: String,
    /// Their address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 320)]
    pub email: Option<String>,
}

/// One turn of a conversation, or one stateless task, to ask of an agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// What is asked.
    #[schema(min_length = 1)]
    pub message: String,
    /// The conversation. Default: the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// 0 to 9, or `user`, `schedule`, `agent`, `background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRequest>,
    /// How long it may wait; 0: it starts now or is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout_ms: Option<u64>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub timeout_ms: Option<u64>,
    /// When it is too late to start, counted from acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub deadline_ms: Option<u64>,
    /// Passed on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Passed on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// For whom a token speaks that may speak for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef>,
}

/// What became of a turn that was waited for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatAnswer {
    /// What the agent answered.
    pub response: Value,
    /// How it went.
    pub execution: ExecutionSummary,
}

/// How a turn went.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecutionSummary {
    /// The task.
    pub id: String,
    /// How it stood when it was accepted: `running` or `queued:N`.
    pub queue_status: String,
    /// Whether it had to wait.
    pub was_queued: bool,
    /// From acceptance to the start of the last attempt.
    pub wait_ms: u64,
    /// How long the last attempt took.
    pub run_ms: u64,
    /// Which attempt that was.
    pub attempt: u32,
}

/// A turn that was accepted and is not waited for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedTurn {
    /// The task.
    pub execution: AcceptedExecution,
    /// What has become of it: `memory`, `engine`, `disk` or `replicated`.
    pub durability: String,
}

/// How a turn stood when it was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedExecution {
    /// The task.
    pub id: String,
    /// `running`, `queued`, or how it ended already.
    pub status: String,
    /// Its place in line, counted from one.
    pub position: Option<u64>,
    /// When it will probably start.
    pub eta_ms: Option<u64>,
}

/// An agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// What runs its turns: `command`, `url`, `external` or `echo`.
    pub runner: String,
    /// The lane of its turns.
    pub lane: String,
    /// The lane of its stateless tasks.
    pub task_lane: String,
    /// Further lanes that its turns need.
    pub lanes: Vec<String>,
    /// Whether a turn runs.
    pub is_busy: bool,
    /// How many turns run.
    pub running: u32,
    /// How many wait.
    pub waiting: u32,
    /// How many may run at once.
    pub max_concurrency: Option<u32>,
    /// How many may wait.
    pub max_queued: u32,
}

/// How the line of an agent stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// The agent.
    pub agent_name: String,
    /// Whether a turn runs.
    pub is_busy: bool,
    /// The turn that has run for longest.
    pub current_execution: Option<Execution>,
    /// All that run, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running_executions: Vec<Execution>,
    /// How many wait.
    pub queue_length: u64,
    /// Those that wait, in order.
    pub queued_executions: Vec<Execution>,
}

/// One turn in an agent's line.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// The task.
    pub id: String,
    /// Who asked: `user`, `schedule`, `agent`, `background`.
    pub source: String,
    /// Which agent asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_agent: Option<String>,
    /// Who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_user_id: Option<String>,
    /// Their address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_user_email: Option<String>,
    /// What was asked.
    pub message: String,
    /// When it was accepted.
    pub queued_at: At,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// `queued`, `running` or `retrying`.
    pub status: String,
    /// Its own priority.
    pub priority: u8,
    /// With what waiting and its deadline have added.
    pub effective_priority: u8,
    /// Its place in line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// What clearing an agent's line did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClearedQueue {
    /// `cleared`.
    pub status: String,
    /// The agent.
    pub agent: String,
    /// How many had waited.
    pub cleared_count: u64,
}

/// What releasing an agent by force did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedQueue {
    /// `released`.
    pub status: String,
    /// The agent.
    pub agent: String,
    /// Whether something ran.
    pub was_running: bool,
    /// The tasks that lost their slots.
    pub released: Vec<String>,
    /// That the old runs may still be going.
    pub warning: String,
}
