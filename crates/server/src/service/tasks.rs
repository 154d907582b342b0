//! Looks at, explains and cancels one task, the same way for HTTP, WebSocket and MCP.

use laneway_core::{Rejection, Reply, TaskId};
use laneway_engine::{Error, Standing};
use laneway_protocol::{CancelAnswer, ExplainView, Scope, TaskView, end_word, status_word};

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::service::envelope::Envelope;
use crate::service::{attempt_view, task_view};

/// A task with its attempts, live or ended.
pub(crate) async fn view(app: &App, task: TaskId) -> ApiResult<TaskView> {
    let record = app.handle.record(task).await?.ok_or_else(|| ApiError::not_found("task"))?;
    let attempt_list = attempt_view::of(&record);
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
    Ok(TaskView { attempt_list, ..view })
}

/// Why a task waits.
pub(crate) async fn explain(app: &App, task: TaskId) -> ApiResult<ExplainView> {
    let look = move |lanes: &laneway_core::Scheduler| Some((lanes.explain(task)?, lanes.task(task)?.status));
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

/// Cancels a task of the caller's.
pub(crate) async fn cancel(app: &App, caller: &Caller, task: TaskId) -> ApiResult<CancelAnswer> {
    check_owner(app, caller, task).await?;
    let status = cancel_unchecked(app, task).await?;
    Ok(CancelAnswer { id: task.to_string(), status })
}

/// Cancels a task without asking whose it is, and says what it found.
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
    let Some(view) = app.handle.task(task).await? else { return Ok(()) };
    let envelope = task_view::envelope_of(&app.handle, &view).await?;
    // A turn that answers messages belongs to its session, which every token with the scope submit may use.
    let is_sessions = move |lanes: &laneway_core::Scheduler| lanes.turn_content(task).is_some();
    if caller.owns(envelope.owner.as_deref()) || app.handle.read(is_sessions).await? {
        return Ok(());
    }
    Err(ApiError::forbidden("the task is another token's; only the scope admin may change it"))
}
