//! Tasks: asking for them, looking at them, ending them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;
use crate::words::PriorityRequest;

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T: ToSchema> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// The retries after a failure.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// `none`, `fixed` or `exponential` (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The largest number of retries. Default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Exponential: the delay before the first retry, which doubles each time. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay_ms: Option<u64>,
    /// Fixed: the delay before each retry. Default 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_delay_ms: Option<u64>,
    /// The longest delay. Default 30 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay_ms: Option<u64>,
    /// Chooses each delay at random from its upper half. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
}

/// A task to submit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// The kind of the task, which decides its handler.
    #[schema(min_length = 1, max_length = 128)]
    pub kind: String,
    /// The lanes of the task, the home lane first. Default: `main`, or `external` if the server has no handler for the kind.
    #[serde(default)]
    pub lanes: Vec<String>,
    /// The input of the handler or worker.
    #[serde(default)]
    pub payload: Value,
    /// 0 to 9, or the name of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRequest>,
    /// The source of the task: `user`, `schedule`, `agent` or `background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The key for fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_key: Option<String>,
    /// The running task that submits this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The label of tasks that belong together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub group: Option<String>,
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
    /// The delay before the task may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_after_ms: Option<u64>,
    /// The retries after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryRequest>,
}

/// A task that was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedTask {
    /// The id.
    pub id: String,
    /// `running`, `queued`, or the end if the task has ended.
    pub status: String,
    /// The position in the home lane, counted from one.
    pub position: Option<u64>,
    /// The estimated time until the start.
    pub eta_ms: Option<u64>,
    /// How safely the task is stored: `memory`, `engine`, `disk` or `replicated`.
    pub durability: String,
    /// Whether an earlier request with the same key submitted the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// A task, live or ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// The id.
    pub id: String,
    /// `queued`, `running`, `retrying`, or the end.
    pub status: String,
    /// The kind.
    pub kind: String,
    /// The lanes, the home lane first.
    pub lanes: Vec<String>,
    /// The session of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The input of the handler or worker. The history keeps it if an attempt ended the task and it is no
    /// longer than 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The reason of a cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The source of the request.
    pub source: String,
    /// The priority without boosts.
    pub priority: u8,
    /// The priority with the boosts of waiting and of the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_priority: Option<u8>,
    /// The number of attempts that have started.
    pub attempts: u32,
    /// The newest attempts, in order. Lists leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_list: Vec<AttemptView>,
    /// The position in the home lane, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The position among the tasks that wait in the requested lane, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane_position: Option<u64>,
    /// The estimated time until the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_ms: Option<u64>,
    /// When the task was accepted.
    pub submitted_at: At,
    /// When the last attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// When the task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// When the lease lapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<At>,
    /// When the wait times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<At>,
    /// The latest start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<At>,
    /// The longest time of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The worker that has the task or had it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The label that the task shares with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The name of a slot, as its holder gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The task that submitted this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether the attempt has a stop signal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// The token that submitted the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The trace of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// One attempt at a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// The number, counted from one.
    pub number: u32,
    /// `running`, `failed` if another attempt followed, or the end of the task.
    pub outcome: String,
    /// When the attempt started, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// When the attempt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// The worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The error.
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

/// The result of a cancellation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelAnswer {
    /// The task.
    pub id: String,
    /// `cancelled_while_queued`, `cancelling`, or `already_<state>`.
    pub status: String,
}

/// Which waiting tasks to cancel: those that match all fields. At least one field must be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelManyRequest {
    /// Tasks that name this lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Turns of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Tasks of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Tasks with this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Tasks that this task submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Only counts the tasks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// Leaves out a flag that is not set.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// The number of cancelled tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelManyAnswer {
    /// The number of tasks; for a dry run, the number that would be cancelled.
    pub cancelled: u64,
}

/// Why a task waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainView {
    /// The task.
    pub id: String,
    /// `queued`, `running`, `retrying`.
    pub status: String,
    /// The position in the home lane, counted from one.
    pub position: Option<u64>,
    /// The estimated time until the start.
    pub eta_ms: Option<u64>,
    /// The blockers, the most certain first.
    pub blockers: Vec<BlockerView>,
}

/// One reason why a task waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct BlockerView {
    /// `not_yet`, `after`, `backing_off`, `paused`, `rate_limited`, `session_busy`, `lane_full`, `reserved`,
    /// `unclaimed`, `behind`.
    pub kind: String,
    /// The reason in one sentence.
    pub detail: String,
    /// The lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// The tasks that hold the slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
    /// The number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// The tasks with one label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupView {
    /// The number of tasks that have ended, failed ones included.
    pub done: u64,
    /// The number of tasks.
    pub total: u64,
    /// The number of tasks that ended without completing.
    pub failed: u64,
}
