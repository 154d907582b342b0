//! Agents behind an HTTP address: one POST per attempt, whose answer is streamed. Messages and the end of the attempt may
//! have addresses of their own.

use std::time::Duration;

use futures_util::StreamExt;
use laneway_config::AgentUrls;
use laneway_core::TurnMessage;
use laneway_engine::{Failure, SteeringMessage, Stopped};
use laneway_protocol::cancel_reason;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::agents::answer::{ANSWER_BYTES_MAX, AnswerBody, is_empty};
use crate::agents::handlers::Run;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an upstream may take to confirm a message.
const STEER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an upstream may take to confirm that it has stopped: less than the grace of an attempt.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(4);

/// The HTTP client for all upstreams.
pub(super) struct Upstream(reqwest::Client);

impl Upstream {
    pub(super) fn new() -> Result<Upstream, reqwest::Error> {
        // Fails if another part of the program has installed a provider, which works as well.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("laneway/", env!("CARGO_PKG_VERSION")));
        client.build().map(Upstream)
    }

    /// Sends the request. Dropping the future closes the connection, which tells the upstream to stop.
    pub(super) async fn ask(&self, url: &str, urls: &AgentUrls, run: Run) -> Result<Value, Failure> {
        let stop = run.context.stop().clone();
        tokio::select! {
            biased;
            answer = self.exchange(url, &run) => answer,
            reason = stop.wait() => {
                if let Some(url) = &urls.cancel {
                    self.cancel(url, reason, &run).await;
                }
                Err(Failure::new("the attempt was stopped"))
            }
            never = self.pass_steering(urls.steer.as_deref(), &run) => match never {},
        }
    }

    fn post(&self, url: &str, run: &Run, body: &Value) -> reqwest::RequestBuilder {
        let request = self
            .0
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("x-laneway-task-id", run.context.task().to_string())
            .header("x-laneway-fence", run.context.fence().0)
            .body(body.to_string());
        match run.context.trace() {
            Some(trace) => request.header("traceparent", trace),
            None => request,
        }
    }

    async fn exchange(&self, url: &str, run: &Run) -> Result<Value, Failure> {
        let request = self.post(url, run, &run.body());
        let request = request.header(ACCEPT, "text/event-stream, application/json, text/plain");
        let answer = request.send().await.map_err(|error| unreachable(&error))?;
        let status = answer.status();
        if !status.is_success() {
            let failure = format!("the upstream answered {}", status.as_u16());
            let again = status.is_server_error() || status.as_u16() == 429;
            return Err(Failure { retryable: again, ..Failure::new(failure) });
        }
        let form = answer.headers().get(CONTENT_TYPE).and_then(|form| form.to_str().ok()).unwrap_or_default();
        let form = form.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut answer_body = AnswerBody::of(&form);
        let mut body = answer.bytes_stream();
        let mut length = 0;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|_| Failure::new("the upstream broke off"))?;
            length += piece.len();
            if length > ANSWER_BYTES_MAX {
                return Err(Failure::fatal(format!("the upstream sent more than {ANSWER_BYTES_MAX} bytes")));
            }
            if answer_body.push(&piece, &run.context)? {
                break;
            }
        }
        let answer = answer_body.finish()?;
        // A tool may have nothing to say, but a turn without an answer is a mistake.
        if run.turn.is_some() && is_empty(&answer) {
            return Err(Failure::new("the upstream answered a success without any text or field"));
        }
        Ok(answer)
    }

    /// Passes messages to the upstream as they come. It takes a message only when the upstream has confirmed it; if it does
    /// not, the messages become turns of their own.
    async fn pass_steering(&self, url: Option<&str>, run: &Run) -> std::convert::Infallible {
        if let Some(url) = url.filter(|_| run.is_session_turn()) {
            // The calls fail only if the attempt has ended.
            if run.context.set_steering(true).await.is_ok() {
                while let Ok(offered) = run.context.offered_steering().await {
                    if !self.steer(url, &offered, run).await {
                        drop(run.context.set_steering(false).await);
                        break;
                    }
                    if run.context.confirm_steering(&offered).await.is_err() {
                        break;
                    }
                }
            }
        }
        std::future::pending().await
    }

    async fn steer(&self, url: &str, offered: &[TurnMessage], run: &Run) -> bool {
        let messages: Vec<SteeringMessage> = offered.iter().map(SteeringMessage::from).collect();
        let text: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
        let body = json!({
            "type": "steer",
            "task_id": run.context.task().to_string(),
            "fence": run.context.fence().0,
            "session": run.turn.as_ref().and_then(|turn| turn.session.as_deref()),
            "text": text.join("\n\n"),
            "messages": messages,
        });
        let answer = self.post(url, run, &body).timeout(STEER_TIMEOUT).send().await;
        let is_taken = answer.is_ok_and(|answer| answer.status().is_success());
        if !is_taken {
            tracing::warn!(task = %run.context.task(), "the upstream took no message; it waits for a turn of its own");
        }
        is_taken
    }

    /// Tells the upstream to stop, and waits for its confirmation. The connection is closed afterwards in any case.
    async fn cancel(&self, url: &str, reason: Stopped, run: &Run) {
        let reason = match reason {
            Stopped::Timeout => "timeout",
            Stopped::Cancelled(reason) => cancel_reason(reason),
            Stopped::Revoked => "released",
            Stopped::Shutdown => "shutdown",
        };
        let body = json!({
            "type": "cancel",
            "task_id": run.context.task().to_string(),
            "fence": run.context.fence().0,
            "session": run.turn.as_ref().and_then(|turn| turn.session.as_deref()),
            "reason": reason,
        });
        if let Err(error) = self.post(url, run, &body).timeout(CANCEL_TIMEOUT).send().await {
            let error = error.without_url();
            tracing::warn!(task = %run.context.task(), %error, "the upstream did not confirm that it has stopped");
        }
    }
}

fn unreachable(error: &reqwest::Error) -> Failure {
    Failure::new(if error.is_connect() { "the upstream cannot be reached" } else { "the upstream broke off" })
}
