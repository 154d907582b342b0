//! Sessions and their messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use laneway_core::{
    DropRule, LaneName, Message as Waiting, MessageEnd, MessageId, MessageStatus, Millis, Mode, QueueOverrides,
    SessionView, TaskId, ToolLane,
};
use laneway_engine::Message;
use laneway_protocol::{
    At, CancelManyAnswer, MessageAnswer, MessageRequest, MessageView, MoveRequest, Page, Receipt, Scope,
    SessionChange, SessionStats, SessionSummary, SteerRequest, ToolLaneStats, cancel_reason, handler_word,
};
use serde_json::{Value, json};

use crate::app::App;
use crate::asks;
use crate::auth::Caller;
use crate::bus::{Filter, From};
use crate::chat::agent_named;
use crate::extract::{Body, Path, Query, header_text, task_id};
use crate::problem::{Answer, Refusal};
use crate::runners::agent_kind;
use crate::streams::Telling;
use crate::tasks::{PageQuery, bad_cursor, page_size};

fn mode(word: &str) -> Answer<Mode> {
    Mode::parse(word).ok_or_else(|| Refusal::invalid(format!("mode must be one of {}", Mode::CHOICES)))
}

fn drop_rule(word: &str) -> Answer<DropRule> {
    DropRule::parse(word).ok_or_else(|| Refusal::invalid(format!("drop must be one of {}", DropRule::CHOICES)))
}

/// What a request says as a message to the queue.
pub(crate) fn message(app: &App, caller: &Caller, key: &str, request: MessageRequest) -> Answer<Message> {
    let agent = agent_named(app, &request.agent)?;
    let permissions = request.permissions.unwrap_or_default();
    let may_configure = caller.may(Scope::Admin) || permissions.iter().any(|known| known == "queue");
    let name = agent.name.as_str();
    let mut message = Message::new(key, name, request.text).kind(agent_kind(name));
    for lane in agent.lanes.iter().flatten() {
        message = message.lane(lane.as_str());
    }
    if may_configure {
        message = message.may_configure();
    }
    for permission in permissions {
        message = message.permission(asks::name("permissions", permission)?.as_str());
    }
    let texts: [(Option<String>, fn(Message, String) -> Message); 7] = [
        (request.message_id, |message, text| message.message_id(text)),
        (request.channel, |message, text| message.channel(text)),
        (request.to, |message, text| message.to(text)),
        (request.account, |message, text| message.account(text)),
        (request.thread, |message, text| message.thread(text)),
        (request.sender, |message, text| message.sender(text)),
        (request.sender_name, |message, text| message.sender_name(text)),
    ];
    for (text, set) in texts {
        if let Some(text) = text {
            message = set(message, text);
        }
    }
    if let Some(word) = request.mode {
        message = message.mode(mode(&word)?);
    }
    if let Some(length) = request.debounce_ms {
        message = message.debounce(Duration::from_millis(length));
    }
    if let Some(cap) = request.cap {
        message = message.cap(cap);
    }
    if let Some(word) = request.drop {
        message = message.drop_rule(drop_rule(&word)?);
    }
    Ok(message)
}

/// Sends a message and says what became of it.
pub(crate) async fn send_message(app: &App, message: Message) -> Answer<MessageAnswer> {
    if app.draining.is_cancelled() {
        let detail = "the server is shutting down and takes no new work";
        return Err(Refusal::new(laneway_protocol::Code::Draining, detail));
    }
    let reply = app.handle.send_message(message).await?;
    Ok(MessageAnswer {
        id: TaskId(reply.message.0).to_string(),
        outcome: reply.outcome.as_str().to_owned(),
        task_id: reply.turn.map(|task| task.to_string()),
        position: reply.position,
        typing: reply.typing,
        reply: reply.reply,
    })
}

/// Sends a message to a session. If it is busy, the mode says what becomes of the message.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages", tag = "sessions", params(("key" = String, Path)),
    request_body = MessageRequest, responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn send(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
    Body(request): Body<MessageRequest>,
) -> Answer<(StatusCode, Json<MessageAnswer>)> {
    let message = message(&app, &caller, &key, request)?;
    Ok((StatusCode::ACCEPTED, Json(send_message(&app, message).await?)))
}

