//! Passes messages between standard input, standard output and a server.
//!
//! A message has at most [`LINE_BYTES_MAX`] bytes. The bridge refuses requests while [`UNDER_WAY_MAX`] run, and stops
//! reading from the server while [`UNWRITTEN_MAX`] messages wait for standard output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use laneway_protocol::SseReader;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use crate::commands::mcp::message::{INTERNAL_ERROR, INVALID_REQUEST, Message, answers, refusal};

/// The longest event that the bridge reads.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;
const UNDER_WAY_MAX: usize = 64;
const UNWRITTEN_MAX: usize = 64;
/// How long to try to report to the server that the client has gone.
const FAREWELL: Duration = Duration::from_secs(2);

const SESSION_ID: &str = "mcp-session-id";

/// A message of the client is longer than the bridge accepts.
#[derive(Debug, thiserror::Error)]
#[error("a message has at most {LINE_BYTES_MAX} bytes")]
pub(crate) struct MessageTooLong;

/// Connects a client with a server.
pub(crate) struct Bridge(Arc<Shared>);

struct Shared {
    client: Client,
    url: String,
    out: mpsc::Sender<Value>,
    session: Mutex<Session>,
    /// Lets one request at a time renew the session.
    renewing: Semaphore,
    under_way: Mutex<HashMap<String, AbortHandle>>,
}

/// The session of a client of an older MCP revision. Clients of the current revision have none.
#[derive(Clone, Default)]
struct Session {
    id: Option<String>,
    version: Option<String>,
    /// The `initialize` request, which renews the session if the server has lost it.
    handshake: Option<Message>,
}

impl Bridge {
    /// A bridge, and the future that writes answers to `output`. The future ends when the reader closes `output`.
    pub(crate) fn new(
        client: Client,
        url: String,
        mut output: impl AsyncWrite + Unpin,
    ) -> (Bridge, impl Future<Output = std::io::Result<()>>) {
        let (out, mut written) = mpsc::channel::<Value>(UNWRITTEN_MAX);
        let writing = async move {
            while let Some(message) = written.recv().await {
                output.write_all(format!("{message}\n").as_bytes()).await?;
                output.flush().await?;
            }
            Ok(())
        };
        let shared = Shared {
            client,
            url,
            out,
            session: Mutex::default(),
            renewing: Semaphore::new(1),
            under_way: Mutex::default(),
        };
        (Bridge(Arc::new(shared)), writing)
    }

    /// Passes on messages until `input` ends, then aborts running requests and closes the session.
    pub(crate) async fn run(&self, mut input: impl AsyncBufRead + Unpin) -> Result<(), MessageTooLong> {
        let mut asking = JoinSet::new();
        let done = loop {
            let mut line = Vec::new();
            match (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
                Err(_) | Ok(0) => break Ok(()),
                Ok(read) if read as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") => {
                    break Err(MessageTooLong);
                }
                Ok(_) => {}
            }
            if !line.trim_ascii().is_empty() {
                self.receive(&line, &mut asking).await;
            }
            while asking.try_join_next().is_some() {}
        };
        asking.shutdown().await;
        self.0.end_session().await;
        done
    }

    async fn receive(&self, line: &[u8], asking: &mut JoinSet<()>) {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(refusal) => return self.0.send(refusal).await,
        };
        let shared = Arc::clone(&self.0);
        match message.id().cloned() {
            // The next requests need the session that this one starts.
            Some(id) if message.method() == Some("initialize") => shared.begin(&message, &id).await,
            Some(id) if asking.len() >= UNDER_WAY_MAX => {
                let why = format!("at most {UNDER_WAY_MAX} requests may run at once");
                shared.send(refusal(id, INVALID_REQUEST, &why, None)).await;
            }
            Some(id) => {
                let key = id.to_string();
                let ask = async move {
                    shared.ask(&message, &id).await;
                    shared.under_way().remove(&id.to_string());
                };
                // This thread also runs the request, so it is in the map before it can remove itself.
                let handle = asking.spawn(ask);
                self.0.under_way().insert(key, handle);
            }
            None => shared.notify(&message).await,
        }
    }
}

impl Shared {
    fn session(&self) -> Session {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message to the client.
    async fn send(&self, message: Value) {
        // If the client has closed standard output, the program is ending.
        drop(self.out.send(message).await);
    }

    /// The HTTP request of a message.
    fn request(&self, message: &Message, session: &Session) -> RequestBuilder {
        let mut request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(message.body());
        let repeated = [
            (SESSION_ID, session.id.as_deref()),
            ("mcp-protocol-version", message.version().or(session.version.as_deref())),
            ("mcp-method", message.method()),
            ("mcp-name", message.name()),
        ];
        for (header, value) in repeated {
            // A value that no header can hold is left out, and the server reports the missing header.
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                request = request.header(header, value);
            }
        }
        request
    }

