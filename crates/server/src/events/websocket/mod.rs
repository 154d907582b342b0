//! The WebSocket: several runs and subscriptions on one connection.

mod requests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use laneway_core::{LaneName, TaskId};
use laneway_engine::{Error, Filter, Since, TaskHandle};
use laneway_protocol::{ClientEvent, Code, EventFrame, EventName, Scope};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::app::{App, Shared};
use crate::events::sse::access_checks;
use crate::events::stream::{EventStream, StreamEvent, lane_numbers, of_all_replicas};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Query, decode};
use crate::http::limits::InFlight;
use crate::http::routes::events::EventsQuery;
use crate::service::request_options::RequestOptions;

/// How often the server pings, and how long a socket may be silent before the server drops it.
const PING_EVERY: Duration = Duration::from_secs(20);
const SILENT_MAX: Duration = Duration::from_secs(60);
/// How long sending a frame may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The reason for closing a socket whose token was removed, or that was opened when no token was needed.
const NO_ACCESS: &str = "the access of this socket has ended: open another socket with a token";

/// A WebSocket for events that match, and for runs of the client's own.
#[utoipa::path(
    get, path = "/api/ws", tag = "events", params(EventsQuery),
    responses((status = 101, description = "Each frame is {event, data, id?}: a ClientEvent and its id.", body = ClientEvent))
)]
pub(crate) async fn upgrade(
    State(app): Shared,
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
    let since = query.last_event_id.as_deref().map_or(Since::Now, |last| app.handle.hub().since(last));
    let most = app.config.load().server.body_bytes_max as usize;
    let upgrade = upgrade.max_message_size(most).max_frame_size(most);
    let connection = app.connections.token();
    Ok(upgrade.on_upgrade(move |socket| async move {
        let subscription = app.handle.hub().subscribe(of_all_replicas(Filter::default()), since);
        let stream = EventStream::new(Arc::clone(&app), subscription);
        let mut client = Client {
            app,
            caller,
            socket,
            subscriptions: vec![first],
            is_first: true,
            resumes: query.last_event_id.is_some(),
            runs: HashMap::new(),
            traceparent,
            has_access: true,
        };
        client.tell_first_numbers().await;
        client.serve(stream).await;
        // The socket counts as in flight until it is closed.
        drop((in_flight, connection));
    }))
}

struct Client {
    app: Arc<App>,
    caller: Caller,
    socket: WebSocket,
    subscriptions: Vec<Filter>,
    /// The client has not sent a `subscribe` frame.
    is_first: bool,
    /// The client has seen earlier events.
    resumes: bool,
    /// The client's own runs. They are cancelled with the socket, unless they are detached.
    runs: HashMap<TaskId, Run>,
    traceparent: Option<String>,
    has_access: bool,
}

/// A run of the client's own.
struct Run {
    /// `None` if the run is detached.
    _hold: Option<TaskHandle>,
    /// The id of the frame that asked for it.
    reference: Option<String>,
    /// An earlier request with the same key submitted it.
    replayed: bool,
}

impl Run {
    /// Adds the id of the frame to an event of the run.
    fn mark(&self, data: &mut Value) {
        if let Some(reference) = &self.reference {
            data["request_id"] = reference.as_str().into();
        }
        if self.replayed {
            data["replayed"] = true.into();
        }
    }
}

/// A frame of a client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    event: String,
    #[serde(default)]
    data: Value,
    /// The server repeats it in each answer to this frame.
    #[serde(default)]
    id: Option<String>,
}

