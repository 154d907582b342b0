//! Tasks: submit, list, look at, change, cancel, explain, watch.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use laneway_core::{LaneName, Name, Rejection, Reply, Selector, TaskId};
use laneway_engine::{Error, Standing, Submitted};
use laneway_protocol::{
    AcceptedTask, CancelAnswer, CancelManyAnswer, CancelManyRequest, ExplainView, Scope, TaskChange,
    TaskRequest, TaskView, end_word, status_word,
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::events::hub::{Filter, From};
use crate::events::sse::Telling;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult, TASK_ID};
use crate::http::extract::{Body, LAST_EVENT_ID, Path, header_text, task_id};
use crate::http::routes::chat::{REPLAYED, replay, status_of};
use crate::service::envelope::Envelope;
use crate::service::submission::{self, RequestOptions};
use crate::service::task_view;

/// How many items a page has when nothing is said, and at most.
pub(crate) const PAGE: (usize, usize) = (50, 500);

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// How many at most. Default 50, at most 500.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<usize>,
    /// Where the page before ended.
    pub(crate) cursor: Option<String>,
    /// A browser's way to show its token.
    #[param(ignore)]
    pub(crate) access_token: Option<String>,
}

pub(crate) fn page_size(limit: Option<usize>) -> ApiResult<usize> {
    match limit {
        None => Ok(PAGE.0),
        Some(limit) if (1..=PAGE.1).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::invalid(format!("limit must be from 1 to {}", PAGE.1))),
    }
}

pub(crate) fn bad_cursor() -> ApiError {
    ApiError::invalid("cursor must be the next_cursor of the page before")
}

/// Where each task is.
const TASKS: &str = "/api/tasks/";

/// Asks for a task.
#[utoipa::path(
    post, path = "/api/tasks", tag = "tasks", request_body = TaskRequest,
    params(("idempotency-key" = Option<String>, Header, description = "asking twice is asking once")),
    responses((status = 202, body = AcceptedTask))
)]
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    caller: Caller,
    options: ApiResult<RequestOptions>,
    Body(request): Body<TaskRequest>,
) -> ApiResult<Response> {
    let asked = submission::task(&app, &caller, request, &options?).await?;
    let Submitted { task, joined: replayed, standing } = submission::hand_in(&app, asked).await?;
    let accepted = AcceptedTask {
        id: task.to_string(),
        status: status_of(&app, task, &standing).await?.to_owned(),
        position: standing.position.map(|place| place as u64),
        eta_ms: standing.starts_in.map(|length| length.0),
        durability: app.handle.durability().as_str().to_owned(),
        replayed,
    };
    // Two headers that share one text.
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

/// What a request means by lane, session, kind and group. A session is its lane.
pub(crate) fn selector(
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
        text.map(|text| submission::name(what, text)).transpose()
    };
    Ok(Selector {
        lane: lane.map(submission::lane).transpose()?.or(session),
        kind: named("kind", kind)?,
        group: named("group", group)?,
        parent: None,
    })
}

/// The task that asked for others.
pub(crate) fn parent(id: &str) -> ApiResult<TaskId> {
    task_id(id).map_err(|_| ApiError::invalid("parent must be the id of a task"))
}

/// A task.
#[utoipa::path(
    get, path = "/api/tasks/{id}", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = TaskView))
)]
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult<Json<TaskView>> {
    let task = task_id(&id)?;
    let record = app.handle.record(task).await?.ok_or_else(|| ApiError::not_found("task"))?;
    let attempt_list = crate::service::attempt_view::of(&record);
    let envelope = record.payload.as_deref().map(Envelope::open);
    let view = match (&record.live, &record.finished) {
        (Some(view), _) => {
            let standing = app.handle.read(move |lanes| Standing::of(lanes, task)).await?;
            task_view::live(view, standing, Some(envelope.unwrap_or_default()))
        }
        (None, Some(finished)) => {
            let result = record.result.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
            task_view::finished(finished, result, envelope)
        }
        (None, None) => return Err(ApiError::not_found("task")),
    };
    Ok(Json(TaskView { attempt_list, ..view }))
}

/// Refuses whoever may not change this task.
pub(crate) async fn check_owner(app: &App, caller: &Caller, task: TaskId) -> ApiResult<()> {
    if caller.may(Scope::Admin) {
        return Ok(());
    }
    let Some(view) = app.handle.task(task).await? else { return Ok(()) };
    let envelope = task_view::envelope_of(&app.handle, &view).await?;
    // What answers messages belongs to its session, which everybody may use who may submit.
    let is_sessions = move |lanes: &laneway_core::Scheduler| lanes.turn_content(task).is_some();
    match caller.owns(envelope.owner.as_deref()) || app.handle.read(is_sessions).await? {
        true => Ok(()),
        false => Err(ApiError::forbidden("the task is another token's; only the scope admin may change it")),
    }
}

