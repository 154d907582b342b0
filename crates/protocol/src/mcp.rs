//! The tools of MCP: what they take, and what they answer where HTTP has no such answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agents::AcceptedExecution;
use crate::problem::Problem;

/// What `chat_with_agent` takes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatWithAgent {
    /// The agent to ask; `list_agents` names all.
    #[schema(min_length = 1)]
    pub agent_name: String,
    /// What to ask.
    #[schema(min_length = 1)]
    pub message: String,
    /// The conversation, whose turns run one after another. Default: the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100, nullable = false)]
    pub session: Option<String>,
    /// A stateless task that runs beside all others, and no turn of a conversation. Default: false.
    #[serde(default)]
    pub parallel: bool,
}

/// What tools take that are about a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OfTask {
    /// The task's id.
    pub task_id: String,
}

/// What tools take that are about an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OfAgent {
    /// The agent; `list_agents` names all.
    pub agent_name: String,
}

/// What tools take that are about everything.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OfAll {}

/// What `chat_with_agent` answers when the agent has not answered in time: the task goes on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StillGoing {
    /// `still_going`.
    pub status: String,
    /// The task, to ask `get_task` for.
    pub task_id: String,
    /// The agent that was asked.
    pub agent: String,
    /// How the task stands.
    pub execution: AcceptedExecution,
    /// What to do next.
    pub message: String,
}

/// What `chat_with_agent` answers when the agent's line is full.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentBusy {
    /// `agent_busy`.
    pub status: String,
    /// The agent that was asked.
    pub agent: String,
    /// `queue_full`.
    pub queue_status: String,
    /// When to come back.
    pub retry_after_seconds: u64,
    /// What to do next.
    pub message: String,
    /// The refusal as every transport tells it.
    pub details: Problem,
}
