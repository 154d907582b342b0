//! The parts of an MCP message that the bridge needs to pass it on.

use serde_json::{Value, json};

/// The key under which a request of the current revision names its revision.
const VERSION_IN_META: &str = "io.modelcontextprotocol/protocolVersion";

/// One message of the client.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    value: Value,
}

// Error codes of JSON-RPC.
pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const INTERNAL_ERROR: i64 = -32603;

impl Message {
    /// Parses one line. The error is the answer to the client.
    pub(crate) fn read(line: &[u8]) -> Result<Message, Value> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|_| refusal(Value::Null, PARSE_ERROR, "a message must be one line of JSON", None))?;
        if value.is_object() {
            Ok(Message { value })
        } else {
            Err(refusal(Value::Null, INVALID_REQUEST, "a message must be one JSON object per line", None))
        }
    }

    pub(crate) fn body(&self) -> String {
        self.value.to_string()
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.value.get("method").and_then(Value::as_str)
    }

    /// The id of a request, which its answer repeats.
    pub(crate) fn id(&self) -> Option<&Value> {
        self.value.get("id").filter(|id| !id.is_null() && self.value.get("method").is_some())
    }

    /// The MCP revision that the message names.
    pub(crate) fn version(&self) -> Option<&str> {
        self.params()?.get("_meta")?.get(VERSION_IN_META)?.as_str()
    }

    /// The tool, prompt, resource or task that the message names. The header `Mcp-Name` repeats it.
    pub(crate) fn name(&self) -> Option<&str> {
        let key = match self.method()? {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.params()?.get(key)?.as_str()
    }

    /// The id of the request that a notification cancels.
    pub(crate) fn cancels(&self) -> Option<&Value> {
        match self.method()? {
            "notifications/cancelled" => self.params()?.get("requestId"),
            _ => None,
        }
    }

    fn params(&self) -> Option<&Value> {
        self.value.get("params")
    }
}

/// An error answer.
pub(crate) fn refusal(id: Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

/// Whether a message is the answer to the request with that id.
pub(crate) fn answers(message: &Value, id: &Value) -> bool {
    message.get("id") == Some(id) && (message.get("result").is_some() || message.get("error").is_some())
}
