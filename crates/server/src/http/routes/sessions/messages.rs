//! Messages to sessions: send, look up, withdraw, move, steer.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laneway_core::{MessageEnd, MessageId, MessageStatus, TaskId};
use laneway_protocol::{MessageAnswer, MessageRequest, MoveRequest, Receipt, SteerRequest, cancel_reason};

use crate::app::{App, Shared};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, Path, task_id};
use crate::service::send_message::{self, message_text};

/// Sends a message to a session. If the session is busy, the mode decides what happens.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages", tag = "sessions", params(("key" = String, Path)),
    request_body = MessageRequest, responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn send(
    State(app): Shared,
    caller: Caller,
    Path(key): Path<String>,
    Body(request): Body<MessageRequest>,
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    Ok((StatusCode::ACCEPTED, Json(send_message::send_message(&app, &caller, &key, request).await?)))
}

fn message_id(text: &str) -> ApiResult<MessageId> {
    task_id(text).map(|id| MessageId(id.0)).map_err(|_| ApiError::not_found("message"))
}

/// The message that a path names. A message of another session is not found.
async fn message_in(app: &App, (key, id): (String, String)) -> ApiResult<MessageId> {
    let message = message_id(&id)?;
    match app.handle.session_of(message).await? {
        Some(session) if session != key => Err(ApiError::not_found("message")),
        _ => Ok(message),
    }
}

/// The end of a message: the word, the turn, and the rule, reason or error.
pub(crate) fn ended(end: &MessageEnd) -> (&'static str, Option<TaskId>, Option<String>) {
    match end {
        MessageEnd::Delivered { turn } => ("delivered", Some(*turn), None),
        MessageEnd::Steered { turn } => ("steered", Some(*turn), None),
        MessageEnd::Dropped { rule } => ("dropped", None, Some(rule.as_str().to_owned())),
        MessageEnd::Cancelled { reason } => ("cancelled", None, Some(cancel_reason(*reason).to_owned())),
        MessageEnd::Parked { error, .. } => ("set_aside", None, Some(error.to_string())),
    }
}

/// The state of a message.
#[utoipa::path(
    get, path = "/api/sessions/{key}/messages/{id}", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 200, body = Receipt))
)]
pub(crate) async fn receipt(State(app): Shared, Path(parts): Path<(String, String)>) -> ApiJson<Receipt> {
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
        id: message_text(&message),
        status: word.to_owned(),
        ended,
        task_id: turn.map(|task| task.to_string()),
        detail,
        position,
    }))
}

/// Withdraws a waiting message, also one that waits for the running turn to take it.
#[utoipa::path(
    delete, path = "/api/sessions/{key}/messages/{id}", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 204, description = "The message is withdrawn."))
)]
pub(crate) async fn withdraw(
    State(app): Shared,
    Path(parts): Path<(String, String)>,
) -> ApiResult<StatusCode> {
    app.handle.withdraw(message_in(&app, parts).await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Moves a waiting message to another position.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages/{id}/move", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), request_body = MoveRequest,
    responses((status = 204, description = "The message has its new position."))
)]
pub(crate) async fn move_message(
    State(app): Shared,
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
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 204, description = "The message is next."))
)]
pub(crate) async fn send_now(
    State(app): Shared,
    Path(parts): Path<(String, String)>,
) -> ApiResult<StatusCode> {
    app.handle.send_now(message_in(&app, parts).await?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Passes a waiting message into the running turn.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages/{id}/promote", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn promote(
    State(app): Shared,
    caller: Caller,
    Path(parts): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    send_message::check_turn_owner(&app, &caller, &parts.0).await?;
    let message = message_in(&app, parts).await?;
    Ok((StatusCode::ACCEPTED, Json(send_message::promote(&app, message).await?)))
}

/// Sends a parked message again, as a new message.
#[utoipa::path(
    post, path = "/api/sessions/{key}/messages/{id}/resend", tag = "sessions",
    params(("key" = String, Path), ("id" = String, Path)), responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn resend(
    State(app): Shared,
    Path(parts): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    let message = message_in(&app, parts).await?;
    Ok((StatusCode::ACCEPTED, Json(send_message::resend(&app, message).await?)))
}

/// Steers the running turn with a text.
#[utoipa::path(
    post, path = "/api/sessions/{key}/steer", tag = "sessions", params(("key" = String, Path)),
    request_body = SteerRequest, responses((status = 202, body = MessageAnswer))
)]
pub(crate) async fn steer(
    State(app): Shared,
    caller: Caller,
    Path(key): Path<String>,
    Body(request): Body<SteerRequest>,
) -> ApiResult<(StatusCode, Json<MessageAnswer>)> {
    Ok((StatusCode::ACCEPTED, Json(send_message::steer_session(&app, &caller, &key, request.text).await?)))
}
