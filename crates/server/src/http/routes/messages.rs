//! Messages to sessions: sent, asked after, taken back, moved, steered.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laneway_config::Agent;
use laneway_core::{
    DropRule, MessageEnd, MessageId, MessageReply, MessageStatus, Mode, Otherwise, SendOutcome, TaskId,
};
use laneway_engine::Message;
use laneway_protocol::{
    MessageAnswer, MessageRequest, MoveRequest, Receipt, Scope, SteerRequest, cancel_reason,
};

use crate::agents::handlers::agent_kind;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, Path, task_id};
use crate::http::routes::chat::agent_named;
use crate::service::submission;

pub(crate) fn mode(word: &str) -> ApiResult<Mode> {
    Mode::parse(word).ok_or_else(|| ApiError::invalid(format!("mode must be one of {}", Mode::CHOICES)))
}

pub(crate) fn drop_rule(word: &str) -> ApiResult<DropRule> {
    DropRule::parse(word)
        .ok_or_else(|| ApiError::invalid(format!("drop must be one of {}", DropRule::CHOICES)))
}

/// Sets one text of a message.
type Setter = fn(Message, String) -> Message;

/// What a request says as a message to the queue.
pub(crate) fn message(app: &App, caller: &Caller, key: &str, request: MessageRequest) -> ApiResult<Message> {
    let agent = agent_named(app, &request.agent)?;
    let permissions = request.permissions.unwrap_or_default();
    let may_configure = caller.may(Scope::Admin) || permissions.iter().any(|known| known == "queue");
    let mut message = to_agent(app, caller, key, &agent, request.text);
    if may_configure {
        message = message.may_configure();
    }
    for permission in permissions {
        message = message.permission(submission::name("permissions", permission)?.as_str());
    }
    let texts: [(Option<String>, Setter); 7] = [
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
    if let Some(length) = request.max_wait_ms {
        message = message.max_wait(Duration::from_millis(length));
    }
    if request.heartbeat == Some(true) {
        message = message.heartbeat();
    }
    match (request.turn_id, request.otherwise) {
        (Some(turn), word) => Ok(message.steer(task_id(&turn)?, otherwise(word.as_deref())?)),
        (None, Some(_)) => Err(ApiError::invalid("otherwise goes with turn_id, the turn that is meant")),
        (None, None) => Ok(message),
    }
}

/// A plain message to an agent, whose turn needs the agent's lanes.
fn to_agent(app: &App, caller: &Caller, key: &str, agent: &Agent, text: String) -> Message {
    let name = agent.name.as_str();
    let message = Message::new(key, name, text).kind(agent_kind(name));
    let message = match submission::token_lane(app, caller) {
        Some(lane) => message.asker(lane),
        None => message,
    };
    match agent.lanes.as_deref() {
        // Its own lane alone, where not even the usual one is wanted.
        Some([]) => message.lane(format!("agent:{name}")),
        further => {
            further.iter().copied().flatten().fold(message, |message, lane| message.lane(lane.as_str()))
        }
    }
}

fn otherwise(word: Option<&str>) -> ApiResult<Otherwise> {
    match word {
        None | Some("followup") => Ok(Otherwise::Followup),
        Some("reject") => Ok(Otherwise::Reject),
        Some("drop") => Ok(Otherwise::Drop),
        Some(_) => Err(ApiError::invalid("otherwise must be one of followup, reject, drop")),
    }
}

/// Sends a message and says what became of it.
pub(crate) async fn send_message(app: &App, message: Message) -> ApiResult<MessageAnswer> {
    refuse_draining(app)?;
    Ok(told(app.handle.send_message(message).await?))
}

fn refuse_draining(app: &App) -> ApiResult<()> {
    let detail = "the server is shutting down and takes no new work";
    match app.draining.is_given() {
        true => Err(ApiError::new(laneway_protocol::Code::Draining, detail)),
        false => Ok(()),
    }
}

fn told(reply: MessageReply) -> MessageAnswer {
    let taken = match reply.outcome {
        SendOutcome::Duplicate(same) => same,
        _ => reply.message,
    };
    MessageAnswer {
        id: texted(&taken),
        outcome: reply.outcome.as_str().to_owned(),
        task_id: reply.turn.map(|task| task.to_string()),
        position: reply.position,
        typing: reply.typing,
        reply: reply.reply,
    }
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
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    let message = message(&app, &caller, &key, request)?;
    Ok((StatusCode::ACCEPTED, Json(send_message(&app, message).await?)))
}

fn message_id(text: &str) -> ApiResult<MessageId> {
    task_id(text).map(|id| MessageId(id.0)).map_err(|_| ApiError::not_found("message"))
}

/// The message that a path names. One that is in another session is not found in this one.
async fn message_in(app: &App, (key, id): (String, String)) -> ApiResult<MessageId> {
    let message = message_id(&id)?;
    match app.handle.session_of(message).await? {
        Some(session) if session != key => Err(ApiError::not_found("message")),
        _ => Ok(message),
    }
}

pub(crate) fn texted(id: &MessageId) -> String {
    TaskId(id.0).to_string()
}

/// How a message ended: the word for it, in which turn, and by which rule, for which reason or with which error.
pub(crate) fn ended(end: &MessageEnd) -> (&'static str, Option<TaskId>, Option<String>) {
    match end {
        MessageEnd::Delivered { turn } => ("delivered", Some(*turn), None),
        MessageEnd::Steered { turn } => ("steered", Some(*turn), None),
        MessageEnd::Dropped { rule } => ("dropped", None, Some(rule.as_str().to_owned())),
        MessageEnd::Cancelled { reason } => ("cancelled", None, Some(cancel_reason(*reason).to_owned())),
        MessageEnd::SetAside { error, .. } => ("set_aside", None, Some(error.to_string())),
    }
}

/// What became of a message.
#[utoipa::path(
    get, path = "/api/sessions/{key}/messages/{id}", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 200, body = Receipt))
)]
pub(crate) async fn receipt(
    State(app): State<Arc<App>>,
    Path(parts): Path<(String, String)>,
) -> ApiResult<Json<Receipt>> {
    let message = message_in(&app, parts).await?;
    let status = app.handle.message(message).await?.ok_or_else(|| ApiError::not_found("message"))?;
    let ended = matches!(status, MessageStatus::Ended { .. });
    let (word, turn, detail, position) = match status {
        MessageStatus::Waiting { position } => ("waiting", None, None, Some(position)),
        MessageStatus::Steering { turn } => ("steering", Some(turn), None, None),
        MessageStatus::Steered { turn, .. } => ("steered", Some(turn), None, None),
        MessageStatus::InTurn { turn } => ("in_turn", Some(turn), None, None),
        MessageStatus::Ended { end, .. } => {
            let (word, turn, detail) = self::ended(&end);
            (word, turn, detail, None)
        }
    };
    Ok(Json(Receipt {
        id: texted(&message),
        status: word.to_owned(),
        ended,
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
) -> ApiResult<StatusCode> {
    app.handle.withdraw(message_in(&app, parts).await?).await?;
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
) -> ApiResult<StatusCode> {
    let before = request.before.as_deref().map(message_id).transpose()?;
    app.handle.move_message(message_in(&app, parts).await?, before).await?;
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
) -> ApiResult<StatusCode> {
    app.handle.send_now(message_in(&app, parts).await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a message that was set aside once more, as a new one.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages/{id}/resend", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn resend(
    State(app): State<Arc<App>>,
    Path(parts): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    refuse_draining(&app)?;
    let message = message_in(&app, parts).await?;
    Ok((StatusCode::ACCEPTED, Json(told(app.handle.resend(message).await?))))
}

/// Says something to the running turn.
#[utoipa::path(
    post, path = "/api/sessions/{key}/steer", tag = "sessions", params(("key" = String, Path)),
    request_body = SteerRequest, responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn steer(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
    Body(request): Body<SteerRequest>,
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    Ok((StatusCode::ACCEPTED, Json(steer_session(&app, &caller, &key, request.text).await?)))
}

/// Says something to the running turn of a session; too late, it becomes a turn of its own.
pub(crate) async fn steer_session(
    app: &App,
    caller: &Caller,
    key: &str,
    text: String,
) -> ApiResult<MessageAnswer> {
    crate::http::routes::sessions::check_turn(app, caller, key).await?;
    let asked = key.to_owned();
    let Some(turn) = app.handle.read(move |lanes| lanes.turn_of_session(&asked)).await? else {
        return Err(ApiError::not_found("turn that runs in this session"));
    };
    let agent = agent_named(app, turn.kind.as_str().strip_prefix("agent:").unwrap_or(turn.kind.as_str()))?;
    let message =
        to_agent(app, caller, key, &agent, text).mode(Mode::Steer).steer(turn.id, Otherwise::Followup);
    send_message(app, message).await
}
