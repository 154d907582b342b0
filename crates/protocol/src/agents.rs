//! Requests to agents, and the queues of agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use crate::time::At;
use crate::words::PriorityRequest;

/// A person on whose behalf a token sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRef {
    /// The id of the person.
    #[schema(min_length = 1, max_length = 128)]
    pub id: String,
    /// The email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 320)]
    pub email: Option<String>,
}

/// A request to an agent: a turn of a session, or a stateless task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatRequest {
    /// The message to the agent.
    #[schema(min_length = 1)]
    pub message: String,
    /// The session, whose turns run one after another. Default: none, so only the lanes of the agent limit such turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// 0 to 9, or `user`, `schedule`, `agent`, `background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRequest>,
    /// The longest time in the queue. With 0 the task starts at once or is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout_ms: Option<u64>,
    /// The longest time of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub timeout_ms: Option<u64>,
    /// The latest start, counted from acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub deadline_ms: Option<u64>,
    /// The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// The longest time of one attempt, in seconds, unless `timeout_ms` gives it. The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0.001)]
    pub timeout_seconds: Option<Number>,
    /// The server passes it on to the agent. The header `Accept` decides whether the server streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The person on whose behalf the token sends the request. The token must be allowed to speak for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef>,
}

/// The answer to a request that waited for the end of its turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChatAnswer {
    /// The agent's answer: its text, if the agent answered with more fields.
    pub response: Value,
    /// The course of the turn.
    pub execution: ExecutionSummary,
    /// The further fields of the agent's answer, such as `metadata` and `session_id`.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

impl ChatAnswer {
    /// The answer to a turn with this result. Of an object with the field `response`, that is the text; the other fields are
    /// passed on.
    pub fn new(result: Value, execution: ExecutionSummary) -> ChatAnswer {
        let mut more = match result {
            Value::Object(fields) if fields.contains_key("response") => fields,
            response => return ChatAnswer { response, execution, more: BTreeMap::new() },
        };
        let response = more.remove("response").unwrap_or_default();
        // The field of that name says how Laneway ran the turn.
        more.remove("execution");
        ChatAnswer { response, execution, more: more.into_iter().collect() }
    }
}

/// The course of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExecutionSummary {
    /// The task.
    pub id: String,
    /// The state at acceptance: `running` or `queued:N`.
    pub queue_status: String,
    /// Whether the task waited.
    pub was_queued: bool,
    /// The time from acceptance to the start of the last attempt.
    pub wait_ms: u64,
    /// The duration of the last attempt.
    pub run_ms: u64,
    /// The number of the last attempt.
    pub attempt: u32,
}

/// A turn that was accepted, for a caller that does not wait.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedTurn {
    /// The task.
    pub execution: AcceptedExecution,
    /// How safely the task is stored: `memory`, `engine`, `disk` or `replicated`.
    pub durability: String,
}

/// The state of a turn at acceptance.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedExecution {
    /// The task.
    pub id: String,
    /// `running`, `queued`, or the end if the task has ended.
    pub status: String,
    /// The position in the home lane, counted from one.
    pub position: Option<u64>,
    /// The estimated time until the start.
    pub eta_ms: Option<u64>,
}

/// An agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// What answers its turns: `command`, `url`, `external` or `echo`.
    pub runner: String,
    /// Where it comes from: `file` or `api`.
    #[serde(default)]
    pub origin: String,
    /// The lane of its turns.
    pub lane: String,
    /// The lane of its stateless tasks.
    pub task_lane: String,
    /// Further lanes that its turns need.
    pub lanes: Vec<String>,
    /// Whether a turn runs.
    pub is_busy: bool,
    /// The number of running turns.
    pub running: u32,
    /// The number of waiting tasks.
    pub waiting: u32,
    /// The largest number of tasks that run at once.
    pub max_concurrency: Option<u32>,
    /// The largest number of waiting tasks.
    pub max_queued: u32,
}

/// The queue of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// The agent.
    pub agent_name: String,
    /// Whether a turn runs.
    pub is_busy: bool,
    /// The longest-running turn.
    pub current_execution: Option<Execution>,
    /// All running turns, the longest-running first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running_executions: Vec<Execution>,
    /// The number of waiting tasks.
    pub queue_length: u64,
    /// The waiting turns, in order.
    pub queued_executions: Vec<Execution>,
}

/// A turn in an agent's queue.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// The task.
    pub id: String,
    /// The agent.
    #[serde(default)]
    pub agent_name: String,
    /// The source of the task: `user`, `schedule`, `agent` or `background`.
    pub source: String,
    /// The agent that sent the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_agent: Option<String>,
    /// The source of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_user_id: Option<String>,
    /// The email address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_user_email: Option<String>,
    /// The message.
    pub message: String,
    /// When the task was accepted.
    pub queued_at: At,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// `queued`, `running` or `retrying`.
    pub status: String,
    /// The priority without boosts.
    pub priority: u8,
    /// The priority with the boosts of waiting and of the deadline.
    pub effective_priority: u8,
    /// The position in the home lane, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// The result of clearing an agent's queue.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClearedQueue {
    /// `cleared`.
    pub status: String,
    /// The agent.
    pub agent: String,
    /// The number of cancelled tasks.
    pub cleared_count: u64,
}

/// The result of releasing an agent by force.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedQueue {
    /// `released`.
    pub status: String,
    /// The agent.
    pub agent: String,
    /// Whether a task was running.
    pub was_running: bool,
    /// The tasks that lost their slots.
    pub released: Vec<String>,
    /// A warning that the old attempts may still run.
    pub warning: String,
}

/// The result of releasing a lane by force.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReleasedLane {
    /// The lane.
    pub lane: String,
    /// Whether a task was running.
    pub was_running: bool,
    /// The tasks that lost their slots.
    pub released: Vec<String>,
    /// A warning that the old attempts may still run.
    pub warning: String,
}
