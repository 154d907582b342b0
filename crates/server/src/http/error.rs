//! Errors of the API: one form for every refusal and failure.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use laneway_core::{End, Rejection};
use laneway_engine::Error;
use laneway_protocol::{Code, Problem, cancel_reason};
use laneway_store::{Damage, Durability, StoreError};

/// A refusal or failure of a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", problem.detail)]
pub(crate) struct ApiError {
    pub(crate) problem: Box<Problem>,
    /// The metrics label of the lane that refused, if a lane did.
    label: Option<Arc<str>>,
}

/// The labels under which metrics count an error. A response carries them to the middleware.
#[derive(Clone)]
pub(crate) struct ErrorLabels {
    /// That of the lane, if the error is about one.
    pub(crate) label: Option<Arc<str>>,
    pub(crate) code: Code,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;
/// A JSON answer, or an error.
pub(super) type ApiJson<T> = ApiResult<Json<T>>;

pub(crate) const TASK_ID: HeaderName = HeaderName::from_static("x-laneway-task-id");
/// The reason of a refusal if all slots are taken and the request may not wait.
const BUSY: &str = "BUSY";
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> ApiError {
        let problem = Problem::new(code, detail);
        match code {
            // A restart or a failover takes a few seconds.
            Code::StoreUnavailable | Code::Draining => problem.retry_after_ms(5000).into(),
            _ => problem.into(),
        }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> ApiError {
        ApiError::new(Code::Invalid, detail)
    }

    pub(crate) fn not_found(what: &str) -> ApiError {
        ApiError::new(Code::NotFound, format!("there is no such {what}"))
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> ApiError {
        ApiError::new(Code::Forbidden, detail)
    }

    /// Sets the time until the next try.
    pub(crate) fn retry_after_ms(mut self, millis: u64) -> ApiError {
        *self.problem = self.problem.retry_after_ms(millis);
        self
    }

    pub(crate) fn labels(&self) -> ErrorLabels {
        ErrorLabels { label: self.label.clone(), code: self.problem.code }
    }

    /// The same error under another HTTP status.
    pub(crate) fn status(mut self, status: StatusCode) -> ApiError {
        self.problem.status = status.as_u16();
        self
    }

    /// Names the agent, also in the sentence about a lane of the agent that is full.
    pub(crate) fn of_agent(mut self, agent: &str) -> ApiError {
        self.problem.agent = Some(agent.to_owned());
        let lane = self.problem.lane.as_deref().unwrap_or_default();
        let is_own = ["agent:", "task:"].iter().any(|prefix| lane.strip_prefix(prefix) == Some(agent));
        if self.problem.code == Code::AtCapacity && is_own && self.problem.blocked_by.is_none() {
            let is_busy = self.problem.reason == BUSY;
            self.problem.error = if is_busy { "Agent is busy" } else { "Agent queue is full" }.to_owned();
            let waiting = self.problem.queue_length.unwrap_or(0);
            let secs = self.problem.retry_after.unwrap_or(1);
            let current = self.problem.current_task_id.as_ref();
            let running = current.map_or(String::new(), |task| format!(" It runs task {task}."));
            let queued = match waiting {
                0 => String::new(),
                1 => " with 1 queued request".to_owned(),
                _ => format!(" with {waiting} queued requests"),
            };
            let detail = format!("Agent '{agent}' is busy{queued}.{running} Retry in {secs} s.");
            *self.problem = self.problem.detailed(detail);
        }
        self
    }

    /// Names the task.
    pub(crate) fn of_task(mut self, task: laneway_core::TaskId) -> ApiError {
        *self.problem = self.problem.task(task.to_string());
        self
    }

    /// The error of a task that did not complete.
    pub(crate) fn ended(task: laneway_core::TaskId, end: &End) -> ApiError {
        let (code, detail, reason) = match end {
            End::Completed => (Code::Internal, "it completed".to_owned(), None),
            End::Failed { error } => (Code::RunFailed, format!("the attempt failed: {error}"), None),
            End::TimedOut => {
                (Code::RunTimedOut, "the attempt took too long and was stopped".to_owned(), None)
            }
            End::Cancelled { reason } => {
                let word = cancel_reason(*reason);
                (Code::Cancelled, format!("the task was cancelled ({word})"), Some(word))
            }
            End::Expired => (Code::Expired, "its deadline passed while it waited".to_owned(), None),
            End::WaitTimeout => {
                (Code::WaitTimeout, "it waited longer than it was allowed to".to_owned(), None)
            }
            End::Lost => (
                Code::Lost,
                "the owner of the attempt is gone, and the task may not be retried".to_owned(),
                None,
            ),
        };
        let mut problem = Problem::new(code, detail).task(task.to_string());
        if !matches!(end, End::Expired | End::WaitTimeout) {
            problem = problem.of_the_run();
        }
        if let Some(reason) = reason {
            problem.reason = reason.to_owned();
        }
        problem.into()
    }

    /// The error of a wait that the engine cannot finish. The caller must not submit a stored task again.
    pub(crate) fn unfinished(task: laneway_core::TaskId, error: Error, durability: Durability) -> ApiError {
        if error != Error::Closed || durability == Durability::Memory {
            return ApiError::from(error).of_task(task);
        }
        let detail = format!(
            "the server is shutting down; the task is kept and runs after the restart: do not ask again, look at \
             GET /api/tasks/{task}"
        );
        let problem = Problem::new(Code::Draining, detail).task(task.to_string());
        Problem { retryable: false, ..problem }.into()
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> ApiError {
        ApiError { problem: Box::new(problem), label: None }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        match error {
            Error::Rejected(rejection) => rejection.into(),
            Error::Name(error) => ApiError::invalid(error.to_string()),
            Error::NotForClosures(what) => ApiError::invalid(format!("a slot cannot have {what}")),
            Error::NoHandler { .. } => ApiError::invalid(
                "nothing here runs tasks of that kind: give it a handler block, or a home lane that hands its work \
                 to workers",
            ),
            Error::ExternalLane { lane } => ApiError::invalid(format!(
                "lane {lane} hands its work to workers; a slot needs another home lane"
            )),
            Error::Json(_) => ApiError::invalid("not readable as JSON"),
            Error::Unavailable(_) => {
                let detail = "the store cannot be reached; what was asked may or may not have happened, and asking \
                              again under an Idempotency-Key is safe";
                ApiError::new(Code::StoreUnavailable, detail)
            }
            Error::Broken(StoreError::Corrupt { damage: Damage::UnknownFormat { .. }, .. }) => {
                let detail = "a newer version of Laneway has written to the store, and this server stops instead of \
                              guessing what it says; ask another one, and upgrade this one";
                ApiError::new(Code::StoreUnavailable, detail)
            }
            Error::Broken(_) => {
                ApiError::new(Code::StoreUnavailable, "the store holds something that cannot be read")
            }
            Error::Closed => ApiError::new(Code::Draining, "the server is shutting down"),
            _ => ApiError::new(Code::Internal, "something unexpected went wrong"),
        }
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> ApiError {
        let code = Code::from_text(rejection.code()).unwrap_or(Code::Invalid);
        let mut problem = Problem::new(code, rejection.to_string());
        let mut label = None;
        if let Some(wait) = rejection.retry_after() {
            problem = problem.retry_after_ms(wait.0);
        }
        match &rejection {
            Rejection::LaneFull(full) => {
                label = Some(full.label.clone().unwrap_or_else(|| Arc::from("*")));
                problem.lane = Some(full.lane.to_string());
                problem.blocked_by = full.blocked_by.as_ref().map(ToString::to_string);
                if full.is_busy {
                    problem.reason = BUSY.to_owned();
                }
                problem.running = Some(full.running);
                problem.max_concurrency = full.max_concurrency;
                problem.queue_length = Some(full.waiting);
                problem.max_queued = Some(full.max_queued);
                problem.current_task_id = full.current.map(|task| task.to_string());
            }
            Rejection::LaneDraining { lane, label: known } => {
                label = Some(Arc::clone(known));
                problem.lane = Some(lane.to_string());
            }
            Rejection::WouldDeadlock { lane, label: known, holder } => {
                label = Some(Arc::clone(known));
                problem.lane = Some(lane.to_string());
                problem.current_task_id = Some(holder.to_string());
            }
            Rejection::IdTaken { .. } => problem.status = StatusCode::CONFLICT.as_u16(),
            Rejection::SessionBusy { turn, .. } => {
                problem.current_task_id = turn.map(|turn| turn.to_string());
            }
            Rejection::NotLive { task }
            | Rejection::NotWaiting { task }
            | Rejection::StaleLease { task, .. }
            | Rejection::KeyConflict { task }
            | Rejection::ParentNotRunning { task } => problem = problem.task(task.to_string()),
            Rejection::BadSetting(error) => {
                // The name of an unknown setting is the caller's input.
                let setting = crate::http::extract::word(&error.setting).unwrap_or("one of the keys");
                problem = problem.detailed(format!("{setting} {}", error.expected));
            }
            _ => {}
        }
        ApiError { problem: Box::new(problem), label }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let labels = self.labels();
        let problem = self.problem;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&*problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        response.extensions_mut().insert(labels);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let (Some(secs), Some(millis)) = (problem.retry_after, problem.retry_after_ms) {
            headers.insert(header::RETRY_AFTER, secs.into());
            headers.insert(RETRY_AFTER_MS, millis.into());
        }
        let again = if problem.retryable { "true" } else { "false" };
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(again));
        if let Some(task) = problem.task_id.as_deref().and_then(|task| HeaderValue::from_str(task).ok()) {
            headers.insert(TASK_ID, task);
        }
        if problem.code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
