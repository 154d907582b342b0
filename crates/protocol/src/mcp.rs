//! The arguments of MCP tools, and the answers that HTTP does not have.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::agents::AcceptedExecution;
use crate::problem::Problem;

/// The arguments of `chat_with_agent`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatWithAgent {
    /// The agent to ask; `list_agents` names all.
    #[schema(min_length = 1)]
    pub agent_name: String,
    /// The message to the agent.
    #[schema(min_length = 1)]
    pub message: String,
    /// The session, whose turns run one after another. Default: none, so only the lanes of the agent limit such turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100, nullable = false)]
    pub session: Option<String>,
    /// Runs a stateless task in parallel to all others instead of a turn of a session. Default: false.
    #[serde(default)]
    pub parallel: bool,
    /// The model. The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    /// The system prompt. The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub system_prompt: Option<String>,
    /// The tools that the agent may use. The server passes them on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub allowed_tools: Option<Vec<String>>,
    /// The longest time of one attempt, in seconds. The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 0.001)]
    pub timeout_seconds: Option<Number>,
    /// The server passes it on to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stream: Option<bool>,
}

/// The arguments of tools for one task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskArguments {
    /// The task's id.
    pub task_id: String,
}

/// The arguments of tools for one agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentArguments {
    /// The agent; `list_agents` names all.
    pub agent_name: String,
}

/// The arguments of tools without arguments.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// The answer of `chat_with_agent` if the agent takes long. The task continues.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StillGoing {
    /// `still_going`.
    pub status: String,
    /// The task, for `get_task`.
    pub task_id: String,
    /// The agent.
    pub agent: String,
    /// The state of the task.
    pub execution: AcceptedExecution,
    /// What to do next.
    pub message: String,
}

/// The answer of `chat_with_agent` if the agent's lane is full.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentBusy {
    /// `agent_busy`.
    pub status: String,
    /// The agent.
    pub agent: String,
    /// `queue_full`.
    pub queue_status: String,
    /// The time until the next try.
    pub retry_after_seconds: u64,
    /// What to do next.
    pub message: String,
    /// The refusal in the form of all transports.
    pub details: Problem,
}