fn message_id(text: &str) -> Answer<MessageId> {
    task_id(text).map(|id| MessageId(id.0)).map_err(|_| Refusal::not_found("message"))
}

fn texted(id: &MessageId) -> String {
    TaskId(id.0).to_string()
}

fn waiting(message: &Waiting) -> MessageView {
    MessageView {
        id: texted(&message.id),
        text: message.text.to_string(),
        at: At(message.at),
        agent: message.address.agent.name.to_string(),
        channel: message.address.place.channel.as_deref().map(str::to_owned),
        sender_name: message.sender_name().map(str::to_owned),
    }
}

fn summary(view: &SessionView) -> SessionSummary {
    let setting = |value: String, from: &str| json!({ "value": value, "from": from });
    let queue = &view.queue;
    let mut settings = BTreeMap::new();
    settings.insert("mode".to_owned(), setting(queue.mode.value.as_str().to_owned(), queue.mode.origin.as_str()));
    settings.insert("debounce_ms".to_owned(), setting(queue.debounce.value.0.to_string(), queue.debounce.origin.as_str()));
    settings.insert("max_wait_ms".to_owned(), setting(queue.max_wait.value.0.to_string(), queue.max_wait.origin.as_str()));
    settings.insert("cap".to_owned(), setting(queue.cap.value.to_string(), queue.cap.origin.as_str()));
    settings.insert("drop".to_owned(), setting(queue.drop.value.as_str().to_owned(), queue.drop.origin.as_str()));
    let current_turn = view.turns.first().map(|turn| {
        json!({
            "task_id": turn.task.to_string(),
            "messages": turn.messages.iter().map(texted).collect::<Vec<_>>(),
            "takes_steering": turn.takes_steering,
            "pending": turn.pending.iter().map(texted).collect::<Vec<_>>(),
            "steered": turn.steered.iter().map(texted).collect::<Vec<_>>(),
        })
    });
    SessionSummary {
        key: view.key.clone(),
        is_busy: view.busy,
        typing: view.typing,
        settings,
        current_turn,
        messages: view.waiting.iter().map(waiting).collect(),
        dropped: view.dropped,
        retry_at: view.retry_at.map(At),
    }
}

/// The sessions of which there is something to remember.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", params(PageQuery),
    responses((status = 200, body = Page<SessionSummary>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<PageQuery>,
) -> Answer<Json<Page<SessionSummary>>> {
    let max = page_size(query.limit)?;
    let skip = query.cursor.as_deref().map(str::parse::<usize>).transpose().map_err(|_| bad_cursor())?;
    let skip = skip.unwrap_or(0);
    let sessions = app.handle.sessions().await?;
    let items: Vec<SessionSummary> = sessions.iter().skip(skip).take(max).map(summary).collect();
    let next = skip + items.len();
    Ok(Json(Page { items, next_cursor: (next < sessions.len()).then(|| next.to_string()) }))
}

/// A session.
#[utoipa::path(
    get, path = "/api/sessions/{key}", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = SessionSummary))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
) -> Answer<Json<SessionSummary>> {
    let view = app.handle.session(key).await?.ok_or_else(|| Refusal::not_found("session"))?;
    Ok(Json(summary(&view)))
}

/// How the tool lanes of a session stand.
#[utoipa::path(
    get, path = "/api/sessions/{key}/stats", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = SessionStats))
)]
pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
) -> Answer<Json<SessionStats>> {
    let tool_lanes = [ToolLane::Control, ToolLane::Query, ToolLane::Execute, ToolLane::Generate];
    let mut names = Vec::new();
    for lane in tool_lanes {
        let name = LaneName::tool(&key, lane).map_err(|error| Refusal::invalid(format!("session: {error}")))?;
        names.push((lane.as_str(), name));
    }
    let look = move |lanes: &laneway_core::Scheduler| {
        let mut stats = SessionStats::default();
        for (word, name) in names {
            let settings = lanes.settings_for(&name);
            let label = lanes.lane(&name).map(|view| view.label.to_owned());
            let label = label.unwrap_or_else(|| format!("session:*/{word}"));
            let seen = lanes.stats().find(|(known, _)| *known == label).map(|(_, stats)| stats);
            let (active, pending) = lanes.lane(&name).map_or((0, 0), |view| (view.running, view.waiting));
            let is_external = settings.handler == laneway_core::Handler::External;
            stats.total_active += active;
            stats.total_pending += pending;
            stats.external_pending += if is_external { pending } else { 0 };
            let lane = ToolLaneStats {
                pending,
                active,
                completed: seen.map_or(0, |seen| seen.completed),
                failed: seen.map_or(0, |seen| seen.failed),
                max_concurrency: settings.max_concurrency,
                handler_mode: handler_word(settings.handler).to_owned(),
            };
            stats.lanes.insert(word.to_owned(), lane);
        }
        stats
    };
    Ok(Json(app.handle.read(look).await?))
}