    /// Passes on the handshake of an older client.
    async fn begin(&self, message: &Message, id: &Value) {
        match self.request(message, &Session::default()).send().await {
            Err(_) => self.send(self.unreachable(id)).await,
            Ok(response) => {
                let session = header(&response, SESSION_ID);
                let mut version = None;
                self.relay(response, id, |answer| {
                    version = answer["result"]["protocolVersion"].as_str().map(str::to_owned);
                })
                .await;
                let handshake = Some(message.clone());
                let begun = Session { id: session, version, handshake };
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = begun;
            }
        }
    }

    /// Renews a session that the server has lost, unless another request just did.
    async fn renew(&self, old: &Session) -> Option<Session> {
        let _turn = self.renewing.acquire().await.ok()?;
        let current = self.session();
        if current.id != old.id {
            return Some(current);
        }
        let response = self.request(old.handshake.as_ref()?, &Session::default()).send().await.ok()?;
        let id = header(&response, SESSION_ID);
        // The server has started the session when its answer ends.
        drop(response.bytes().await);
        let new = Session { id, ..old.clone() };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let initialized = Message::read(initialized.to_string().as_bytes()).ok()?;
        drop(self.request(&initialized, &new).send().await);
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = new.clone();
        Some(new)
    }

    async fn ask(&self, message: &Message, id: &Value) {
        let session = self.session();
        let mut sent = self.request(message, &session).send().await;
        let is_forgotten = matches!(&sent, Ok(answer) if answer.status() == StatusCode::NOT_FOUND);
        if is_forgotten
            && session.id.is_some()
            && let Some(session) = self.renew(&session).await
        {
            sent = self.request(message, &session).send().await;
        }
        match sent {
            Err(_) => self.send(self.unreachable(id)).await,
            Ok(response) => self.relay(response, id, |_| {}).await,
        }
    }

    /// Passes on a notification, which has no answer.
    async fn notify(&self, message: &Message) {
        let session = self.session();
        if let Some(cancelled) = message.cancels()
            && session.id.is_none()
        {
            // Without a session, closing the response cancels the request.
            if let Some(asking) = self.under_way().remove(&cancelled.to_string()) {
                asking.abort();
            }
            return;
        }
        // A notification has no answer that could report a failure.
        drop(self.request(message, &session).send().await);
    }

    /// Passes on the server's messages, and sends an error if no answer to the request is among them.
    async fn relay(&self, response: Response, id: &Value, mut on_answer: impl FnMut(&Value)) {
        let form = header(&response, "content-type").unwrap_or_default();
        if form.starts_with("text/event-stream") {
            let mut body = response.bytes_stream();
            let mut events = SseReader::new(EVENT_BYTES_MAX);
            while let Some(Ok(piece)) = body.next().await {
                let mut complete = Vec::new();
                if events.push(&piece, &mut complete).is_err() {
                    break;
                }
                for data in complete.into_iter().filter_map(|event| event.data) {
                    let Ok(message) = serde_json::from_str::<Value>(&data) else { continue };
                    let is_answer = answers(&message, id);
                    if is_answer {
                        on_answer(&message);
                    }
                    self.send(message).await;
                    if is_answer {
                        return;
                    }
                }
            }
            let why = "the server closed the connection; the work may continue, and the same call joins it";
            return self.send(refusal(id.clone(), INTERNAL_ERROR, why, None)).await;
        }
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        match serde_json::from_slice::<Value>(&body) {
            Ok(message) if answers(&message, id) => {
                on_answer(&message);
                self.send(message).await;
            }
            // The server refused the HTTP request: no token, too many requests, another address.
            Ok(problem) => {
                let detail = problem.get("detail").or_else(|| problem.get("error")?.get("message"));
                let detail = detail.and_then(Value::as_str).unwrap_or("the server refused");
                let why = format!("{detail} (HTTP {})", status.as_u16());
                self.send(refusal(id.clone(), INTERNAL_ERROR, &why, Some(problem.clone()))).await;
            }
            Err(_) => {
                let text = String::from_utf8_lossy(&body);
                let why = format!("the server answered HTTP {}: {}", status.as_u16(), text.trim());
                self.send(refusal(id.clone(), INTERNAL_ERROR, &why, None)).await;
            }
        }
    }

    fn unreachable(&self, id: &Value) -> Value {
        let why = format!(
            "no server answers at {}; start it with `laneway serve`, or set its address with --url",
            self.url
        );
        refusal(id.clone(), INTERNAL_ERROR, &why, None)
    }

    /// Reports to the server that the client has gone, so that the server cancels its requests.
    async fn end_session(&self) {
        let Some(id) = self.session().id else { return };
        let farewell = self.client.delete(&self.url).header(SESSION_ID, id).send();
        // Without this report, the server ends the session later by itself.
        drop(tokio::time::timeout(FAREWELL, farewell).await);
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
