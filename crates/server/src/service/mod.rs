//! The operations behind every transport: HTTP, WebSocket, MCP and schedules decode a request, call this layer and encode
//! its answer.

pub(crate) mod agent_queue;
pub(crate) mod ask_agent;
pub(crate) mod attempt_view;
pub(crate) mod change_agents;
pub(crate) mod change_lanes;
pub(crate) mod parse;
pub(crate) mod request_options;
pub(crate) mod send_message;
pub(crate) mod slots;
pub(crate) mod submission;
pub(crate) mod submit_task;
pub(crate) mod task_view;
pub(crate) mod tasks;
