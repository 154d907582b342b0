//! Passing messages between standard input and output and a server.
//!
//! Bounds: [`LINE_BYTES_MAX`] for a message, [`UNDER_WAY_MAX`] requests at once (the next is refused), [`UNWRITTEN_MAX`]
//! messages that wait to be written (then the server is not read).

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
/// How long the server is given to hear that the client has gone.
const FAREWELL: Duration = Duration::from_secs(2);

const SESSION_ID: &str = "mcp-session-id";

/// The client sends a longer message than the bridge reads.
#[derive(Debug, thiserror::Error)]
#[error("a message has at most {LINE_BYTES_MAX} bytes")]
pub(crate) struct MessageTooLong;

/// What is between a client and a server.
pub(crate) struct Bridge(Arc<Shared>);

struct Shared {
    client: Client,
    url: String,
    out: mpsc::Sender<Value>,
    session: Mutex<Session>,
    /// One at a time begins the session again.
    renewing: Semaphore,
    under_way: Mutex<HashMap<String, AbortHandle>>,
}

/// The session of an older client; one of the current revision has none.
#[derive(Clone, Default)]
struct Session {
    id: Option<String>,
    version: Option<String>,
    /// What it began with, to begin again with a server that has forgotten it.
    handshake: Option<Message>,
}

impl Bridge {
    /// A bridge, and the writing of what comes back, which is over when nobody reads it any more.
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

    /// Passes on what is read until that ends; what is under way then is given up, and the session closed.
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
                self.hear(&line, &mut asking).await;
            }
            while asking.try_join_next().is_some() {}
        };
        asking.shutdown().await;
        self.0.end_session().await;
        done
    }

    async fn hear(&self, line: &[u8], asking: &mut JoinSet<()>) {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(refusal) => return self.0.tell(refusal).await,
        };
        let shared = Arc::clone(&self.0);
        match message.id().cloned() {
            // What follows needs the session that this brings.
            Some(id) if message.method() == Some("initialize") => shared.begin(&message, &id).await,
            Some(id) if asking.len() >= UNDER_WAY_MAX => {
                let why = format!("at most {UNDER_WAY_MAX} requests may be under way at once");
                shared.tell(refusal(id, INVALID_REQUEST, &why, None)).await;
            }
            Some(id) => {
                let key = id.to_string();
                let ask = async move {
                    shared.ask(&message, &id).await;
                    shared.under_way().remove(&id.to_string());
                };
                // It has not begun to run when its name is put down: this thread runs both.
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

    async fn tell(&self, message: Value) {
        // When nobody reads any more the program ends by itself.
        drop(self.out.send(message).await);
    }

    /// A message as a request of HTTP.
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
            // What cannot be a header is left to the server to miss.
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                request = request.header(header, value);
            }
        }
        request
    }

    /// The handshake of an older client.
    async fn begin(&self, message: &Message, id: &Value) {
        match self.request(message, &Session::default()).send().await {
            Err(_) => self.tell(self.unreachable(id)).await,
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

    /// Begins a session again that the server has forgotten, unless somebody else just did.
    async fn renew(&self, old: &Session) -> Option<Session> {
        let _turn = self.renewing.acquire().await.ok()?;
        let current = self.session();
        if current.id != old.id {
            return Some(current);
        }
        let response = self.request(old.handshake.as_ref()?, &Session::default()).send().await.ok()?;
        let id = header(&response, SESSION_ID);
        // The answer is read to its end, so that the server has begun the session.
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
            Err(_) => self.tell(self.unreachable(id)).await,
            Ok(response) => self.relay(response, id, |_| {}).await,
        }
    }

    /// A message that is not answered.
    async fn notify(&self, message: &Message) {
        let session = self.session();
        if let Some(cancelled) = message.cancels()
            && session.id.is_none()
        {
            // Without a session, closing the answer is how a request is taken back.
            if let Some(asking) = self.under_way().remove(&cancelled.to_string()) {
                asking.abort();
            }
            return;
        }
        // There is nobody to tell that it did not arrive.
        drop(self.request(message, &session).send().await);
    }

    /// Passes on what the server answers, and sees to it that the request is answered.
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
                    self.tell(message).await;
                    if is_answer {
                        return;
                    }
                }
            }
            let why = "the server broke off; what was asked may go on, and the same call again joins it";
            return self.tell(refusal(id.clone(), INTERNAL_ERROR, why, None)).await;
        }
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        match serde_json::from_slice::<Value>(&body) {
            Ok(message) if answers(&message, id) => {
                on_answer(&message);
                self.tell(message).await;
            }
            // A refusal of the server as a whole: no token, too many requests, another address.
            Ok(problem) => {
                let told = problem.get("detail").or_else(|| problem.get("error")?.get("message"));
                let detail = told.and_then(Value::as_str).unwrap_or("the server refused");
                let why = format!("{detail} (HTTP {})", status.as_u16());
                self.tell(refusal(id.clone(), INTERNAL_ERROR, &why, Some(problem.clone()))).await;
            }
            Err(_) => {
                let text = String::from_utf8_lossy(&body);
                let why = format!("the server answered HTTP {}: {}", status.as_u16(), text.trim());
                self.tell(refusal(id.clone(), INTERNAL_ERROR, &why, None)).await;
            }
        }
    }

    fn unreachable(&self, id: &Value) -> Value {
        let why = format!(
            "no server answers at {}; start it with `laneway serve`, or say where it is with --url",
            self.url
        );
        refusal(id.clone(), INTERNAL_ERROR, &why, None)
    }

    /// Says that the client has gone: what it waited for is given up.
    async fn end_session(&self) {
        let Some(id) = self.session().id else { return };
        let farewell = self.client.delete(&self.url).header(SESSION_ID, id).send();
        // One that does not hear it will notice by itself.
        drop(tokio::time::timeout(FAREWELL, farewell).await);
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
