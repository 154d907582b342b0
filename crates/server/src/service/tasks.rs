//! Shows, explains and cancels one task, the same way for HTTP, WebSocket and MCP.

use laneway_core::{Name, Rejection, Reply, Scheduler, TaskId};
use laneway_engine::{Error, Standing};
use laneway_protocol::{CancelAnswer, ExplainView, Scope, TaskView, end_word, status_word};
use serde_json::Value;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::service::{attempt_view, task_view};

/// A task with its attempts, live or ended.
pub(crate) async fn view(app: &App, task: TaskId) -> ApiResult<TaskView> {
    let record = app.handle.record(task).await?.ok_or_else(|| ApiError::not_found("task"))?;
    let payload = record.payload.as_deref().map(|bytes| task_view::json(Some(bytes)));
    let (view, caller, trace) = match (&record.live, &record.finished) {
        (Some(live), _) => {
            let standing = app.handle.read(move |lanes| Standing::of(lanes, task)).await?;
            let payload = payload.or(Some(Value::Null));
            (TaskView { payload, ..task_view::live(live, standing) }, &live.caller, &live.trace)
        }
        (None, Some(finished)) => {
            let result = record.result.as_deref().map(|bytes| task_view::json(Some(bytes)));
            let view = TaskView { payload, result, ..task_view::finished(finished) };
            (view, &finished.caller, &finished.trace)
        }
        (None, None) => return Err(ApiError::not_found("task")),
    };
    Ok(TaskView {
        attempt_list: attempt_view::of(&record),
        owner: caller.as_ref().map(ToString::to_string),
        traceparent: trace.as_ref().map(ToString::to_string),
        ..view
    })
}

/// Why a task waits.
pub(crate) async fn explain(app: &App, task: TaskId) -> ApiResult<ExplainView> {
    let look = move |lanes: &Scheduler| Some((lanes.explain(task)?, lanes.task(task)?.status));
    if let Some((explanation, status)) = app.handle.read(look).await? {
        return Ok(ExplainView {
            id: task.to_string(),
            status: status_word(status).to_owned(),
            position: explanation.position.map(|place| place as u64),
            eta_ms: explanation.starts_in.map(|length| length.0),
            blockers: task_view::blockers(&explanation),
        });
    }
    let (finished, _) = app.handle.finished(task).await?.ok_or_else(|| ApiError::not_found("task"))?;
    let status = end_word(&finished.end).to_owned();
    Ok(ExplainView { id: task.to_string(), status, position: None, eta_ms: None, blockers: Vec::new() })
}

/// Cancels a task of the caller.
pub(crate) async fn cancel(app: &App, caller: &Caller, task: TaskId) -> ApiResult<CancelAnswer> {
    check_owner(app, caller, task).await?;
    let status = cancel_unchecked(app, task).await?;
    Ok(CancelAnswer { id: task.to_string(), status })
}

/// Cancels a task of any owner. Returns the state in which the task was.
pub(crate) async fn cancel_unchecked(app: &App, task: TaskId) -> ApiResult<String> {
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

/// Refuses a caller that may not change this task.
pub(crate) async fn check_owner(app: &App, caller: &Caller, task: TaskId) -> ApiResult<()> {
    if caller.may(Scope::Admin) {
        return Ok(());
    }
    // A turn that answers messages belongs to its session, which every token with the scope submit may use.
    let look = move |lanes: &Scheduler| Some((lanes.task(task)?.caller, lanes.turn_content(task).is_some()));
    let Some((owner, is_sessions)) = app.handle.read(look).await? else { return Ok(()) };
    if is_sessions || caller.owns(owner.as_ref().map(Name::as_str)) {
        return Ok(());
    }
    Err(ApiError::forbidden("the task belongs to another token; only the scope admin may change it"))
}
