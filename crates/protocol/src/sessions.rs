//! Sessions and their messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;

/// A message to a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageRequest {
    /// Who answers.
    pub agent: String,
    /// What is said.
    #[schema(min_length = 1)]
    pub text: String,
    /// The channel's own id of the message: the same one twice is one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Where the answer goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// By which account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// In which thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Who said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// As people know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// What the sender may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// What happens if the session is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long it must have been quiet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce_ms: Option<u64>,
    /// How many messages may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Which go when there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// After how long the turn starts although it is not quiet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// It is worth nothing later: dropped when the session is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<bool>,
    /// The turn that it means to steer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// What becomes of it if that turn is over or takes no steering: `followup` (the default), `reject` or `drop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
}

/// Something to say to a running turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SteerRequest {
    /// What.
    #[schema(min_length = 1)]
    pub text: String,
}

/// What became of a message when it was sent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageAnswer {
    /// The message; of a `duplicate`, the one that was taken.
    pub id: String,
    /// `started`, `queued`, `steered`, `steered_and_queued`, `interrupted`, `dropped`, `duplicate` or `directive`.
    pub outcome: String,
    /// The turn that it started, was put into, or interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Its place in the session's line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Whether the sender should see typing.
    pub typing: bool,
    /// What a directive answers; of a `duplicate`, what was answered then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
}

/// A message that waits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageView {
    /// Its id.
    pub id: String,
    /// What is said.
    pub text: String,
    /// When it was accepted.
    pub at: At,
    /// Who answers.
    pub agent: String,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The name to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// Why it was set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionSummary {
    /// The conversation's key.
    pub key: String,
    /// Whether a turn was accepted and has not ended.
    pub is_busy: bool,
    /// Whether the people in it should see typing.
    pub typing: bool,
    /// How messages are queued, each value with where it came from.
    pub settings: BTreeMap<String, Value>,
    /// The turn that is under way: `task_id`, the ids of its `messages`, of those `pending` for it and those `steered` into
    /// it, whether it `takes_steering`, and what was `said` in all of these.
    pub current_turn: Option<Value>,
    /// The messages that wait, in order.
    pub messages: Vec<MessageView>,
    /// How many messages were dropped that the next turn will tell of.
    pub dropped: u64,
    /// Nothing is tried again before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<At>,
    /// The messages that were set aside, the oldest first: they can be sent again or thrown away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<MessageView>,
}

/// How the tool lanes of a session stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionStats {
    /// How many calls wait.
    pub total_pending: u32,
    /// How many run.
    pub total_active: u32,
    /// How many of those that wait, wait for a worker.
    pub external_pending: u32,
    /// By tool lane.
    pub lanes: BTreeMap<String, ToolLaneStats>,
    /// How its messages are queued, each value with where it comes from; also of a session of which nothing is remembered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
}

/// How one tool lane of a session stands; the counts are those of all sessions under the same settings.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolLaneStats {
    /// How many calls wait.
    pub pending: u32,
    /// How many run.
    pub active: u32,
    /// How many ended well.
    pub completed: u64,
    /// How many did not.
    pub failed: u64,
    /// How many may run at once.
    pub max_concurrency: Option<u32>,
    /// `internal`, `external` or `hybrid`.
    pub handler_mode: String,
}

/// How messages of one session are queued; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// What happens to messages while it is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long it must have been quiet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce_ms: Option<u64>,
    /// After how long a turn starts although it is not quiet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// How many messages may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Which go when there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
}

/// What became of a message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The message.
    pub id: String,
    /// `waiting`, `steering`, `in_turn`, `delivered`, `steered`, `dropped`, `cancelled` or `set_aside`.
    pub status: String,
    /// Whether that is its end, which never changes. One that was `steered` has not ended before its turn has.
    pub ended: bool,
    /// In which turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// By which rule, for which reason, with which error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Its place in line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

/// Another place in line for a message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// Before which message; `null`: to the end.
    #[serde(default)]
    pub before: Option<String>,
}
