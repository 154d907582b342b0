//! Requests to agents: wait for the answer, stream it, or fetch it later.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use laneway_protocol::{AcceptedTurn, ChatAnswer, ChatRequest};

use crate::app::{App, Shared};
use crate::http::auth::Caller;
use crate::http::error::{ApiResult, TASK_ID};
use crate::http::extract::{Body, Path};
use crate::service::ask_agent::{AgentCall, AgentRun, Form, ask_agent};
use crate::service::request_options::RequestOptions;

/// Marks the answer to a repeated request: an earlier one with the same key submitted the task.
pub(crate) const REPLAYED: &str = "idempotency-replayed";

/// Asks an agent for a turn of a session.
#[utoipa::path(
    post, path = "/api/agents/{agent}/chat", tag = "agents", request_body = ChatRequest,
    params(
        ("agent" = String, Path),
        ("x-source-agent" = Option<String>, Header, description = "the agent that sends the request"),
        ("x-laneway-parent" = Option<String>, Header, description = "the running task that sends the request and waits"),
        ("idempotency-key" = Option<String>, Header, description = "repeated requests with the same key submit one task"),
        ("x-detach" = Option<String>, Header, description = "true: the task survives the connection"),
        ("prefer" = Option<String>, Header, description = "respond-async: the server answers when the task is accepted"),
    ),
    responses((status = 200, body = ChatAnswer), (status = 202, body = AcceptedTurn))
)]
pub(crate) async fn chat(
    State(app): Shared,
    caller: Caller,
    Path(agent): Path<String>,
    options: RequestOptions,
    Body(request): Body<ChatRequest>,
) -> ApiResult<Response> {
    ask(app, caller, &agent, Form::Chat, options, request).await
}

/// Asks an agent for a stateless task, which runs in parallel to others.
#[utoipa::path(
    post, path = "/api/agents/{agent}/task", tag = "agents", request_body = ChatRequest,
    params(
        ("agent" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "repeated requests with the same key submit one task"),
        ("x-detach" = Option<String>, Header, description = "true: the task survives the connection"),
        ("prefer" = Option<String>, Header, description = "respond-async: the server answers when the task is accepted"),
    ),
    responses((status = 200, body = ChatAnswer), (status = 202, body = AcceptedTurn))
)]
pub(crate) async fn task(
    State(app): Shared,
    caller: Caller,
    Path(agent): Path<String>,
    options: RequestOptions,
    Body(request): Body<ChatRequest>,
) -> ApiResult<Response> {
    ask(app, caller, &agent, Form::Task, options, request).await
}

async fn ask(
    app: Arc<App>,
    caller: Caller,
    agent: &str,
    form: Form,
    options: RequestOptions,
    request: ChatRequest,
) -> ApiResult<Response> {
    let is_async = options.is_async;
    let watches = options.stream && !is_async;
    let run = ask_agent(&app, &caller, AgentCall { agent, form, request, options, watches }).await?;
    let (id, is_replay) = (run.id(), run.is_replay());
    let answered = if is_async { accepted(run).await } else { waited(run).await };
    // Errors after acceptance carry the task's headers too.
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(TASK_ID, id);
    }
    if is_replay {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

async fn accepted(run: AgentRun) -> ApiResult<Response> {
    let location = format!("/api/tasks/{}", run.id());
    let turn = Json(run.into_accepted().await?);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], turn).into_response())
}

/// Streams the events or waits for the answer. The caller's hold on the task ends with the response.
async fn waited(mut run: AgentRun) -> ApiResult<Response> {
    match run.events().await? {
        Some(events) => Ok(events.hold(Some(run.into_task())).into_response()),
        None => Ok(Json(run.answer().await?).into_response()),
    }
}
