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
    /// The agent that answers.
    pub agent: String,
    /// The text. A message with attachments needs none.
    #[serde(default)]
    pub text: String,
    /// The channel's own id of the message. The server accepts each id once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The channel that the message came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The recipient of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The account on the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The thread on the channel. A number is the same as its digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// JSON that the server passes on to the agent with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// What the message has attached, as JSON that the server passes on to the agent. The text, the metadata and the attachments
    /// have at most 256 KiB together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Value>>,
    /// The id of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The name of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// The permissions of the sender. Directives such as `/stop` count only with `queue` among them. Without this field, the
    /// token decides: it needs the scope `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// The mode: what happens if the session is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long the session must be quiet before the turn starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce_ms: Option<u64>,
    /// The largest number of waiting messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Which messages the server drops if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// The longest wait for a quiet session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// Whether the server drops the message if the session is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<bool>,
    /// The turn that the message steers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// What happens if that turn has ended or takes no steering: `followup` (the default), `reject` or `drop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
}

/// The id of a thread: a text, or a whole number as some channels send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or a whole number")]
pub enum ThreadId {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

impl ThreadId {
    /// The text that stands for the thread.
    pub fn into_text(self) -> String {
        match self {
            ThreadId::Text(text) => text,
            ThreadId::Number(number) => number.to_string(),
        }
    }
}

impl From<String> for ThreadId {
    fn from(text: String) -> ThreadId {
        ThreadId::Text(text)
    }
}

/// A text for a running turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SteerRequest {
    /// The text.
    #[schema(min_length = 1)]
    pub text: String,
}

/// The outcome of sending a message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageAnswer {
    /// The message; for a `duplicate`, the accepted one.
    pub id: String,
    /// `started`, `queued`, `steered`, `steered_and_queued`, `interrupted`, `dropped`, `duplicate` or `directive`.
    pub outcome: String,
    /// The turn that the message started, steers or interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The position among the waiting messages, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Whether the sender should see typing.
    pub typing: bool,
    /// The answer to a directive; for a `duplicate`, the answer to the accepted message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
}

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageView {
    /// The id.
    pub id: String,
    /// The text.
    pub text: String,
    /// When the task was accepted.
    pub at: At,
    /// The agent that answers.
    pub agent: String,
    /// The channel that the message came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The name of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// Why the message was parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionSummary {
    /// The key of the session.
    pub key: String,
    /// Whether the session has a turn.
    pub is_busy: bool,
    /// Whether the people in the session should see typing.
    pub typing: bool,
    /// How messages are queued, each value with where it came from.
    pub settings: SessionSettings,
    /// The turn that is under way.
    pub current_turn: Option<CurrentTurn>,
    /// The waiting messages, in order.
    pub messages: Vec<MessageView>,
    /// The number of dropped messages that the next turn will mention.
    pub dropped: u64,
    /// The earliest time of the next try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<At>,
    /// The parked messages, the oldest first. They can be sent again or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<MessageView>,
}

/// How the messages of a session are queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSettings {
    /// The largest number of waiting messages.
    pub cap: SessionSetting,
    /// How long the session must be quiet before the turn starts.
    pub debounce_ms: SessionSetting,
    /// Which messages the server drops if there are more.
    pub drop: SessionSetting,
    /// The longest wait for a quiet session.
    pub max_wait_ms: SessionSetting,
    /// The mode: what happens to messages while the session is busy.
    pub mode: SessionSetting,
}

impl SessionSettings {
    /// All settings under their names, in the order of the wire.
    pub fn by_name(&self) -> [(&'static str, &SessionSetting); 5] {
        let SessionSettings { cap, debounce_ms, drop, max_wait_ms, mode } = self;
        [
            ("cap", cap),
            ("debounce_ms", debounce_ms),
            ("drop", drop),
            ("max_wait_ms", max_wait_ms),
            ("mode", mode),
        ]
    }
}

/// A setting for messages and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionSetting {
    /// The origin: `message`, `session`, `channel`, `global` or `default`.
    pub from: String,
    /// The value as text.
    pub value: String,
}

/// The turn that is under way in a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CurrentTurn {
    /// The ids of its messages.
    pub messages: Vec<String>,
    /// The ids of the messages that wait for the turn to take them.
    pub pending: Vec<String>,
    /// The texts of all of these messages; of a turn without messages, its request.
    pub said: Vec<MessageView>,
    /// The ids of the messages that the turn has taken while it ran.
    pub steered: Vec<String>,
    /// Whether messages can steer it.
    pub takes_steering: bool,
    /// The task.
    pub task_id: String,
}

/// The tool lanes of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionStats {
    /// The number of waiting calls.
    pub total_pending: u32,
    /// The number of running calls.
    pub total_active: u32,
    /// The number of calls that wait for a worker.
    pub external_pending: u32,
    /// The tool lanes, by name.
    pub lanes: BTreeMap<String, ToolLaneStats>,
    /// The settings for messages, each with its origin. A session without messages has them too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SessionSettings>,
}

/// A tool lane of a session. The counters are those of all sessions with the same settings.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolLaneStats {
    /// The number of waiting calls.
    pub pending: u32,
    /// The number of running calls.
    pub active: u32,
    /// The number of calls that completed.
    pub completed: u64,
    /// The number of calls that failed.
    pub failed: u64,
    /// The largest number of tasks that run at once.
    pub max_concurrency: Option<u32>,
    /// `internal`, `external` or `hybrid`.
    pub handler_mode: String,
}

/// A change of the settings of a session. Fields that the body leaves out stay.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionChange {
    /// The mode: what happens to messages while the session is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long the session must be quiet before the turn starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce_ms: Option<u64>,
    /// The longest wait for a quiet session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// The largest number of waiting messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// Which messages the server drops if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
}

/// The state of a message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The message.
    pub id: String,
    /// `waiting`, `steering`, `in_turn`, `delivered`, `steered`, `dropped`, `cancelled` or `set_aside`.
    pub status: String,
    /// Whether the message has ended. A `steered` message ends with its turn.
    pub ended: bool,
    /// The turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The rule, reason or error of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The position in the home lane, counted from one.
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
