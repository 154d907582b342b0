//! Tasks: asking for them, looking at them, ending them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::time::At;
use crate::words::PriorityRequest;

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T: ToSchema> {
    /// What is on it.
    pub items: Vec<T>,
    /// Ask again with this for the next page; `null`: there is none.
    pub next_cursor: Option<String>,
}

/// What follows a failure.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// `none`, `fixed` or `exponential` (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// How many attempts may follow the first. Default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Exponential: before the first retry; it doubles each time. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay_ms: Option<u64>,
    /// Fixed: before each retry. Default 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_delay_ms: Option<u64>,
    /// No delay is longer. Default 30 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay_ms: Option<u64>,
    /// Spreads each delay over its upper half. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
}

/// A task to ask for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// What sort of work it is: decides who runs it.
    #[schema(min_length = 1, max_length = 128)]
    pub kind: String,
    /// The lanes it needs; the first is its home lane. None: `main`, or `external` for a kind that nothing here runs.
    #[serde(default)]
    pub lanes: Vec<String>,
    /// What whoever runs it gets.
    #[serde(default)]
    pub payload: Value,
    /// 0 to 9, or the name of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRequest>,
    /// Who asked: `user`, `schedule`, `agent`, `background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// With whom it shares turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_key: Option<String>,
    /// The running task that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// A label that tasks which belong together share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub group: Option<String>,
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
    /// How long it must wait before it may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_after_ms: Option<u64>,
    /// What follows a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryRequest>,
}

/// A task that was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedTask {
    /// Its id.
    pub id: String,
    /// `running`, `queued`, or how it ended already.
    pub status: String,
    /// Its place in line, counted from one.
    pub position: Option<u64>,
    /// When it will probably start.
    pub eta_ms: Option<u64>,
    /// What has become of it: `memory`, `engine`, `disk` or `replicated`.
    pub durability: String,
    /// An earlier request under the same key had brought it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// A task, live or over.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Its id.
    pub id: String,
    /// `queued`, `running`, `retrying`, or how it ended.
    pub status: String,
    /// What sort of work it is.
    pub kind: String,
    /// The lanes that it named, the home lane first.
    pub lanes: Vec<String>,
    /// The conversation that it is a turn of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What whoever runs it gets: while it is live, and as long as it is remembered once an attempt has ended it, if it is no
    /// longer than 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// What it produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it produced nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked.
    pub source: String,
    /// Its own priority.
    pub priority: u8,
    /// With what waiting and its deadline have added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_priority: Option<u8>,
    /// How many attempts have started.
    pub attempts: u32,
    /// The newest of them, the last one included, in order. Lists leave it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_list: Vec<AttemptView>,
    /// Its place in line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Its place among all that wait in the lane that was asked for, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane_position: Option<u64>,
    /// When it will probably start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_ms: Option<u64>,
    /// When it was accepted.
    pub submitted_at: At,
    /// When its last attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// When its lease lapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<At>,
    /// When it has waited too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<At>,
    /// When it is too late to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<At>,
    /// How long an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Which worker has it, or had it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The task that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether it was told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Whose token asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The trace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// One attempt at a task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// Which one, counted from one.
    pub number: u32,
    /// `running`, `failed` when another followed it, or how it ended the task.
    pub outcome: String,
    /// When it started, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// The worker that had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A change of a waiting task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskChange {
    /// 0 to 9, or the name of a source.
    pub priority: PriorityRequest,
}

/// What a cancellation found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelAnswer {
    /// The task.
    pub id: String,
    /// `cancelled_while_queued`, `cancelling`, or `already_<state>`.
    pub status: String,
}

/// Which waiting tasks to cancel: those that fit everything that is given; at least one thing must be.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelManyRequest {
    /// They name this lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// They are turns of this conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// They are of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// They carry this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// This task asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Only counts them: nothing is cancelled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// A flag that is not set is not sent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// How many tasks were cancelled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelManyAnswer {
    /// So many; of a dry run, so many would be.
    pub cancelled: u64,
}

/// Why a task waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainView {
    /// The task.
    pub id: String,
    /// `queued`, `running`, `retrying`.
    pub status: String,
    /// Its place in line, counted from one.
    pub position: Option<u64>,
    /// When it will probably start.
    pub eta_ms: Option<u64>,
    /// What holds it up, the most certain first.
    pub blockers: Vec<BlockerView>,
}

/// One thing that holds a task up.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BlockerView {
    /// `not_yet`, `after`, `backing_off`, `paused`, `rate_limited`, `session_busy`, `lane_full`, `reserved`,
    /// `unclaimed`, `behind`.
    pub kind: String,
    /// In one sentence.
    pub detail: String,
    /// The lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// The tasks in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// How tasks with one label stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupView {
    /// How many have ended, failed ones counted.
    pub done: u64,
    /// How many there are.
    pub total: u64,
    /// How many ended otherwise than completed.
    pub failed: u64,
}

/// The tool calls of one model turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The conversation.
    #[schema(min_length = 1, max_length = 100)]
    pub session: String,
    /// The calls, in the order in which the model made them.
    #[schema(min_items = 1)]
    pub calls: Vec<BatchCall>,
    /// The label of all calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchCall {
    /// The tool.
    #[schema(min_length = 1, max_length = 128)]
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub payload: Value,
}

/// What came of the calls, in their order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// One for each call.
    pub results: Vec<BatchResult>,
}

/// What came of one call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The tool.
    pub tool: String,
    /// Whether it was done.
    pub success: bool,
    /// What it produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it produced nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// A slot of each of some lanes, for work of the caller's own.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotRequest {
    /// The lanes; the first is the home lane.
    #[schema(min_items = 1)]
    pub lanes: Vec<String>,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// How long to wait; 0: now or never. Default: as the home lane says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// How long without a sign of life. Default: as the home lane says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub lease_ms: Option<u64>,
    /// 0 to 9, or the name of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRequest>,
}

/// A slot that is the caller's until its lease lapses.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SlotAnswer {
    /// The task that holds it: for its heartbeat and its completion.
    pub id: String,
    /// To be shown with them.
    pub fence: u64,
    /// When it lapses without a sign of life.
    pub lease_until: At,
}