/// Says how the messages of this session are queued. What is left out stays.
#[utoipa::path(
    patch, path = "/api/sessions/{key}", tag = "sessions", params(("key" = String, Path)),
    request_body = SessionChange, responses((status = 200, body = SessionSummary))
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Body(change): Body<SessionChange>,
) -> Answer<Json<SessionSummary>> {
    let before = app.handle.session(key.clone()).await?.map(|view| view.overrides).unwrap_or_default();
    let asked = QueueOverrides {
        mode: change.mode.as_deref().map(mode).transpose()?,
        debounce: change.debounce_ms.map(Millis),
        max_wait: change.max_wait_ms.map(Millis),
        cap: change.cap,
        drop: change.drop.as_deref().map(drop_rule).transpose()?,
    };
    app.handle.configure_session(key.clone(), asked.over(before)).await?;
    get(State(app), Path(key)).await
}

/// What became of a message.
#[utoipa::path(
    get, path = "/api/sessions/{key}/messages/{id}", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 200, body = Receipt))
)]
pub(crate) async fn receipt(
    State(app): State<Arc<App>>,
    Path(parts): Path<(String, String)>,
) -> Answer<Json<Receipt>> {
    let (_, id) = parts;
    let message = message_id(&id)?;
    let status = app.handle.message(message).await?.ok_or_else(|| Refusal::not_found("message"))?;
    let (word, turn, detail, position) = match status {
        MessageStatus::Waiting { position } => ("waiting", None, None, Some(position)),
        MessageStatus::Steering { turn } => ("steering", Some(turn), None, None),
        MessageStatus::Steered { turn, .. } => ("steered", Some(turn), None, None),
        MessageStatus::InTurn { turn } => ("in_turn", Some(turn), None, None),
        MessageStatus::Ended { end, .. } => match end {
            MessageEnd::Delivered { turn } => ("delivered", Some(turn), None, None),
            MessageEnd::Steered { turn } => ("steered", Some(turn), None, None),
            MessageEnd::Dropped { rule } => ("dropped", None, Some(rule.as_str().to_owned()), None),
            MessageEnd::Cancelled { reason } => ("cancelled", None, Some(cancel_reason(reason).to_owned()), None),
            MessageEnd::SetAside { error, .. } => ("set_aside", None, Some(error.to_string()), None),
        },
    };
    Ok(Json(Receipt {
        id: texted(&message),
        status: word.to_owned(),
        task_id: turn.map(|task| task.to_string()),
        detail,
        position,
    }))
}

