//! Reads requests. Errors never echo the input.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use laneway_core::TaskId;
use laneway_protocol::Code;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// A JSON body, read within the limits of size and time before the queue sees the request.
pub(crate) struct Body<T>(pub(crate) T);

/// The parameters of the query.
pub(crate) struct Query<T>(pub(crate) T);

/// The parameters of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> ApiResult<Body<T>> {
        check_content_type(request.headers())?;
        let bytes = read(request, app).await?;
        decode(&bytes).map(Body)
    }
}

fn check_content_type(headers: &HeaderMap) -> ApiResult<()> {
    let given = headers.get(header::CONTENT_TYPE);
    let is_json = given.is_some_and(|value| {
        let value = value.to_str().unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
    });
    if is_json {
        return Ok(());
    }
    let refusal = ApiError::invalid("the body must be JSON, with Content-Type: application/json");
    Err(refusal.status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// Bodies up to this length are read to their end before they are refused. Many clients read no answer while they still write,
/// and take the closed connection for a server that is away.
const DISCARDED_BYTES_MAX: u64 = 64 * 1024 * 1024;

async fn discard(mut body: axum::body::Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

pub(crate) async fn read(request: Request, app: &App) -> ApiResult<bytes::Bytes> {
    let (bytes_max, timeout) = {
        let config = app.config.load();
        (config.server.body_bytes_max, Duration::from_millis(config.server.body_timeout.0))
    };
    let too_large = || ApiError::new(Code::TooLarge, format!("a body has at most {bytes_max} bytes"));
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(length) = announced.filter(|length| *length > u64::from(bytes_max)) {
        if length <= DISCARDED_BYTES_MAX {
            let _read = within(timeout, discard(request.into_body())).await;
        }
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), bytes_max as usize).collect();
    match within(timeout, body).await {
        Some(Ok(collected)) => Ok(collected.to_bytes()),
        Some(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Some(Err(_)) => Err(ApiError::invalid("the body broke off")),
        None => {
            let late = ApiError::invalid(format!("the body did not arrive within {} s", timeout.as_secs()));
            Err(late.status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

/// The output of a future; `None` if it takes longer than the limit. A body that came with the head needs no timer, and the
/// connection reads it after the first poll. So the timer starts after the second poll.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut is_second = false;
    let at_once = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if is_second => Poll::Ready(None),
        Poll::Pending => {
            is_second = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    });
    match at_once.await {
        Some(done) => Some(done),
        None => tokio::time::timeout(limit, future).await.ok(),
    }
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::invalid(json_error(&error)))
}

/// How deep JSON may be nested: the bound of its reader.
const JSON_DEPTH_MAX: usize = 127;

/// The place of an error in JSON and the expected type, without the input.
fn json_error(error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return format!("the body is nested too deeply, at {place}: at most {JSON_DEPTH_MAX} levels");
    }
    if text.starts_with("number out of range") {
        return format!("the body has a number that is too large, at {place}: send it as a string");
    }
    if !error.is_data() {
        return format!("the body is not JSON: {place}");
    }
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    if text.starts_with("missing field") {
        return format!("the body does not fit: {text} ({place})");
    }
    match text.rsplit_once("expected ") {
        Some((_, expected)) if let Some(field) = unknown_field(text) => {
            format!(
                "the body does not fit at {place}: {field} is not a field of it; expected {}",
                in_json(expected)
            )
        }
        Some((_, expected)) if !expected.contains('"') => {
            format!("the body does not fit at {place}: expected {}", in_json(expected))
        }
        _ => format!("the body does not fit at {place}"),
    }
}

/// The name of the unknown field that an error is about, if it looks like the name of a field and so repeats nothing else of the input.
pub(crate) fn unknown_field(error: &str) -> Option<&str> {
    let (name, _) = error.strip_prefix("unknown field `")?.split_once('`')?;
    word(name)
}

/// A text that looks like the name of a field or a setting, and so may be part of an error.
pub(crate) fn word(text: &str) -> Option<&str> {
    const BYTES_MAX: usize = 40;
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    Some(text).filter(|text| is_word && (1..=BYTES_MAX).contains(&text.len()))
}

/// The expected type in words of JSON instead of Rust.
fn in_json(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not below 0 and not too large",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number, not too large",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        "unit" => "null",
        "string or map" | "variant identifier" => "a string",
        name if name.starts_with("struct ") => "an object",
        name if name.starts_with("tuple ") || name.starts_with("a tuple ") => "an array",
        name if name.starts_with("enum ") => "a string",
        words => words,
    }
}

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> ApiResult<Query<T>> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, app).await;
        query.map(|query| Query(query.0)).map_err(|error| ApiError::invalid(query_error(&error.body_text())))
    }
}

/// What is wrong with the parameters of a query, without their values.
fn query_error(error: &str) -> String {
    let error = error.strip_prefix("Failed to deserialize query string: ").unwrap_or(error);
    // An error about one parameter begins with its name.
    let (parameter, problem) = error.split_once(": ").unwrap_or(("", error));
    if let Some(name) = unknown_field(problem).or_else(|| unknown_field(error)) {
        let known = problem.split_once("expected ").map_or("no parameters", |(_, known)| known);
        return format!("{name} is not a parameter of this query; expected {known}");
    }
    let missing = problem.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
    match (missing.and_then(|(name, _)| word(name)), word(parameter)) {
        (Some(name), _) => format!("the query needs the parameter {name}"),
        (None, Some(name)) => format!("the parameter {name} of the query is not valid"),
        (None, None) => "the query has an unknown parameter, or a value that is not valid".to_owned(),
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> ApiResult<Path<T>> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, app).await;
        path.map(|path| Path(path.0)).map_err(|_| ApiError::invalid("the path is not UTF-8"))
    }
}

/// Reads the id of a task. A malformed id is the id of nothing.
pub(crate) fn task_id(text: &str) -> ApiResult<TaskId> {
    let id = Uuid::try_parse(text).ok().filter(|_| text.len() == HYPHENATED_BYTES);
    id.map(|id| TaskId(id.as_u128())).ok_or_else(|| ApiError::not_found("task"))
}

/// The length of an id with hyphens. The parser accepts other forms too.
const HYPHENATED_BYTES: usize = 36;

/// The id of the last event that a returning client saw.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Whether an `Accept` header names the media type of events and does not refuse it.
pub(crate) fn wants_events(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let names_events = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"));
        names_events && !parts.any(is_zero_quality)
    })
}

fn is_zero_quality(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0)
}

/// The text of an optional header.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> ApiResult<Option<&'a str>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text =
        value.to_str().map_err(|_| ApiError::invalid(format!("the header {name} must be plain ASCII")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
