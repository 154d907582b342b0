//! Services that do tasks: asked with a POST, given up when the attempt must stop.

use std::str::FromStr;
use std::time::Duration;

use laneway_client::{Attempt, AttemptFailure};
use serde_json::Value;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may be.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a service cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error("{url}: {source}")]
    Url { url: String, source: <reqwest::Url as FromStr>::Err },
    #[error("cannot make an HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}

/// One service.
#[derive(Clone)]
pub(crate) struct Service {
    http: reqwest::Client,
    url: reqwest::Url,
}

impl Service {
    pub(crate) fn new(url: &str) -> Result<Service, ServiceError> {
        let url = url.parse().map_err(|source| ServiceError::Url { url: url.to_owned(), source })?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // What was configured is asked, and nobody else.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("laneway-worker/", env!("CARGO_PKG_VERSION")));
        let http = http.build().map_err(ServiceError::Client)?;
        Ok(Service { http, url })
    }

    /// Asks with the payload. Giving up closes the connection, which is how the service learns that nobody waits.
    pub(crate) async fn ask(&self, attempt: &Attempt) -> Result<Value, AttemptFailure> {
        tokio::select! {
            biased;
            answer = self.exchange(attempt) => answer,
            reason = attempt.stopped() => Err(AttemptFailure::new(reason)),
        }
    }

    async fn exchange(&self, attempt: &Attempt) -> Result<Value, AttemptFailure> {
        let task = attempt.task();
        let mut request = self
            .http
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/plain")
            .header("x-laneway-task-id", &task.id)
            .header("x-laneway-fence", task.fence)
            .header("x-laneway-attempt", task.attempt)
            .body(task.payload.to_string());
        if let Some(trace) = &task.traceparent {
            request = request.header("traceparent", trace);
        }
        let mut answer = request.send().await.map_err(|error| {
            if error.is_connect() {
                AttemptFailure::new("the service cannot be reached")
            } else {
                AttemptFailure::new("the service broke off")
            }
        })?;
        let status = answer.status();
        if !status.is_success() {
            let again = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
            return Err(AttemptFailure {
                error: format!("the service answered {}", status.as_u16()),
                retryable: again,
            });
        }
        let mut body = Vec::new();
        while let Some(piece) =
            answer.chunk().await.map_err(|_| AttemptFailure::new("the service broke off"))?
        {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(AttemptFailure::fatal(format!(
                    "the service sent more than {ANSWER_BYTES_MAX} bytes"
                )));
            }
            body.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&body);
        Ok(serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned())))
    }
}