/// Takes a waiting message back.
#[utoipa::path(
    delete, path = "/api/sessions/{key}/messages/{id}", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 204, description = "it is gone"))
)]
pub(crate) async fn withdraw(
    State(app): State<Arc<App>>,
    Path(parts): Path<(String, String)>,
) -> Answer<StatusCode> {
    let (_, id) = parts;
    app.handle.withdraw(message_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a waiting message another place in line.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages/{id}/move", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), request_body = MoveRequest,
    responses((status = 204, description = "it has its new place"))
)]
pub(crate) async fn move_message(
    State(app): State<Arc<App>>,
    Path(parts): Path<(String, String)>,
    Body(request): Body<MoveRequest>,
) -> Answer<StatusCode> {
    let (_, id) = parts;
    let before = request.before.as_deref().map(message_id).transpose()?;
    app.handle.move_message(message_id(&id)?, before).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a waiting message next.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages/{id}/send-now", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 204, description = "it is next"))
)]
pub(crate) async fn send_now(
    State(app): State<Arc<App>>,
    Path(parts): Path<(String, String)>,
) -> Answer<StatusCode> {
    let (_, id) = parts;
    app.handle.send_now(message_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels the turn that is under way; what waits goes on.
#[utoipa::path(
    post, path = "/api/sessions/{key}/interrupt", tag = "sessions", params(("key" = String, Path)),
    responses((status = 204, description = "it was told to stop"))
)]
pub(crate) async fn interrupt(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
) -> Answer<StatusCode> {
    app.handle.interrupt(key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels the messages that wait.
#[utoipa::path(
    post, path = "/api/sessions/{key}/clear", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn clear(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
) -> Answer<Json<CancelManyAnswer>> {
    let cancelled = app.handle.clear_session(key).await? as u64;
    Ok(Json(CancelManyAnswer { cancelled }))
}

/// Says something to the running turn.
#[utoipa::path(
    post, path = "/api/sessions/{key}/steer", tag = "sessions", params(("key" = String, Path)),
    request_body = SteerRequest, responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn steer(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Body(request): Body<SteerRequest>,
) -> Answer<(StatusCode, Json<MessageAnswer>)> {
    Ok((StatusCode::ACCEPTED, Json(steer_session(&app, &key, request.text).await?)))
}

/// Says something to the running turn of a session; too late, it becomes a turn of its own.
pub(crate) async fn steer_session(app: &App, key: &str, text: String) -> Answer<MessageAnswer> {
    let view = app.handle.session(key.to_owned()).await?;
    let turn = view.and_then(|view| view.turns.first().map(|turn| turn.task));
    let Some(turn) = turn else { return Err(Refusal::not_found("turn that runs in this session")) };
    let kind = app.handle.task(turn).await?.map(|view| view.kind.to_string()).unwrap_or_default();
    let agent = kind.strip_prefix("agent:").unwrap_or(&kind);
    let message = Message::new(key, agent, text).kind(agent_kind(agent)).mode(Mode::Steer);
    let message = message.steer(turn, laneway_core::Otherwise::Followup);
    send_message(app, message).await
}

/// Everything that happens in a session.
#[utoipa::path(
    get, path = "/api/sessions/{key}/events", tag = "sessions",
    params(("key" = String, Path), ("last-event-id" = Option<String>, Header, description = "goes on after this")),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let lane = LaneName::session(&key).map_err(|error| Refusal::invalid(format!("session: {error}")))?;
    let last = header_text(&headers, "last-event-id")?;
    let from = last.map_or(From::Now, |last| app.bus.from_id(last));
    let watch = app.bus.watch(Filter { task: None, lane: Some(lane) }, from);
    Ok(Telling::new(app, watch).into_response())
}

/// What an event of a session means to watchers; `None`: nothing.
pub(crate) fn told(change: &laneway_core::SessionChange) -> Option<(laneway_protocol::EventName, Value)> {
    use laneway_core::{SessionChange as Change, Way};
    use laneway_protocol::EventName;
    match change {
        Change::Accepted { message, way } => {
            let outcome = match way {
                Way::Line => "queued",
                Way::Steer { .. } => "steered",
                Way::Both { .. } => "steered_and_queued",
            };
            Some((EventName::Message, json!({ "message_id": texted(&message.id), "outcome": outcome })))
        }
        Change::TurnBegan { messages, .. } => {
            let messages: Vec<String> = messages.iter().map(texted).collect();
            Some((EventName::Typing, json!({ "messages": messages })))
        }
        Change::Taken { messages, .. } => {
            let messages: Vec<String> = messages.iter().map(texted).collect();
            Some((EventName::Steered, json!({ "messages": messages })))
        }
        Change::Ended { message, end } => {
            let outcome = match end {
                MessageEnd::Delivered { .. } => "delivered",
                MessageEnd::Steered { .. } => "steered",
                MessageEnd::Dropped { .. } => "dropped",
                MessageEnd::Cancelled { .. } => "cancelled",
                MessageEnd::SetAside { .. } => "set_aside",
            };
            Some((EventName::Message, json!({ "message_id": texted(message), "outcome": outcome })))
        }
        _ => None,
    }
}
