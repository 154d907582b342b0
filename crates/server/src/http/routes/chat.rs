//! Asking an agent: wait for the answer, watch it come, or come back later.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use laneway_config::Agent;
use laneway_core::{End, TaskId, TaskStatus};
use laneway_engine::{Ending, Standing, TaskHandle};
use laneway_protocol::{
    AcceptedExecution, AcceptedTurn, ChatAnswer, ChatRequest, ExecutionSummary, end_word, status_word,
};

use crate::app::App;
use crate::events::board::Reach;
use crate::events::hub::{Expecting, Filter, From};
use crate::events::sse::Telling;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult, TASK_ID};
use crate::http::extract::{Body, Path};
use crate::service::submission::{self, Form, RequestOptions};

/// Says that an earlier request under the same key had brought the task.
pub(crate) const REPLAYED: &str = "idempotency-replayed";

/// One turn of a conversation.
#[utoipa::path(
    post, path = "/api/agents/{agent}/chat", tag = "agents", request_body = ChatRequest,
    params(
        ("agent" = String, Path),
        ("x-source-agent" = Option<String>, Header, description = "the agent that asks"),
        ("x-laneway-parent" = Option<String>, Header, description = "the running task that asks and waits"),
        ("idempotency-key" = Option<String>, Header, description = "asking twice is asking once"),
        ("x-detach" = Option<String>, Header, description = "true: goes on when the caller has gone"),
        ("prefer" = Option<String>, Header, description = "respond-async: answers when it is accepted"),
    ),
    responses((status = 200, body = ChatAnswer), (status = 202, body = AcceptedTurn))
)]
pub(crate) async fn chat(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(agent): Path<String>,
    options: ApiResult<RequestOptions>,
    Body(request): Body<ChatRequest>,
) -> ApiResult<Response> {
    ask(app, caller, &agent, Form::Chat, options, request).await
}

/// One stateless task: parallel to all others.
#[utoipa::path(
    post, path = "/api/agents/{agent}/task", tag = "agents", request_body = ChatRequest,
    params(
        ("agent" = String, Path),
        ("idempotency-key" = Option<String>, Header, description = "asking twice is asking once"),
        ("x-detach" = Option<String>, Header, description = "true: goes on when the caller has gone"),
        ("prefer" = Option<String>, Header, description = "respond-async: answers when it is accepted"),
    ),
    responses((status = 200, body = ChatAnswer), (status = 202, body = AcceptedTurn))
)]
pub(crate) async fn task(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(agent): Path<String>,
    options: ApiResult<RequestOptions>,
    Body(request): Body<ChatRequest>,
) -> ApiResult<Response> {
    ask(app, caller, &agent, Form::Task, options, request).await
}

pub(crate) fn agent_named(app: &App, name: &str) -> ApiResult<Agent> {
    app.config().agent(name).cloned().ok_or_else(|| ApiError::not_found("agent"))
}

async fn ask(
    app: Arc<App>,
    caller: Caller,
    name: &str,
    form: Form,
    options: ApiResult<RequestOptions>,
    request: ChatRequest,
) -> ApiResult<Response> {
    let agent = agent_named(&app, name)?;
    let options = options?;
    let asked = submission::turn(&app, &caller, &agent, form, request, &options)?;
    let expecting = options.stream.then(|| app.bus.expect());
    let is_connected = !options.detach && !options.is_async;
    let task = match is_connected {
        true => submission::submit_held(&app, asked.at_home(&app)).await,
        false => submission::submit(&app, asked).await,
    };
    let task = task.map_err(|refusal| refusal.of_agent(name))?;
    let id = task.id();
    let replayed = task.joined();
    let answered = match (options.is_async, expecting) {
        (true, _) => accepted(&app, task).await,
        (false, Some(expecting)) => {
            let reach = if is_connected { Reach::Here } else { Reach::Everywhere };
            watched(&app, task, expecting, reach).await
        }
        (false, None) => waited(&app, task, name).await,
    };
    // What is told of the task is told with every answer, a refusal too.
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        headers.insert(TASK_ID, id);
    }
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// What there is to tell of a task that somebody else has asked for already.
pub(crate) async fn replay(app: &Arc<App>, id: TaskId) -> ApiResult<Telling> {
    // Nothing is heard that is seen already; watched before it is looked at, so that nothing falls between.
    app.bus.caught_up().await;
    let watch = app.bus.watch(Filter { task: Some(id), lane: None }, From::Now);
    let story = app.story_of(id).await?.unwrap_or_default();
    Ok(Telling::new(Arc::clone(app), watch).of_task(id, story))
}

