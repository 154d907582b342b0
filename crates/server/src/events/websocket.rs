//! The WebSocket: several runs and subscriptions on one connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use laneway_core::TaskId;
use laneway_engine::{Error, TaskHandle};
use laneway_protocol::{ChatRequest, Code, EventFrame, EventName, Scope};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::App;
use crate::events::hub::{Filter, From};
use crate::events::sse::{Telling, Told};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Query, task_id};
use crate::http::limits::InFlight;
use crate::http::routes::events::{EventsQuery, filter};
use crate::service::ask_agent::{AgentCall, Form, ask_agent, replay};
use crate::service::request_options::RequestOptions;
use crate::service::send_message::{send_message, steer_session};
use crate::service::tasks;

/// How often a quiet socket is asked whether it is alive, and when it is taken for dead.
const PING_EVERY: Duration = Duration::from_secs(20);
const SILENT_MAX: Duration = Duration::from_secs(60);
/// How long a frame may take to go out.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How many runs one socket may have at once.
const RUNS_MAX: usize = 256;
/// How many subscriptions one socket may have.
const SUBSCRIPTIONS_MAX: usize = 64;
/// Why a socket is closed whose token was removed, or that was opened when none was needed.
const NOT_WELCOME: &str =
    "what this socket was opened with does not hold any more: open another with a token";

/// A WebSocket: all events, or what of them fits; and runs of the client's own.
#[utoipa::path(
    get, path = "/api/ws", tag = "events", params(EventsQuery),
    responses((status = 101, description = "frames are {event, data, id?}"))
)]
pub(crate) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<EventsQuery>,
    options: RequestOptions,
    in_flight: InFlight,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let first = query.filter()?;
    let upgrade = upgrade.map_err(|_| {
        ApiError::invalid("this is a WebSocket: the request must ask for an upgrade")
            .status(axum::http::StatusCode::UPGRADE_REQUIRED)
    })?;
    let traceparent = options.traceparent;
    let from = query.last_event_id.as_deref().map_or(From::Now, |last| app.bus.resumption(last));
    let most = app.limits().body_bytes_max;
    let upgrade = upgrade.max_message_size(most).max_frame_size(most);
    let connection = app.connections.token();
    Ok(upgrade.on_upgrade(move |socket| async move {
        app.bus.caught_up().await;
        let watch = app.bus.watch(Filter::default(), from);
        let telling = Telling::new(Arc::clone(&app), watch);
        let mut client = Client {
            app,
            caller,
            socket,
            subscriptions: vec![first],
            is_first: true,
            runs: HashMap::new(),
            traceparent,
            is_welcome: true,
        };
        client.serve(telling).await;
        // It counts until it is closed.
        drop((in_flight, connection));
    }))
}

struct Client {
    app: Arc<App>,
    caller: Caller,
    socket: WebSocket,
    subscriptions: Vec<Filter>,
    /// The client has not said what it wants to hear.
    is_first: bool,
    /// The client's own runs: cancelled with the socket, unless it detached them.
    runs: HashMap<TaskId, Run>,
    traceparent: Option<String>,
    /// Whoever opened the socket would still be let in.
    is_welcome: bool,
}

/// A run of the client's own.
struct Run {
    /// `None`: it goes on without the socket.
    _hold: Option<TaskHandle>,
    /// The id of the frame that asked for it.
    reference: Option<String>,
    /// An earlier request under the same key had brought it.
    replayed: bool,
}

impl Run {
    /// What is told of it says which frame asked.
    fn mark(&self, data: &mut Value) {
        if let Some(reference) = &self.reference {
            data["request_id"] = reference.as_str().into();
        }
        if self.replayed {
            data["replayed"] = true.into();
        }
    }
}

/// What a client sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    event: String,
    #[serde(default)]
    data: Value,
    /// Comes back with whatever answers this frame.
    #[serde(default)]
    id: Option<String>,
}

