//! Errors of the transport as JSON-RPC, the only form that clients read.

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
/// The longest sentence of the transport.
const SENTENCE_BYTES_MAX: usize = 4096;

/// The parts of a message that the transport reads.
#[derive(Default, Deserialize)]
pub(super) struct Head {
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) id: Value,
    #[serde(default)]
    pub(super) params: Params,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    /// The tool of a call.
    pub(super) name: Value,
    /// The call that a client cancels.
    #[serde(rename = "requestId")]
    pub(super) request_id: Value,
}

impl Head {
    /// Reads the head of a message. The error is the reason, in the words of JSON-RPC.
    pub(super) fn read(body: &[u8]) -> Result<Head, (i32, &'static str)> {
        match serde_json::from_slice(body) {
            Err(_) => Err((PARSE_ERROR, "the body is not JSON")),
            Ok(message @ Value::Object(_)) => Ok(serde_json::from_value(message).unwrap_or_default()),
            Ok(Value::Array(_)) => {
                Err((INVALID_REQUEST, "the server takes no batches: send each message by itself"))
            }
            Ok(_) => Err((INVALID_REQUEST, "a message of JSON-RPC is an object")),
        }
    }
}

/// The transport's plain sentence as a JSON-RPC error. A response in JSON or of events stays as it is.
pub(super) async fn in_json_rpc(response: Response, body: Option<&[u8]>) -> Response {
    let form = response.headers().get(CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
    if form.contains("json") || form.starts_with("text/event-stream") {
        return response;
    }
    let head = match body.map_or(Ok(Head::default()), Head::read) {
        Ok(head) => head,
        Err((code, why)) => return error(StatusCode::BAD_REQUEST, Value::Null, code, why),
    };
    let status = response.status();
    let sentence = to_bytes(response.into_body(), SENTENCE_BYTES_MAX).await.unwrap_or_default();
    let sentence = String::from_utf8_lossy(&sentence);
    // The sentence begins with the name of the status, which the status line has too.
    let why = sentence.split_once(": ").map_or(&*sentence, |(_, why)| why).trim();
    error(status, head.id, INVALID_REQUEST, if why.is_empty() { "the request is malformed" } else { why })
}

pub(super) fn error(status: StatusCode, id: Value, code: i32, why: &str) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } });
    let mut response = Response::new(Body::from(error.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
