//! What clients of Laneway see: bodies of requests and answers, codes of refusals, names of events.
//!
//! Names and shapes here are a contract: fields may be added, and none is renamed or removed. The types are not those of the
//! scheduler, so that either can change without the other.
//!
//! | question | file |
//! |---|---|
//! | codes and refusals | `code.rs`, `problem.rs` |
//! | asking an agent, and what the agent gets | `agents.rs`, `turns.rs` |
//! | tasks, groups, tool batches, slots | `tasks.rs`, `tool_batches.rs`, `slots.rs` |
//! | workers | `workers.rs` |
//! | lanes, status, charts, configuration | `lanes.rs` |
//! | sessions and their messages | `sessions.rs` |
//! | schedules, tokens, audit | `operations.rs` |
//! | events, and how to read them from an SSE stream | `events.rs`, `event_data.rs`, `sse.rs` |
//! | the tools of MCP | `mcp.rs` |
//! | times and words on the wire | `time.rs`, `words.rs` |

mod agents;
mod code;
mod event_data;
mod events;
mod lanes;
mod mcp;
mod operations;
mod problem;
mod sessions;
mod slots;
mod sse;
mod tasks;
mod time;
mod tool_batches;
mod turns;
mod words;
mod workers;

pub use agents::{
    AcceptedExecution, AcceptedTurn, AgentView, ChatAnswer, ChatRequest, ClearedQueue, Execution,
    ExecutionSummary, QueueView, ReleasedLane, ReleasedQueue, UserRef,
};
pub use code::Code;
pub use event_data::*;
pub use events::{ClientEvent, EventFrame, EventName, FrameAnswer};
pub use lanes::{
    ConfigValue, ConfigView, Health, HistoryPoint, HistoryPoints, LaneCounters, LaneNumbers, Percentiles,
    Readiness, StatusView,
};
pub use laneway_core::Backoff;
pub use mcp::{AgentArguments, AgentBusy, ChatWithAgent, NoArguments, StillGoing, TaskArguments};
pub use operations::{
    AuditEntry, CreatedToken, Me, NewSchedule, NewToken, ScheduleChange, ScheduleRun, ScheduleView, Scope,
    TokenView,
};
pub use problem::Problem;
pub use sessions::{
    CurrentTurn, MessageAnswer, MessageRequest, MessageView, MoveRequest, Receipt, SessionChange,
    SessionSetting, SessionSettings, SessionStats, SessionSummary, SteerRequest, ThreadId, ToolLaneStats,
};
pub use slots::{SlotAnswer, SlotRequest};
pub use sse::{EventTooLong, SseEvent, SseReader};
pub use tasks::{
    AcceptedTask, AttemptView, BlockerView, CancelAnswer, CancelManyAnswer, CancelManyRequest, ExplainView,
    GroupView, Page, RetryRequest, TaskChange, TaskRequest, TaskView,
};
pub use time::{At, NotAMoment};
pub use tool_batches::{BatchAnswer, BatchCall, BatchRequest, BatchResult};
pub use turns::{TurnMessageView, TurnPayloadView};
pub use words::{
    PriorityRequest, cancel_reason, end_word, handler_word, source_from, source_word, status_word,
};
pub use workers::{
    ClaimAnswer, ClaimBody, ClaimedTask, CompleteBody, DeadLetterView, ExternalTask, HeartbeatAnswer,
    HeartbeatBody, LeaseView, LettersSelector, RedriveAnswer, WorkerView,
};
