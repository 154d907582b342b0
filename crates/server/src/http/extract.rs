//! Reads requests. Errors never echo the input.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use laneway_core::TaskId;
use laneway_protocol::Code;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// A body in JSON, read within the limits of size and time. A body that is slow holds no slot: nothing is asked of the
/// queue before it is here.
pub(crate) struct Body<T>(pub(crate) T);

/// Parameters of the query.
pub(crate) struct Query<T>(pub(crate) T);

/// Parts of the path.
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
    match is_json {
        true => Ok(()),
        false => Err(ApiError::invalid("the body must be JSON, with Content-Type: application/json")
            .status(axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE)),
    }
}

pub(crate) async fn read(request: Request, app: &App) -> ApiResult<bytes::Bytes> {
    let limits = app.limits();
    let too_large =
        || ApiError::new(Code::TooLarge, format!("a body has at most {} bytes", limits.body_bytes_max));
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.body_bytes_max as u64) {
        return Err(too_large());
    }
    let body = Limited::new(request.into_body(), limits.body_bytes_max).collect();
    match within(limits.body_timeout, body).await {
        Some(Ok(collected)) => Ok(collected.to_bytes()),
        Some(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Some(Err(_)) => Err(ApiError::invalid("the body broke off")),
        None => Err(ApiError::invalid(format!(
            "the body did not arrive within {} s",
            limits.body_timeout.as_secs()
        ))
        .status(axum::http::StatusCode::REQUEST_TIMEOUT)),
    }
}

/// What comes of something that may take so long; `None`: it took longer. What has come with the head needs no timer: the
/// connection reads on when somebody has asked for the body, so it is asked for twice before one is set.
async fn within<T>(limit: Duration, something: impl Future<Output = T>) -> Option<T> {
    let mut something = pin!(something);
    let mut is_second = false;
    let at_once = poll_fn(|context| match something.as_mut().poll(context) {
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
        None => tokio::time::timeout(limit, something).await.ok(),
    }
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::invalid(blame(&error)))
}

/// What is wrong with a text in JSON: where, and what would be right; never what was there.
fn blame(error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    if !error.is_data() {
        return format!("the body is not JSON: {place}");
    }
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    if text.starts_with("missing field") {
        return format!("the body does not fit: {text} ({place})");
    }
    match text.rsplit_once("expected ") {
        Some((_, expected)) if !expected.contains('"') => {
            format!("the body does not fit at {place}: expected {}", in_json(expected))
        }
        _ => format!("the body does not fit at {place}"),
    }
}

/// The expected type in words of JSON: names of Rust types say nothing to the caller.
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
        query.map(|query| Query(query.0)).map_err(|_| {
            ApiError::invalid(
                "a parameter of the query is not one of this request, or its value makes no sense",
            )
        })
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

/// How long an id with its hyphens is; the parser knows other forms too.
const HYPHENATED_BYTES: usize = 36;

/// What a client that comes back says it saw last.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Whether an `Accept` wants events: it names their media type and does not refuse it.
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

/// A header that must be readable, if it is there.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> ApiResult<Option<&'a str>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text =
        value.to_str().map_err(|_| ApiError::invalid(format!("the header {name} must be plain ASCII")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