/// How a turn stands, or stood when it was accepted.
pub(crate) async fn execution(app: &App, id: TaskId, standing: &Standing) -> ApiResult<AcceptedExecution> {
    Ok(AcceptedExecution {
        id: id.to_string(),
        status: status_of(app, id, standing).await?.to_owned(),
        position: standing.position.map(|place| place as u64),
        eta_ms: standing.starts_in.map(|length| length.0),
    })
}

async fn accepted(app: &App, task: TaskHandle) -> ApiResult<Response> {
    let (id, standing) = (task.id(), task.standing());
    task.detach();
    let execution = execution(app, id, &standing).await?;
    let durability = app.handle.durability().as_str().to_owned();
    let body = Json(AcceptedTurn { execution, durability });
    let location = format!("/api/tasks/{id}");
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], body).into_response())
}

/// What a task does that was accepted, or how it ended already.
pub(crate) async fn status_of(app: &App, id: TaskId, standing: &Standing) -> ApiResult<&'static str> {
    match standing.status {
        Some(TaskStatus::Retrying) => Ok("queued"),
        Some(status) => Ok(status_word(status)),
        None => {
            let finished = app.handle.finished(id).await?;
            Ok(finished.map_or("ended", |(finished, _)| end_word(&finished.end)))
        }
    }
}

/// The events of the task, which is let go of with the stream.
async fn watched(
    app: &Arc<App>,
    task: TaskHandle,
    expecting: Expecting,
    reach: Reach,
) -> ApiResult<Response> {
    let id = task.id();
    let telling = match task.joined() {
        false => Telling::new(Arc::clone(app), expecting.of(id, reach)).of_task(id, Vec::new()),
        true => {
            drop(expecting);
            replay(app, id).await?
        }
    };
    Ok(telling.hold(Some(task)).into_response())
}

/// Waits for the end. Dropping the future, as when the client has gone, lets go of the task.
async fn waited(app: &App, task: TaskHandle, agent: &str) -> ApiResult<Response> {
    let (id, standing) = (task.id(), task.standing());
    let ending = task.ending().await.map_err(|error| app.unfinished(id, error).of_agent(agent))?;
    Ok(Json(answer(app, id, standing, ending, agent).await?).into_response())
}

/// What is told of a turn that has ended.
pub(crate) async fn answer(
    app: &App,
    id: TaskId,
    standing: Standing,
    ending: Ending,
    agent: &str,
) -> ApiResult<ChatAnswer> {
    if ending.end != End::Completed {
        return Err(ApiError::ended(id, &ending.end).of_agent(agent));
    }
    let response = ending.result.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let finished = app.handle.finished(id).await?.map(|(finished, _)| finished);
    let started = finished.as_ref().and_then(|finished| finished.started);
    let wait_ms = finished.as_ref().zip(started).map_or(0, |(finished, at)| at.since(finished.submitted).0);
    let run_ms = finished.as_ref().zip(started).map_or(0, |(finished, at)| finished.ended.since(at).0);
    let was_queued = standing.status == Some(TaskStatus::Queued);
    let queue_status = match (was_queued, standing.position) {
        (true, Some(place)) => format!("queued:{place}"),
        (true, None) => "queued:1".to_owned(),
        (false, _) => "running".to_owned(),
    };
    let execution = ExecutionSummary {
        id: id.to_string(),
        queue_status,
        was_queued,
        wait_ms,
        run_ms,
        attempt: ending.attempts,
    };
    Ok(ChatAnswer { response, execution })
}
