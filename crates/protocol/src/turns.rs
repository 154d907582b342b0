//! What an agent is asked, in one form for chats, messages and schedules.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use crate::agents::UserRef;
use crate::tasks::is_false;

/// A turn as its agent gets it: the body of the request to an upstream, the first line of a `jsonl` program, and the payload of
/// a worker's task. A field that is missing has no value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnPayloadView {
    /// The agent.
    pub agent: String,
    /// Everything that is said, as one text.
    pub message: String,
    /// The same text.
    #[serde(default)]
    pub text: String,
    /// The session. Missing for the agent's own session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether this is a stateless task, which belongs to no session.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stateless: bool,
    /// The channel that the messages came from and the answer goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The recipient of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The account on the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The thread on the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The permissions of the senders.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// The messages of the session one by one. Empty for a chat or a schedule.
    #[serde(default)]
    pub messages: Vec<TurnMessageView>,
    /// The number of messages that were dropped before these.
    #[serde(default)]
    pub dropped: u64,
    /// Whether a turn with some of this was lost, which may have done something already.
    #[serde(default)]
    pub redelivered: bool,
    /// Whether the session starts afresh.
    #[serde(default)]
    pub fresh: bool,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools that the agent may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// The timeout of the request, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub timeout_seconds: Option<Number>,
    /// Whether the caller asked for a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The metadata of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The agent that sent the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_agent: Option<String>,
    /// The person that the request is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef>,
    /// The schedule that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

/// One message of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnMessageView {
    /// The id.
    pub id: String,
    /// The text.
    pub text: String,
    /// The id of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The name of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// The channel's own id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Whether the message was in a turn that was lost.
    #[serde(default)]
    pub redelivered: bool,
    /// The metadata of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The attachments of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Value>>,
}
