//! What a task carries beside its payload: who asked, and the trace that it belongs to.

use bytes::Bytes;
use laneway_protocol::UserRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A payload as this server keeps it. The caller's own is inside, whatever it looks like.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// Tells an envelope from a payload that was put into the store by another program.
    laneway: u8,
    pub(crate) payload: Value,
    /// The token's id; `None`: there are no tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
}

/// What an agent is asked: the payload of a turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) agent: String,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<UserRef>,
    /// The schedule that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<String>,
}

const MARK: u8 = 1;

impl Envelope {
    pub(crate) fn new(payload: Value, owner: Option<String>, traceparent: Option<String>) -> Envelope {
        Envelope { laneway: MARK, payload, owner, traceparent }
    }

    pub(crate) fn seal(&self) -> Bytes {
        // Writing JSON values to memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads a payload; one without an envelope is taken as it is.
    pub(crate) fn open(bytes: &[u8]) -> Envelope {
        match serde_json::from_slice::<Envelope>(bytes) {
            Ok(envelope) if envelope.laneway == MARK => envelope,
            _ => Envelope {
                laneway: MARK,
                payload: serde_json::from_slice(bytes).unwrap_or_default(),
                ..Envelope::default()
            },
        }
    }

    /// The same from a payload that was read as JSON already.
    pub(crate) fn of(value: Value) -> Envelope {
        match value.get("laneway").and_then(Value::as_u64) {
            Some(mark) if mark == u64::from(MARK) => serde_json::from_value(value).unwrap_or_default(),
            _ => Envelope { laneway: MARK, payload: value, ..Envelope::default() },
        }
    }

    /// What an agent is asked, if that is what it is.
    pub(crate) fn turn(&self) -> Option<Turn> {
        Turn::deserialize(&self.payload).ok()
    }
}