impl Client {
    async fn serve(&mut self, mut stream: EventStream) {
        let (mut received, mut ping_at) = (Instant::now(), Instant::now() + PING_EVERY);
        let mut checks = access_checks();
        loop {
            let is_fine = tokio::select! {
                message = self.socket.recv() => match message {
                    Some(Ok(Message::Text(text))) => {
                        received = Instant::now();
                        self.receive(text.as_bytes()).await
                    }
                    Some(Ok(Message::Binary(bytes))) => {
                        let admitted = self.admit(bytes.len());
                        let problem = admitted.err().unwrap_or(ApiError::invalid("frames are texts in JSON"));
                        self.refuse(problem, None).await
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                        received = Instant::now();
                        true
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                },
                event = stream.next() => match event {
                    Some(event) => self.pass_on(event).await,
                    // The server stops, and all events before that have been sent.
                    None => break,
                },
                _ = checks.tick() => {
                    self.check_access();
                    true
                }
                () = tokio::time::sleep_until(ping_at) => {
                    ping_at = Instant::now() + PING_EVERY;
                    received.elapsed() < SILENT_MAX && self.send(Message::Ping(Vec::new().into())).await
                }
            };
            if !self.has_access {
                return self.close(close_code::POLICY, NO_ACCESS).await;
            }
            if !is_fine {
                return;
            }
        }
        self.send_unfinished().await;
        self.close(close_code::AWAY, "the server is shutting down").await;
    }

    /// Sends the numbers of the lane in the address, unless the client resumes.
    async fn tell_first_numbers(&mut self) {
        let lane = self.subscriptions.first().filter(|filter| filter.task.is_none());
        let lane = lane.and_then(|filter| filter.lane.clone());
        if let Some(lane) = lane.filter(|_| !self.resumes && self.caller.may(Scope::Read)) {
            self.tell_numbers(lane).await;
        }
    }

    /// Sends the numbers of a lane as an event. Later events come from a subscription that is older than these numbers.
    async fn tell_numbers(&mut self, lane: LaneName) {
        let now = self.app.now();
        if lane.is_session() {
            return;
        }
        // Without the store there are no numbers.
        if let Ok(numbers) = self.app.handle.read(move |state| lane_numbers(state, &lane, now)).await {
            self.frame(numbers.name().as_str(), numbers.data(), None).await;
        }
    }

    /// Sends an error for each run of the client that has not ended.
    async fn send_unfinished(&mut self) {
        for (task, run) in std::mem::take(&mut self.runs) {
            let refusal = self.app.unfinished(task, Error::Closed);
            let mut data = serde_json::to_value(&*refusal.problem).unwrap_or_default();
            run.mark(&mut data);
            if !self.frame(EventName::Error.as_str(), data, None).await {
                return;
            }
        }
    }

    fn check_access(&mut self) {
        self.has_access = self.app.has_access(self.caller.token.as_deref());
    }

    /// Admits a frame under the rules of a request: the token must be valid and within its limits.
    fn admit(&mut self, bytes: usize) -> ApiResult<()> {
        self.check_access();
        if !self.has_access {
            return Err(ApiError::new(Code::Unauthorized, NO_ACCESS));
        }
        let Some(token) = &self.caller.token else { return Ok(()) };
        self.app.callers.count(token, bytes as u64, self.app.now(), &self.app.config().server)
    }

    async fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code, reason: reason.into() };
        self.send(Message::Close(Some(frame))).await;
    }

    async fn send(&mut self, message: Message) -> bool {
        matches!(tokio::time::timeout(SEND_TIMEOUT, self.socket.send(message)).await, Ok(Ok(())))
    }

    async fn frame(&mut self, event: &str, data: Value, id: Option<String>) -> bool {
        let frame = EventFrame { event: event.to_owned(), data, id };
        let text = serde_json::to_string(&frame).unwrap_or_default();
        self.send(Message::Text(text.into())).await
    }

    /// Sends an event if the client wants it. Returns whether the socket still works.
    async fn pass_on(&mut self, event: StreamEvent) -> bool {
        let own = event.task.and_then(|task| self.runs.get(&task));
        let may_read = self.caller.may(Scope::Read);
        let is_subscribed = may_read && self.subscriptions.iter().any(|filter| event.fits(filter));
        if own.is_none() && !is_subscribed && event.name() != EventName::Gap {
            return true;
        }
        let (name, mut data) = event.event.on_wire();
        let name = name.to_owned();
        if let Some(run) = own {
            run.mark(&mut data);
        }
        if let (EventName::Done, Some(task)) = (event.name(), event.task) {
            self.runs.remove(&task);
        }
        self.frame(&name, data, event.id).await
    }

    async fn refuse(&mut self, refusal: ApiError, reference: Option<String>) -> bool {
        self.app.count_rejection(refusal.labels());
        let mut data = serde_json::to_value(&*refusal.problem).unwrap_or_default();
        if let Some(reference) = reference {
            data["request_id"] = reference.into();
        }
        self.frame(EventName::Error.as_str(), data, None).await
    }

    async fn receive(&mut self, text: &[u8]) -> bool {
        let admitted = self.admit(text.len());
        let frame: Frame = match decode(text) {
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
            "subscribe" => self.subscribe(frame.data).await,
            _ => Err(ApiError::invalid("event must be one of submit, message, cancel, steer, subscribe")),
        };
        match done {
            Ok(None) => true,
            Ok(Some(answer)) => {
                let mut data = answer.data();
                if let Some(reference) = reference {
                    data["request_id"] = reference.into();
                }
                self.frame(answer.name().as_str(), data, None).await
            }
            Err(refusal) => self.refuse(refusal, reference).await,
        }
    }
}
