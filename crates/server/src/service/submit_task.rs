//! Submits a task of a kind for `POST /api/tasks`.

use laneway_core::{LaneName, Parent, TaskSpec};
use laneway_engine::Submitted;
use laneway_protocol::TaskRequest;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::task_id;
use crate::service::parse::{checked, kind, lane, level, millis, name, retry, source, task_lane};
use crate::service::request_options::RequestOptions;
use crate::service::submission::{EXTERNAL, Submission, idempotency, submit_detached};

/// Checks and submits a task that the caller does not wait for.
pub(crate) async fn submit_task(
    app: &App,
    caller: &Caller,
    request: TaskRequest,
    options: &RequestOptions,
) -> ApiResult<Submitted> {
    let idempotency = idempotency(caller, options, "tasks", &request);
    let lanes = lanes_of(app, &request)?;
    let mut spec = TaskSpec::new(kind(request.kind)?, lanes);
    spec.source = request.source.as_deref().map_or(Ok(options.source()), source)?;
    let parent = request.parent.as_deref().map(task_id).transpose();
    let parent = parent.map_err(|_| ApiError::invalid("parent must be the id of a running task"))?;
    // The body names a parent that waits. A parent in the header waits unless the caller detaches the task.
    let named = parent.map(|task| Parent { task, detached: false });
    spec.parent = named.or(options.parent.map(|task| Parent { task, detached: options.detach }));
    spec.priority = level(app, request.priority.as_ref()).await?;
    spec.fair_key = request.fair_key.map(task_lane).transpose()?;
    spec.group = request.group.map(|group| name("group", group)).transpose()?;
    (spec.wait_timeout, spec.timeout) = (millis(request.wait_timeout_ms), millis(request.timeout_ms));
    (spec.deadline, spec.run_after) = (millis(request.deadline_ms), millis(request.run_after_ms));
    spec.retry = request.retry.map(retry).transpose()?;
    spec.idempotency = idempotency;
    submit_detached(app, Submission::new(app, caller, options, spec, &request.payload)).await
}

/// The lanes of a task: its agent's lane comes first. A kind that this server does not run has `external` as its home lane,
/// unless it names lanes, of which the first may hand its tasks to workers.
fn lanes_of(app: &App, request: &TaskRequest) -> ApiResult<Vec<LaneName>> {
    let mut lanes = Vec::with_capacity(request.lanes.len() + 2);
    for name in &request.lanes {
        lanes.push(task_lane(name)?);
    }
    if let Some(agent) = app.handlers.agent_of(&request.kind) {
        let own = [checked(LaneName::agent(&agent))?, checked(LaneName::task(&agent))?];
        if !lanes.iter().any(|lane| own.contains(lane)) {
            lanes.splice(..0, own.into_iter().take(1));
        }
    }
    if lanes.is_empty() && !app.handlers.runs(&request.kind) {
        lanes.push(lane(EXTERNAL)?);
    }
    Ok(lanes)
}