/// Changes the priority of a task that waits.
#[utoipa::path(
    patch, path = "/api/tasks/{id}", tag = "tasks", params(("id" = String, Path)), request_body = TaskChange,
    responses((status = 200, body = TaskView))
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Body(change): Body<TaskChange>,
) -> ApiResult<Json<TaskView>> {
    let task = task_id(&id)?;
    let priority = submission::level(Some(&change.priority))?.unwrap_or_default();
    check_owner(&app, &caller, task).await?;
    app.handle.reprioritise(task, priority).await?;
    get(State(app), Path(id)).await
}

/// Cancels a task; answers what it found.
#[utoipa::path(
    delete, path = "/api/tasks/{id}", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = CancelAnswer))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<CancelAnswer>> {
    let task = task_id(&id)?;
    check_owner(&app, &caller, task).await?;
    let status = cancel_task(&app, task).await?;
    Ok(Json(CancelAnswer { id: task.to_string(), status }))
}

/// Cancels a task and says what it found.
pub(crate) async fn cancel_task(app: &App, task: TaskId) -> ApiResult<String> {
    match app.handle.cancel(task).await {
        Ok(Reply::CancelledWhileWaiting) => Ok("cancelled_while_queued".to_owned()),
        Ok(_) => Ok("cancelling".to_owned()),
        Err(Error::Rejected(Rejection::NotLive { .. })) => {
            let found = app.handle.finished(task).await?;
            let (finished, _) = found.ok_or_else(|| ApiError::not_found("task"))?;
            Ok(format!("already_{}", end_word(&finished.end)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Cancels everything that waits and fits.
#[utoipa::path(
    post, path = "/api/tasks/cancel", tag = "tasks", request_body = CancelManyRequest,
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn cancel_many(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(request): Body<CancelManyRequest>,
) -> ApiResult<Json<CancelManyAnswer>> {
    let which = selector(request.lane, request.session, request.kind, request.group)?;
    let which = Selector { parent: request.parent.as_deref().map(parent).transpose()?, ..which };
    if which == Selector::default() {
        return Err(ApiError::invalid("say which: a lane, a session, a kind, a group or a parent"));
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
    app.record(&caller, AuditRecord::new("task", "cancel_waiting", "tasks", details)).await?;
    Ok(Json(CancelManyAnswer { cancelled }))
}

/// Why a task waits.
#[utoipa::path(
    get, path = "/api/tasks/{id}/explain", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = ExplainView))
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> ApiResult<Json<ExplainView>> {
    let task = task_id(&id)?;
    let look = move |lanes: &laneway_core::Scheduler| Some((lanes.explain(task)?, lanes.task(task)?.status));
    if let Some((explanation, status)) = app.handle.read(look).await? {
        return Ok(Json(ExplainView {
            id: task.to_string(),
            status: status_word(status).to_owned(),
            position: explanation.position.map(|place| place as u64),
            eta_ms: explanation.starts_in.map(|length| length.0),
            blockers: task_view::blockers(&explanation),
        }));
    }
    let (finished, _) = app.handle.finished(task).await?.ok_or_else(|| ApiError::not_found("task"))?;
    let status = end_word(&finished.end).to_owned();
    Ok(Json(ExplainView { id: task.to_string(), status, position: None, eta_ms: None, blockers: Vec::new() }))
}

/// The events of a task, until it is over.
#[utoipa::path(
    get, path = "/api/tasks/{id}/events", tag = "tasks",
    params(("id" = String, Path), ("last-event-id" = Option<String>, Header, description = "goes on after this")),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 204, description = "the client has seen the end")
    )
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let task = task_id(&id)?;
    let last = header_text(&headers, &LAST_EVENT_ID)?;
    let from = last.map(|last| app.bus.resumption(last));
    app.bus.caught_up().await;
    let story = app.story_of(task).await?.ok_or_else(|| ApiError::not_found("task"))?;
    let Some(from @ From::After(_)) = from else {
        drop(story);
        let gap = (from == Some(From::Unknown)).then(|| app.bus.gap());
        return Ok(replay(&app, task).await?.after(gap).into_response());
    };
    if app.bus.has_told_end(task, from) {
        // A browser stops asking.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let watch = app.bus.watch(Filter { task: Some(task), lane: None }, from);
    // One that is over and of which nothing is kept any more ends with what is remembered.
    let is_over = !app.handle.read(move |lanes| lanes.has(task)).await?;
    let telling = Telling::new(Arc::clone(&app), watch).of_task(task, Vec::new());
    let telling = if is_over { telling.then_ends_with(story) } else { telling };
    Ok(telling.into_response())
}
