//! What a handler or a worker gets for a turn that answers messages.

use bytes::Bytes;
use laneway_core::{TaskId, TurnContent, TurnMessage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;

/// A turn of a session, as its agent gets it: the payload of the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPayload {
    /// The session's key.
    pub session: String,
    /// Who answers.
    pub agent: String,
    /// Everything that is said, as one text.
    pub text: String,
    /// The same text, under the name that it has in a turn that a caller asks for directly.
    #[serde(default)]
    pub message: String,
    /// Where the answer goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The recipient in the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The account that speaks there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What the senders may do.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// The messages one by one.
    #[serde(default)]
    pub messages: Vec<SteeringMessage>,
    /// How many messages were dropped before these.
    #[serde(default)]
    pub dropped: u64,
    /// Something of this was in a turn that was lost, which may have done something already.
    #[serde(default)]
    pub redelivered: bool,
    /// The session starts afresh.
    #[serde(default)]
    pub fresh: bool,
}

/// One message, as a turn gets it at its start or on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringMessage {
    /// Its id.
    pub id: String,
    /// What is said.
    pub text: String,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    /// The sender's own id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// It was in a turn that was lost.
    #[serde(default)]
    pub redelivered: bool,
    /// JSON of the sender's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// What the sender attached, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Value>>,
}

impl From<&TurnMessage> for SteeringMessage {
    fn from(message: &TurnMessage) -> SteeringMessage {
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        SteeringMessage {
            id: TaskId(message.id.0).to_string(),
            text: (*message.text).to_owned(),
            sender: text(&message.sender),
            sender_name: text(&message.sender_name),
            message_id: text(&message.message_id),
            redelivered: message.redelivered,
            metadata: json(&message.metadata),
            attachments: json(&message.attachments),
        }
    }
}

impl From<&TurnContent> for TurnPayload {
    fn from(content: &TurnContent) -> TurnPayload {
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        let place = &content.address.place;
        TurnPayload {
            session: content.session.clone(),
            agent: content.address.agent.name.to_string(),
            text: content.text.clone(),
            message: content.text.clone(),
            channel: text(&place.channel),
            to: text(&place.to),
            account: text(&place.account),
            thread: text(&place.thread),
            permissions: content.address.permissions.iter().map(ToString::to_string).collect(),
            messages: content.messages.iter().map(SteeringMessage::from).collect(),
            dropped: content.dropped,
            redelivered: content.redelivered,
            fresh: content.fresh,
        }
    }
}

/// What a sender gave as JSON. The handle has written it, so that it can be read.
fn json<T: DeserializeOwned>(text: &Option<std::sync::Arc<str>>) -> Option<T> {
    text.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

/// The payload of a turn, as bytes.
pub(crate) fn turn_payload(content: &TurnContent) -> Result<Bytes, Error> {
    let payload = serde_json::to_vec(&TurnPayload::from(content));
    payload.map(Bytes::from).map_err(|error| Error::Json(error.to_string().into()))
}
