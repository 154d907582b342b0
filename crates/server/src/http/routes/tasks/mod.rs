//! Tasks: submit, look at, change, cancel, explain, watch.

pub(crate) mod dead_letters;
pub(crate) mod groups;
pub(crate) mod list;
pub(crate) mod slots;
pub(crate) mod workers;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use laneway_core::{LaneName, Name, Selector, TaskId};
use laneway_engine::{Since, Submitted};
use laneway_protocol::{
    AcceptedTask, CancelAnswer, CancelManyAnswer, CancelManyRequest, ClientEvent, ExplainView, TaskChange,
    TaskRequest, TaskView,
};

use crate::app::Shared;
use crate::events::stream::{EventStream, TaskSnapshot};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult, TASK_ID};
use crate::http::extract::{Body, LAST_EVENT_ID, Path, header_text, task_id};
use crate::http::routes::agents::chat::REPLAYED;
use crate::service::ask_agent::status_of;
use crate::service::parse;
use crate::service::request_options::RequestOptions;
use crate::service::submit_task::submit_task;
use crate::service::tasks as service;

/// The path of all tasks.
const TASKS: &str = "/api/tasks/";

/// Submits a task.
#[utoipa::path(
    post, path = "/api/tasks", tag = "tasks", request_body = TaskRequest,
    params(("idempotency-key" = Option<String>, Header, description = "repeated requests with the same key submit one task")),
    responses((status = 202, body = AcceptedTask))
)]
pub(crate) async fn submit(
    State(app): Shared,
    caller: Caller,
    options: RequestOptions,
    Body(request): Body<TaskRequest>,
) -> ApiResult<Response> {
    let Submitted { task, joined: replayed, standing } =
        submit_task(&app, &caller, request, &options).await?;
    let accepted = AcceptedTask {
        id: task.to_string(),
        status: status_of(&app, task, &standing).await?.to_owned(),
        position: standing.position.map(|place| place as u64),
        eta_ms: standing.starts_in.map(|length| length.0),
        durability: app.handle.durability().as_str().to_owned(),
        replayed,
    };
    // The two headers share one allocation.
    let location = Bytes::from([TASKS, &accepted.id].concat());
    let id = HeaderValue::from_maybe_shared(location.slice(TASKS.len()..));
    let mut response = (StatusCode::ACCEPTED, Json(accepted)).into_response();
    if let (Ok(location), Ok(id)) = (HeaderValue::from_maybe_shared(location), id) {
        response.headers_mut().insert(header::LOCATION, location);
        response.headers_mut().insert(TASK_ID, id);
    }
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// The selector of a request by lane, session, kind and group. A session stands for its lane.
pub(super) fn selector(
    lane: Option<String>,
    session: Option<String>,
    kind: Option<String>,
    group: Option<String>,
) -> ApiResult<Selector> {
    if lane.is_some() && session.is_some() {
        return Err(ApiError::invalid("give a lane or a session, not both"));
    }
    let session = session.map(|key| LaneName::session(&key)).transpose();
    let session = session.map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    let named = |what: &str, text: Option<String>| -> ApiResult<Option<Name>> {
        text.map(|text| parse::name(what, text)).transpose()
    };
    Ok(Selector {
        lane: lane.map(parse::lane).transpose()?.or(session),
        kind: named("kind", kind)?,
        group: named("group", group)?,
        parent: None,
    })
}

/// The id of a parent.
pub(crate) fn parent(id: &str) -> ApiResult<TaskId> {
    task_id(id).map_err(|_| ApiError::invalid("parent must be the id of a task"))
}

/// A task, with its attempts.
#[utoipa::path(
    get, path = "/api/tasks/{id}", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = TaskView))
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> ApiJson<TaskView> {
    Ok(Json(service::view(&app, task_id(&id)?).await?))
}

