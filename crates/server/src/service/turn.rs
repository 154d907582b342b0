//! The payload of a turn that a caller asks for directly.

use laneway_protocol::UserRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an agent is asked. A turn that answers messages has another payload.
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
