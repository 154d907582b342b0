//! What the headers of a request say about the task that it asks for.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use laneway_core::{Name, Source, TaskId};

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{header_text, task_id, wants_events};
use crate::http::middleware::TRACEPARENT;

const SOURCE_AGENT: HeaderName = HeaderName::from_static("x-source-agent");
const PARENT: HeaderName = HeaderName::from_static("x-laneway-parent");
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const DETACH: HeaderName = HeaderName::from_static("x-detach");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// With the prefix that tells callers and routes apart, a key stays within the core's bound.
const KEY_BYTES_MAX: usize = 256;

/// What the headers of a request say about the task that it asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOptions {
    pub(crate) source_agent: Option<String>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) key: Option<String>,
    /// The same request joins the first one until that has ended, also without a key.
    pub(crate) joins_same: bool,
    pub(crate) traceparent: Option<String>,
    /// The task survives the caller's connection.
    pub(crate) detach: bool,
    /// The caller does not wait for the end.
    pub(crate) is_async: bool,
    /// The caller wants events.
    pub(crate) stream: bool,
    /// The schedule that asks.
    pub(crate) schedule: Option<String>,
}

/// Borrows the headers: a copy of all of them costs more than a look at these.
impl FromRequestParts<Arc<App>> for RequestOptions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> ApiResult<RequestOptions> {
        RequestOptions::of(&parts.headers)
    }
}

impl RequestOptions {
    pub(crate) fn of(headers: &HeaderMap) -> ApiResult<RequestOptions> {
        let source_agent = header_text(headers, &SOURCE_AGENT)?.map(str::to_owned);
        if let Some(name) = &source_agent {
            Name::new(name.as_str())
                .map_err(|error| ApiError::invalid(format!("X-Source-Agent: {error}")))?;
        }
        let parent = header_text(headers, &PARENT)?
            .map(task_id)
            .transpose()
            .map_err(|_| ApiError::invalid("X-Laneway-Parent must be the id of a running task"))?;
        let key = header_text(headers, &KEY)?.map(key).transpose()?;
        let detach = header_text(headers, &DETACH)?.is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let prefer = header_text(headers, &PREFER)?.unwrap_or_default();
        let is_async = prefer.split([',', ';']).any(|word| word.trim().eq_ignore_ascii_case("respond-async"));
        let accept = header_text(headers, &header::ACCEPT)?.unwrap_or_default();
        Ok(RequestOptions {
            source_agent,
            parent,
            key,
            joins_same: false,
            traceparent: traceparent(headers).map(str::to_owned),
            detach,
            is_async,
            stream: wants_events(accept),
            schedule: None,
        })
    }

    /// Whether the caller's connection holds the task: it is cancelled when the connection ends.
    pub(crate) fn is_connected(&self) -> bool {
        !self.detach && !self.is_async
    }

    /// The same options with the agent that an agent's token speaks for.
    pub(crate) fn spoken_by(mut self, caller: &Caller) -> ApiResult<RequestOptions> {
        let Some(own) = caller.agent() else { return Ok(self) };
        match self.source_agent.as_deref() {
            None => self.source_agent = Some(own.to_owned()),
            Some(named) if named == own || caller.speaks_for_others => {}
            Some(_) => {
                return Err(ApiError::forbidden(
                    "this token is an agent's, and X-Source-Agent names another",
                ));
            }
        }
        Ok(self)
    }

    pub(crate) fn source(&self) -> Source {
        if self.schedule.is_some() {
            Source::Schedule
        } else if self.source_agent.is_some() || self.parent.is_some() {
            Source::Agent
        } else {
            Source::User
        }
    }
}

/// Reads a caller's idempotency key.
pub(crate) fn key(text: &str) -> ApiResult<String> {
    if text.len() > KEY_BYTES_MAX {
        return Err(ApiError::invalid(format!("an Idempotency-Key has at most {KEY_BYTES_MAX} bytes")));
    }
    Ok(text.to_owned())
}

/// The trace that a request belongs to. The server ignores a malformed header.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let is_shaped = parts.iter().map(|part| part.len()).eq([2, 32, 16, 2])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_shaped.then_some(text)
}
