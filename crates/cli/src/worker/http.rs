//! HTTP services that run tasks. The worker sends a POST, and closes the connection when the attempt must stop.

use std::str::FromStr;
use std::time::Duration;

use laneway_client::{Attempt, AttemptFailure};
use serde_json::Value;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that the worker accepts.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why the worker cannot call a service at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error("{url}: {source}")]
    Url { url: String, source: <reqwest::Url as FromStr>::Err },
    #[error("cannot make an HTTP client: {0}")]
    Client(#[source] reqwest::Error),
}

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
            // Only the configured address gets the payload.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("laneway-worker/", env!("CARGO_PKG_VERSION")));
        let http = http.build().map_err(ServiceError::Client)?;
        Ok(Service { http, url })
    }

    /// Sends the payload. When the attempt must stop, the closed connection informs the service.
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
                AttemptFailure::new("the service closed the connection")
            }
        })?;
        let status = answer.status();
        if !status.is_success() {
            let again = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
            let failure = AttemptFailure::new(format!("the service answered {}", status.as_u16()));
            return Err(AttemptFailure { retryable: again, ..failure });
        }
        let mut body = Vec::new();
        while let Some(piece) =
            answer.chunk().await.map_err(|_| AttemptFailure::new("the service closed the connection"))?
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
