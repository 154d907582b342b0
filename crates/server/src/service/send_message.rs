//! Sends messages to sessions, the same way for HTTP and WebSocket.

use std::time::Duration;

use laneway_config::AgentConfig;
use laneway_core::{DropRule, MessageId, MessageReply, Mode, Otherwise, SendOutcome, TaskId};
use laneway_engine::NewMessage;
use laneway_protocol::{MessageAnswer, MessageRequest, Scope, ThreadId};

use crate::agents::handlers::{agent_of_kind, core_agent};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::task_id;
use crate::service::ask_agent::agent_named;
use crate::service::parse::name;
use crate::service::submission::{check_draining, token_lane};
use crate::service::tasks::check_owner;

/// The permission of a sender whose directives count.
const QUEUE_PERMISSION: &str = "queue";

/// Sends a message.
pub(crate) async fn send_message(
    app: &App,
    caller: &Caller,
    key: &str,
    request: MessageRequest,
) -> ApiResult<MessageAnswer> {
    let message = message(app, caller, key, request).await?;
    check_draining(app)?;
    Ok(message_answer(app.handle.send_message(message).await?))
}

/// Steers the running turn of a session. If the turn ends first, the text becomes a turn of its own.
pub(crate) async fn steer_session(
    app: &App,
    caller: &Caller,
    key: &str,
    text: String,
) -> ApiResult<MessageAnswer> {
    check_turn_owner(app, caller, key).await?;
    let session = key.to_owned();
    let Some(turn) = app.handle.read(move |lanes| lanes.turn_of_session(&session)).await? else {
        return Err(ApiError::not_found("turn that runs in this session"));
    };
    let agent = agent_named(app, agent_of_kind(turn.kind.as_str()).unwrap_or(turn.kind.as_str())).await?;
    let message = to_agent(app, caller, key, &agent, text)?;
    check_draining(app)?;
    let message = message.mode(Mode::Steer).steer(turn.id, Otherwise::Followup);
    Ok(message_answer(app.handle.send_message(message).await?))
}

/// Passes a waiting message into the running turn.
pub(crate) async fn promote(app: &App, message: MessageId) -> ApiResult<MessageAnswer> {
    Ok(message_answer(app.handle.promote(message).await?))
}

/// Sends a parked message again, as a new one.
pub(crate) async fn resend(app: &App, message: MessageId) -> ApiResult<MessageAnswer> {
    check_draining(app)?;
    Ok(message_answer(app.handle.resend(message).await?))
}

/// Refuses a caller that may not change the running turn of a session.
pub(crate) async fn check_turn_owner(app: &App, caller: &Caller, key: &str) -> ApiResult<()> {
    let key = key.to_owned();
    match app.handle.read(move |lanes| lanes.turn_of_session(&key)).await? {
        Some(turn) => check_owner(app, caller, turn.id).await,
        None => Ok(()),
    }
}

/// Sets one text of a message.
type Setter = fn(NewMessage, String) -> NewMessage;

async fn message(app: &App, caller: &Caller, key: &str, request: MessageRequest) -> ApiResult<NewMessage> {
    let agent = agent_named(app, &request.agent).await?;
    // A gateway sends for strangers with its own rights, so the permissions that it states for them decide.
    let may_configure = match &request.permissions {
        Some(permissions) => permissions.iter().any(|known| known == QUEUE_PERMISSION),
        None => caller.may(Scope::Admin),
    };
    let mut message = to_agent(app, caller, key, &agent, request.text)?;
    if may_configure {
        message = message.may_configure();
    }
    for permission in request.permissions.unwrap_or_default() {
        message = message.permission(name("permissions", permission)?.as_str());
    }
    let texts: [(Option<String>, Setter); 7] = [
        (request.message_id, |message, text| message.message_id(text)),
        (request.channel, |message, text| message.channel(text)),
        (request.to, |message, text| message.to(text)),
        (request.account, |message, text| message.account(text)),
        (request.thread.map(ThreadId::into_text), |message, text| message.thread(text)),
        (request.sender, |message, text| message.sender(text)),
        (request.sender_name, |message, text| message.sender_name(text)),
    ];
    for (text, set) in texts {
        if let Some(text) = text {
            message = set(message, text);
        }
    }
    if let Some(metadata) = &request.metadata {
        message = message.metadata(metadata);
    }
    if let Some(attachments) = request.attachments {
        message = message.attachments(attachments);
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
        (None, Some(_)) => Err(ApiError::invalid("otherwise needs turn_id, the turn to steer")),
        (None, None) => Ok(message),
    }
}

/// A plain message to an agent.
fn to_agent(
    app: &App,
    caller: &Caller,
    key: &str,
    agent: &AgentConfig,
    text: String,
) -> ApiResult<NewMessage> {
    let agent = core_agent(agent)?;
    let message = NewMessage::new(key, agent.name.as_str(), text).kind(agent.kind.as_str());
    let message = match token_lane(app, caller) {
        Some(lane) => message.asker(lane),
        None => message,
    };
    Ok(agent.lanes.iter().fold(message, |message, lane| message.lane(lane.as_str())))
}

pub(crate) fn mode(word: &str) -> ApiResult<Mode> {
    Mode::parse(word).ok_or_else(|| ApiError::invalid(format!("mode must be one of {}", Mode::CHOICES)))
}

pub(crate) fn drop_rule(word: &str) -> ApiResult<DropRule> {
    DropRule::parse(word)
        .ok_or_else(|| ApiError::invalid(format!("drop must be one of {}", DropRule::CHOICES)))
}

fn otherwise(word: Option<&str>) -> ApiResult<Otherwise> {
    match word {
        None | Some("followup") => Ok(Otherwise::Followup),
        Some("reject") => Ok(Otherwise::Reject),
        Some("drop") => Ok(Otherwise::Drop),
        Some(_) => Err(ApiError::invalid("otherwise must be one of followup, reject, drop")),
    }
}

fn message_answer(reply: MessageReply) -> MessageAnswer {
    let accepted = match reply.outcome {
        SendOutcome::Duplicate(same) => same,
        _ => reply.message,
    };
    MessageAnswer {
        id: message_text(&accepted),
        outcome: reply.outcome.as_str().to_owned(),
        task_id: reply.turn.map(|task| task.to_string()),
        position: reply.position,
        typing: reply.typing,
        reply: reply.reply,
    }
}

/// The id of a message as the wire writes it.
pub(crate) fn message_text(id: &MessageId) -> String {
    TaskId(id.0).to_string()
}