impl Client {
    async fn serve(&mut self, mut telling: Telling) {
        let (mut heard, mut ping_at) = (Instant::now(), Instant::now() + PING_EVERY);
        let mut looks = crate::events::sse::looks();
        let closing = self.app.closing.token();
        loop {
            let is_fine = tokio::select! {
                message = self.socket.recv() => match message {
                    Some(Ok(Message::Text(text))) => {
                        heard = Instant::now();
                        self.hear(text.as_bytes()).await
                    }
                    Some(Ok(Message::Binary(bytes))) => {
                        let admitted = self.admit(bytes.len());
                        let problem = admitted.err().unwrap_or(ApiError::invalid("frames are texts in JSON"));
                        self.refuse(problem, None).await
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                        heard = Instant::now();
                        true
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                },
                told = telling.next() => match told {
                    Some(told) => self.tell(told).await,
                    None => break,
                },
                () = closing.cancelled() => break,
                _ = looks.tick() => {
                    self.look();
                    true
                }
                () = tokio::time::sleep_until(ping_at) => {
                    ping_at = Instant::now() + PING_EVERY;
                    heard.elapsed() < SILENT_MAX && self.send(Message::Ping(Vec::new().into())).await
                }
            };
            if !self.is_welcome {
                return self.close(close_code::POLICY, NOT_WELCOME).await;
            }
            if !is_fine {
                return;
            }
        }
        self.tell_unfinished().await;
        self.close(close_code::AWAY, "the server is shutting down").await;
    }

    /// Says of the client's own runs that have not ended what becomes of them.
    async fn tell_unfinished(&mut self) {
        for (task, run) in std::mem::take(&mut self.runs) {
            let refusal = self.app.unfinished(task, Error::Closed);
            let mut data = serde_json::to_value(&*refusal.problem).unwrap_or_default();
            run.mark(&mut data);
            if !self.frame(EventName::Error, data, None).await {
                return;
            }
        }
    }

    /// Looks whether whoever opened the socket would still be let in.
    fn look(&mut self) {
        self.is_welcome = self.app.is_welcome(self.caller.token.as_deref());
    }

    /// Lets a frame in as a request is let in: if the token still holds, and within its limits.
    fn admit(&mut self, bytes: usize) -> ApiResult<()> {
        self.look();
        if !self.is_welcome {
            return Err(ApiError::new(Code::Unauthorized, NOT_WELCOME));
        }
        let Some(token) = &self.caller.token else { return Ok(()) };
        self.app.callers.count(token, bytes as u64, self.app.now(), &self.app.limits())
    }

    async fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code, reason: reason.into() };
        self.send(Message::Close(Some(frame))).await;
    }

    async fn send(&mut self, message: Message) -> bool {
        matches!(tokio::time::timeout(SEND_TIMEOUT, self.socket.send(message)).await, Ok(Ok(())))
    }

    async fn frame(&mut self, event: EventName, data: Value, id: Option<String>) -> bool {
        let frame = EventFrame { event: event.as_str().to_owned(), data, id };
        let text = serde_json::to_string(&frame).unwrap_or_default();
        self.send(Message::Text(text.into())).await
    }

    /// Passes an event on, if the client wants it.
    async fn tell(&mut self, mut told: Told) -> bool {
        let own = told.task.and_then(|task| self.runs.get(&task));
        if let Some(run) = own {
            run.mark(&mut told.data);
        }
        let is_own = own.is_some();
        let is_asked =
            self.caller.may(Scope::Read) && self.subscriptions.iter().any(|filter| told.fits(filter));
        let is_gap = told.name == EventName::Gap;
        if told.name == EventName::Done
            && let Some(task) = told.task
        {
            self.runs.remove(&task);
        }
        match is_own || is_asked || is_gap {
            true => self.frame(told.name, told.data, told.id).await,
            false => true,
        }
    }

    async fn refuse(&mut self, refusal: ApiError, reference: Option<String>) -> bool {
        self.app.count_rejection(refusal.labels()).await;
        let mut data = serde_json::to_value(&*refusal.problem).unwrap_or_default();
        if let Some(reference) = reference {
            data["request_id"] = reference.into();
        }
        self.frame(EventName::Error, data, None).await
    }

    async fn hear(&mut self, text: &[u8]) -> bool {
        let admitted = self.admit(text.len());
        let frame: Frame = match crate::http::extract::decode(text) {
            Ok(frame) => frame,
            Err(refusal) => return self.refuse(admitted.err().unwrap_or(refusal), None).await,
        };
        let reference = frame.id.clone();
        if let Err(refusal) = admitted {
            return self.refuse(refusal, reference).await;
        }
        let done = match frame.event.as_str() {
            "submit" => self.submit(frame.data, frame.id).await,
            "message" => self.message(frame.data).await,
            "steer" => self.steer(frame.data).await,
            "cancel" => self.cancel(frame.data).await,
            "subscribe" => self.subscribe(frame.data),
            _ => Err(ApiError::invalid("event must be one of submit, message, cancel, steer, subscribe")),
        };
        match done {
            Ok(None) => true,
            Ok(Some((name, mut data))) => {
                if let Some(reference) = reference {
                    data["request_id"] = reference.into();
                }
                self.frame(name, data, None).await
            }
            Err(refusal) => self.refuse(refusal, reference).await,
        }
    }

    fn check(&self, scope: Scope) -> ApiResult<()> {
        match self.caller.may(scope) {
            true => Ok(()),
            false => {
                Err(ApiError::forbidden(format!("this needs a token with the scope {}", scope.as_str())))
            }
        }
    }

    /// A turn, with its agent, and whether it goes on without the socket.
    async fn submit(
        &mut self,
        mut data: Value,
        reference: Option<String>,
    ) -> ApiResult<Option<(EventName, Value)>> {
        self.check(Scope::Submit)?;
        if self.runs.len() >= RUNS_MAX {
            return Err(ApiError::new(
                Code::RateLimited,
                format!("a socket has at most {RUNS_MAX} runs at once"),
            ));
        }
        let object = data.as_object_mut().ok_or_else(|| ApiError::invalid("data must be an object"))?;
        let take = |object: &mut serde_json::Map<String, Value>, key: &str| object.remove(key);
        let name = take(object, "agent").and_then(|name| Some(name.as_str()?.to_owned()));
        let name = name.ok_or_else(|| ApiError::invalid("data.agent must be the name of an agent"))?;
        let detach = take(object, "detach").and_then(|detach| detach.as_bool()).unwrap_or(false);
        let key = take(object, "idempotency_key").and_then(|key| Some(key.as_str()?.to_owned()));
        let form = match take(object, "parallel").and_then(|parallel| parallel.as_bool()) {
            Some(true) => Form::Task,
            _ => Form::Chat,
        };
        let request: ChatRequest = crate::http::extract::decode(data.to_string().as_bytes())?;
        let options = RequestOptions {
            key,
            detach,
            traceparent: self.traceparent.clone(),
            ..RequestOptions::default()
        };
        let call = AgentCall { agent: &name, form, request, options, watches: false };
        let run = ask_agent(&self.app, &self.caller, call).await?;
        let (id, joined) = (run.id(), run.is_replay());
        let task = run.into_task();
        let hold = if detach {
            task.detach();
            None
        } else {
            Some(task)
        };
        self.runs.insert(id, Run { _hold: hold, reference, replayed: joined });
        if joined {
            let mut telling = replay(&self.app, id).await?;
            while let Some(told) = telling.next_of_story().await {
                if !self.tell(told).await {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// A message to a session, with the session's key.
    async fn message(&mut self, mut data: Value) -> ApiResult<Option<(EventName, Value)>> {
        self.check(Scope::Submit)?;
        let object = data.as_object_mut().ok_or_else(|| ApiError::invalid("data must be an object"))?;
        let key = object.remove("session").and_then(|key| Some(key.as_str()?.to_owned()));
        let key = key.ok_or_else(|| ApiError::invalid("data.session must be the key of a session"))?;
        let request = crate::http::extract::decode(data.to_string().as_bytes())?;
        let answer = send_message(&self.app, &self.caller, &key, request).await?;
        Ok(Some((EventName::Message, serde_json::to_value(answer).unwrap_or_default())))
    }

    async fn steer(&mut self, data: Value) -> ApiResult<Option<(EventName, Value)>> {
        self.check(Scope::Submit)?;
        let field = |name: &str| data.get(name).and_then(Value::as_str);
        let (Some(key), Some(text)) = (field("session"), field("text")) else {
            return Err(ApiError::invalid("data must hold session and text"));
        };
        let answer = steer_session(&self.app, &self.caller, key, text.to_owned()).await?;
        Ok(Some((EventName::Message, serde_json::to_value(answer).unwrap_or_default())))
    }

    async fn cancel(&mut self, data: Value) -> ApiResult<Option<(EventName, Value)>> {
        self.check(Scope::Submit)?;
        let id = data.get("task_id").and_then(Value::as_str).unwrap_or_default();
        let task = task_id(id)?;
        if !self.runs.contains_key(&task) {
            tasks::check_owner(&self.app, &self.caller, task).await?;
        }
        let status = tasks::cancel_unchecked(&self.app, task).await?;
        Ok(Some((EventName::Progress, json!({ "task_id": task.to_string(), "cancel": status }))))
    }

    fn subscribe(&mut self, data: Value) -> ApiResult<Option<(EventName, Value)>> {
        self.check(Scope::Read)?;
        let field = |name: &str| data.get(name).and_then(Value::as_str);
        let filter = filter(field("lane"), field("session"), field("task"))?;
        if std::mem::take(&mut self.is_first) {
            self.subscriptions.clear();
        }
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return Err(ApiError::invalid(format!("a socket has at most {SUBSCRIPTIONS_MAX} subscriptions")));
        }
        self.subscriptions.push(filter);
        Ok(None)
    }
}
