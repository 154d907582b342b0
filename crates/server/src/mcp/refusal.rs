//! Requests that are no call of anything, refused in the words of JSON-RPC.

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// How long a sentence of the transport is at most.
const SENTENCE_BYTES_MAX: usize = 4096;

/// A refusal of a whole request. The id is null where none could be read.
pub(crate) fn of(status: StatusCode, id: Value, code: i32, why: &str) -> Response {
    let told = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } });
    let mut response = Response::new(Body::from(told.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What the transport refuses in a plain sentence (no session, an unknown one, nothing that it could answer with), as JSON:
/// clients read nothing else.
pub(crate) async fn told_as_json(response: Response, id: Value) -> Response {
    let form = response.headers().get(CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
    if form.contains("json") || form.starts_with("text/event-stream") {
        return response;
    }
    let status = response.status();
    let said = to_bytes(response.into_body(), SENTENCE_BYTES_MAX).await.unwrap_or_default();
    let why = String::from_utf8_lossy(&said);
    // The name of the status, which it begins with, is in the status.
    let why = why.split_once(": ").map_or(&*why, |(_, why)| why).trim();
    of(status, id, INVALID_REQUEST, if why.is_empty() { "the request makes no sense" } else { why })
}
