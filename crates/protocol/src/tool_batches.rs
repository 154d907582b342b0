//! Tool batches: the tool calls of one model turn.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Problem;

/// The tool calls of one model turn.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The session.
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

/// The results of the calls, in their order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// One result for each call.
    pub results: Vec<BatchResult>,
}

/// The result of one call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The tool.
    pub tool: String,
    /// Whether the call completed.
    pub success: bool,
    /// The result. A call that failed may have one too: its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}
