//! Agents behind an HTTP address: one POST per attempt, whose answer is streamed.

use std::time::Duration;

use futures_util::StreamExt;
use laneway_engine::Failure;
use laneway_protocol::{SseEvent, SseReader};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use crate::agents::handlers::Run;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A longer answer is an error.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

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
    pub(super) async fn ask(&self, url: &str, run: Run) -> Result<Value, Failure> {
        let stop = run.context.stop().clone();
        tokio::select! {
            biased;
            answer = self.exchange(url, &run) => answer,
            _ = stop.wait() => Err(Failure::new("the attempt was stopped")),
        }
    }

    async fn exchange(&self, url: &str, run: &Run) -> Result<Value, Failure> {
        let mut request = self
            .0
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json, text/plain")
            .header("x-laneway-task-id", run.context.task().to_string())
            .header("x-laneway-fence", run.context.fence().0)
            .body(run.body().to_string());
        if let Some(trace) = run.context.trace() {
            request = request.header("traceparent", trace);
        }
        let answer = request.send().await.map_err(|error| unreachable(&error))?;
        let status = answer.status();
        if !status.is_success() {
            let failure = format!("the upstream answered {}", status.as_u16());
            let again = status.is_server_error() || status.as_u16() == 429;
            return Err(Failure { error: failure, retryable: again });
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
            answer_body.push(&piece, run)?;
        }
        answer_body.finish()
    }
}

fn unreachable(error: &reqwest::Error) -> Failure {
    Failure::new(if error.is_connect() { "the upstream cannot be reached" } else { "the upstream broke off" })
}

/// An answer as it comes in.
enum AnswerBody {
    Json(Vec<u8>),
    Text { decoder: laneway_process::Text, text: String },
    Events { reader: SseReader, text: String, result: Option<Value> },
}

impl AnswerBody {
    fn of(form: &str) -> AnswerBody {
        match form {
            "text/event-stream" => AnswerBody::Events {
                reader: SseReader::new(ANSWER_BYTES_MAX),
                text: String::new(),
                result: None,
            },
            form if form == "application/json" || form.ends_with("+json") => AnswerBody::Json(Vec::new()),
            _ => AnswerBody::Text { decoder: laneway_process::Text::default(), text: String::new() },
        }
    }

    fn push(&mut self, piece: &[u8], run: &Run) -> Result<(), Failure> {
        match self {
            AnswerBody::Json(bytes) => bytes.extend_from_slice(piece),
            AnswerBody::Text { decoder, text } => {
                let mut more = String::new();
                decoder.push(piece, &mut more);
                if !more.is_empty() {
                    text.push_str(&more);
                    run.context.delta(more);
                }
            }
            AnswerBody::Events { reader, text, result } => {
                let mut complete = Vec::new();
                let read = reader.push(piece, &mut complete);
                for SseEvent { name, data, .. } in complete {
                    let data = data.unwrap_or_default();
                    if let Some(failure) = failure(&name, &data) {
                        return Err(failure);
                    }
                    if !data.is_empty() {
                        on_event(&name, &data, text, result, run);
                    }
                }
                read.map_err(|_| Failure::fatal("the upstream sent an event that is too long"))?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Value, Failure> {
        match self {
            AnswerBody::Json(bytes) => {
                let answer: Value = serde_json::from_slice(&bytes)
                    .map_err(|_| Failure::fatal("the upstream's answer is not the JSON that it says"))?;
                Ok(answer.get("response").cloned().unwrap_or(answer))
            }
            AnswerBody::Text { text, .. } => Ok(Value::String(text)),
            AnswerBody::Events { text, result, .. } => Ok(result.unwrap_or(Value::String(text))),
        }
    }
}

/// The failure that an event of the upstream reports. The names are those of Laneway's events.
fn failure(event: &str, data: &str) -> Option<Failure> {
    if !matches!(event, "failed" | "error" | "cancelled" | "timed_out" | "expired") {
        return None;
    }
    let error: Value = serde_json::from_str(data).unwrap_or_else(|_| data.into());
    let retryable = error.get("retryable").and_then(Value::as_bool).unwrap_or(event != "cancelled");
    let error = error_text(&error).unwrap_or_else(|| match error.get("reason").and_then(Value::as_str) {
        Some(reason) => format!("the upstream says {event} ({reason})"),
        None => format!("the upstream says {event}"),
    });
    Some(Failure { error, retryable })
}

/// The sentence in an upstream's error: the whole text, or one of the usual fields.
fn error_text(error: &Value) -> Option<String> {
    let words =
        [error.get("detail"), error.get("error"), error.pointer("/error/message"), error.get("message")];
    let words = words.into_iter().flatten().chain([error]);
    words.filter_map(Value::as_str).find(|words| !words.is_empty()).map(str::to_owned)
}

/// Handles one event of the upstream: passes text on, and keeps a result.
fn on_event(event: &str, data: &str, text: &mut String, result: &mut Option<Value>, run: &Run) {
    let value: Option<Value> = serde_json::from_str(data).ok();
    let field = |name: &str| value.as_ref().and_then(|value| value.get(name)).cloned();
    match event {
        "completed" | "result" | "done" => {
            if let Some(answer) = field("result").or_else(|| field("response")) {
                *result = Some(answer);
            }
        }
        "progress" => run.context.progress(value.unwrap_or_else(|| data.into())),
        _ if data == "[DONE]" => {}
        _ => {
            let piece = match (field("text").or_else(|| field("delta")), &value) {
                (Some(Value::String(piece)), _) => piece,
                (_, Some(Value::String(piece))) => piece.clone(),
                (_, Some(Value::Object(_))) => return run.context.progress(value.unwrap_or_default()),
                _ => data.to_owned(),
            };
            text.push_str(&piece);
            run.context.delta(piece);
        }
    }
}
