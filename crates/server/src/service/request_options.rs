//! The options of a request, from its headers.

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

/// Together with the prefix for caller and route, a key stays within the core's bound.
const KEY_BYTES_MAX: usize = 256;

/// The options of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOptions {
    pub(crate) source_agent: Option<String>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) key: Option<String>,
    /// A repeated request without a key joins the first one until its task has ended.
    pub(crate) joins_same: bool,
    pub(crate) traceparent: Option<String>,
    /// The task survives the caller's connection.
    pub(crate) detach: bool,
    /// The caller does not wait for the end.
    pub(crate) is_async: bool,
    /// The caller wants a stream of events.
    pub(crate) stream: bool,
    /// The schedule that sends the request.
    pub(crate) schedule: Option<String>,
}

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
        let detach = match header_text(headers, &DETACH)? {
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if !text.eq_ignore_ascii_case("false") => {
                return Err(ApiError::invalid("X-Detach must be true or false"));
            }
            _ => false,
        };
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

    /// Whether the task is cancelled when the caller's connection ends.
    pub(super) fn is_connected(&self) -> bool {
        !self.detach && !self.is_async
    }

    /// Adds the agent of an agent's token.
    pub(crate) fn for_caller(mut self, caller: &Caller) -> ApiResult<RequestOptions> {
        let Some(own) = caller.agent() else { return Ok(self) };
        match self.source_agent.as_deref() {
            None => self.source_agent = Some(own.to_owned()),
            Some(named) if named == own || caller.speaks_for_others => {}
            Some(_) => {
                return Err(ApiError::forbidden(
                    "this is the token of an agent, and X-Source-Agent names another agent",
                ));
            }
        }
        Ok(self)
    }

    pub(super) fn source(&self) -> Source {
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

/// The trace header of a request. A malformed header is ignored.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let is_shaped = parts.iter().map(|part| part.len()).eq([2, 32, 16, 2])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_shaped.then_some(text)
}
