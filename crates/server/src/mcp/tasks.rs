//! Calls that became tasks of the protocol, for clients that declare the tasks extension. A task of the protocol is a
//! task of the queue, under the same id.

use laneway_core::{End, TaskId};
use laneway_protocol::{At, Code, Scope, TaskView};
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;

use crate::agents::handlers::agent_of_kind;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::task_id;
use crate::mcp::reply;
use crate::service::ask_agent::answer;
use crate::service::tasks as service;

/// The pause between two requests of a client.
const POLL_MS: u64 = 1000;

/// The task that replaces an answer that takes too long.
pub(crate) async fn created(app: &App, id: TaskId) -> ApiResult<CreateTaskResult> {
    let view = service::view(app, id).await?;
    Ok(CreateTaskResult::new(task(app, &view)))
}

/// The state of a task, and the answer of the call if the task has ended.
pub(crate) async fn get(app: &App, caller: &Caller, id: &str) -> ApiResult<GetTaskResult> {
    caller.check(Scope::Read)?;
    let id = task_id(id)?;
    let view = service::view(app, id).await?;
    let payload = match view.ended_at {
        None => TaskPayload::Working,
        Some(_) => ended(app, id, &view).await?,
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(app, &view), payload)))
}

pub(crate) async fn cancel(app: &App, caller: &Caller, id: &str) -> ApiResult<()> {
    caller.check(Scope::Submit)?;
    service::cancel(app, caller, task_id(id)?).await.map(drop)
}

/// A refusal of a request that is not a call of a tool.
pub(super) fn error(refusal: &ApiError) -> ErrorData {
    let problem = &refusal.problem;
    let data = serde_json::to_value(&**problem).ok();
    match problem.code {
        Code::Internal | Code::StoreUnavailable => ErrorData::internal_error(problem.detail.clone(), data),
        _ => ErrorData::invalid_params(problem.detail.clone(), data),
    }
}

fn task(app: &App, view: &TaskView) -> Task {
    let updated = view.ended_at.unwrap_or(At(app.now()));
    let task =
        Task::new(view.id.clone(), TaskStatus::Working, view.submitted_at.to_string(), updated.to_string());
    let message = match view.position {
        Some(place) => format!("{}, position {place} in line", view.status),
        None => view.status.clone(),
    };
    task.with_status_message(message).with_poll_interval_ms(POLL_MS)
}

/// The answer of the call. The answer of a failed task is its error; a cancelled task has none.
async fn ended(app: &App, id: TaskId, view: &TaskView) -> ApiResult<TaskPayload> {
    let ending = app.handle.ending_of(id).await?;
    if matches!(ending.end, End::Cancelled { .. }) {
        return Ok(TaskPayload::Cancelled);
    }
    let agent = agent_of_kind(&view.kind).unwrap_or(&view.kind);
    let answer = answer(id, laneway_engine::Standing::default(), ending, agent);
    let result = reply::answer_or_refusal(answer.map(|answer| reply::answered(&answer)));
    let result = match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::new(),
    };
    Ok(TaskPayload::Completed { result })
}