/// Changes the priority of a waiting task.
#[utoipa::path(
    patch, path = "/api/tasks/{id}", tag = "tasks", params(("id" = String, Path)), request_body = TaskChange,
    responses((status = 200, body = TaskView))
)]
pub(crate) async fn change(
    State(app): Shared,
    caller: Caller,
    Path(id): Path<String>,
    Body(change): Body<TaskChange>,
) -> ApiJson<TaskView> {
    let task = task_id(&id)?;
    let priority = parse::level(&app, Some(&change.priority)).await?.unwrap_or_default();
    service::check_owner(&app, &caller, task).await?;
    app.handle.reprioritise(task, priority).await?;
    Ok(Json(service::view(&app, task).await?))
}

/// Cancels a task. The answer says in which state the task was.
#[utoipa::path(
    delete, path = "/api/tasks/{id}", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = CancelAnswer))
)]
pub(crate) async fn cancel(
    State(app): Shared,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiJson<CancelAnswer> {
    Ok(Json(service::cancel(&app, &caller, task_id(&id)?).await?))
}

/// Cancels all waiting tasks that match.
#[utoipa::path(
    post, path = "/api/tasks/cancel", tag = "tasks", request_body = CancelManyRequest,
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn cancel_many(
    State(app): Shared,
    caller: Caller,
    Body(request): Body<CancelManyRequest>,
) -> ApiJson<CancelManyAnswer> {
    let which = selector(request.lane, request.session, request.kind, request.group)?;
    let which = Selector { parent: request.parent.as_deref().map(parent).transpose()?, ..which };
    if which == Selector::default() {
        return Err(ApiError::invalid("the body must name a lane, a session, a kind, a group or a parent"));
    }
    if request.dry_run {
        let cancelled = app.handle.read(move |lanes| lanes.waiting_count(&which) as u64).await?;
        return Ok(Json(CancelManyAnswer { cancelled }));
    }
    let target = serde_json::json!({
        "lane": which.lane.as_ref().map(|lane| lane.as_str()),
        "kind": which.kind.as_ref().map(|kind| kind.as_str()),
        "group": which.group.as_ref().map(|group| group.as_str()),
        "parent": which.parent.map(|parent| parent.to_string()),
    });
    let cancelled = app.handle.cancel_waiting(which).await? as u64;
    let details = serde_json::json!({ "which": target, "cancelled": cancelled });
    app.record(&caller, ("task", "cancel_waiting"), "tasks", details).await?;
    Ok(Json(CancelManyAnswer { cancelled }))
}

/// Why a task waits.
#[utoipa::path(
    get, path = "/api/tasks/{id}/explain", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = ExplainView))
)]
pub(crate) async fn explain(State(app): Shared, Path(id): Path<String>) -> ApiJson<ExplainView> {
    Ok(Json(service::explain(&app, task_id(&id)?).await?))
}

/// The events of a task until its end.
#[utoipa::path(
    get, path = "/api/tasks/{id}/events", tag = "tasks",
    params(("id" = String, Path), ("last-event-id" = Option<String>, Header, description = "resumes after this event")),
    responses(
        (status = 200, body = ClientEvent, content_type = "text/event-stream"),
        (status = 204, description = "The client has seen the end.")
    )
)]
pub(crate) async fn events(
    State(app): Shared,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let task = task_id(&id)?;
    let last = header_text(&headers, &LAST_EVENT_ID)?;
    let since = last.map_or(Since::Now, |last| app.handle.hub().since(last));
    let resumes = matches!(since, Since::Event(_));
    let found = app.task_snapshot(task, if resumes { since } else { Since::Now }).await?;
    let TaskSnapshot { past, is_live, subscription } = found.ok_or_else(|| ApiError::not_found("task"))?;
    if app.handle.hub().has_shown_end(task, since) {
        // This answer makes a browser stop reconnecting.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let stream = EventStream::new(Arc::clone(&app), subscription);
    let stream = match (resumes, is_live) {
        (false, _) => stream.of_task(task, past),
        (true, true) => stream.of_task(task, Vec::new()),
        (true, false) => stream.of_task(task, Vec::new()).then_ends_with(task, past),
    };
    let stream = if since == Since::Unknown { stream.after_gap() } else { stream };
    Ok(stream.into_response())
}
