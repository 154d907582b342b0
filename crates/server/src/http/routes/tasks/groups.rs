//! Groups of tasks, and batches of tool calls.

use axum::Json;
use axum::extract::State;
use laneway_core::{CancelReason, End, Name};
use laneway_engine::{Error, GroupCounts, RunError, ToolCalls, ToolResult, ToolUse};
use laneway_protocol::{BatchAnswer, BatchRequest, BatchResult, Code, GroupView, Problem};
use laneway_store::Durability;

use crate::app::{App, Shared};
use crate::http::error::{ApiError, ApiJson};
use crate::http::extract::{Body, Path};
use crate::service::parse;
use crate::service::request_options::RequestOptions;
use crate::service::submission::{check_draining, check_parent, token_lane};

/// The tasks of a group.
#[utoipa::path(
    get, path = "/api/groups/{group}", tag = "tasks", params(("group" = String, Path)),
    responses((status = 200, body = GroupView))
)]
pub(crate) async fn group(State(app): Shared, Path(group): Path<String>) -> ApiJson<GroupView> {
    let group = Name::new(group).map_err(|_| ApiError::not_found("group"))?;
    let GroupCounts { total, done, failed } = app.handle.group(&group).await?;
    if total == 0 {
        return Err(ApiError::not_found("group"));
    }
    Ok(Json(GroupView { done, total, failed }))
}

/// Runs the tool calls of one model turn: reads in parallel, other calls one after another. Results are in call order.
/// Takes no Idempotency-Key.
#[utoipa::path(
    post, path = "/api/tasks/batch", tag = "tasks", request_body = BatchRequest,
    params(("x-laneway-parent" = Option<String>, Header, description = "the running task that sends the request and waits")),
    responses((status = 200, body = BatchAnswer))
)]
pub(crate) async fn batch(
    State(app): Shared,
    caller: crate::http::auth::Caller,
    options: RequestOptions,
    Body(request): Body<BatchRequest>,
) -> ApiJson<BatchAnswer> {
    if options.key.is_some() {
        return Err(ApiError::invalid(
            "a batch takes no Idempotency-Key: its tools would run again; submit each as a task with a key",
        ));
    }
    check_draining(&app)?;
    if let Some(parent) = options.parent {
        check_parent(&app, &caller, parent).await?;
    }
    if request.session.is_empty() {
        return Err(ApiError::invalid("session must not be empty"));
    }
    let tools = app.handle.tools(request.session).asked_by(caller.token_name(), None);
    let mut tools = tools.child_of(options.parent);
    if let Some(configured) = &app.config().tools {
        for (tool, lane) in &configured.tools {
            tools = tools.tool(tool, *lane);
        }
    }
    if let Some(group) = request.group {
        tools = tools.group(parse::name("group", group)?);
    }
    if let Some(lane) = token_lane(&app, &caller) {
        tools = tools.asker(lane);
    }
    let names: Vec<String> = request.calls.iter().map(|call| call.tool.clone()).collect();
    let mut calls = Vec::with_capacity(request.calls.len());
    for call in request.calls {
        if app.handlers.agent_of(&call.tool).is_some() {
            let detail = "a tool cannot be an agent: ask it with POST /api/agents/{agent}/chat";
            return Err(ApiError::invalid(detail));
        }
        calls.push(ToolUse::new(parse::name("tool", call.tool)?.as_str(), call.payload));
    }
    if calls.is_empty() {
        return Err(ApiError::invalid("calls must hold at least one call"));
    }
    let results = tools.batch(calls, |_| async { Ok(()) }).await?;
    let results =
        names.into_iter().zip(results).map(|(tool, result)| batch_result(&app, tool, result)).collect();
    Ok(Json(BatchAnswer { results }))
}

fn batch_result(app: &App, tool: String, result: ToolResult) -> BatchResult {
    if let ToolResult::Failed { error: RunError::Ended(end), output } = result {
        return BatchResult { tool, success: false, result: output, error: Some(ended(&end)) };
    }
    let (result, error) = match result {
        ToolResult::Done(value) => (Some(value), None),
        ToolResult::Failed { error: RunError::Refused(Error::Closed), .. } if keeps_calls(app) => {
            let detail = format!(
                "the server is shutting down; the call is kept and runs after the restart: do not ask again, look at \
                 GET /api/tasks?kind={tool}"
            );
            (None, Some(Problem { retryable: false, ..Problem::new(Code::Draining, detail) }))
        }
        ToolResult::Skipped => (None, Some(ended(&End::Cancelled { reason: CancelReason::Steered }))),
        ToolResult::Refused(why) => (None, Some(*ApiError::new(Code::Forbidden, why.0).problem)),
        ToolResult::Failed { error: RunError::Refused(error), .. } => {
            (None, Some(*ApiError::from(error).problem))
        }
        _ => (None, Some(*ApiError::new(Code::Internal, "something unexpected went wrong").problem)),
    };
    BatchResult { tool, success: error.is_none(), result, error }
}

/// Whether waiting calls run after a restart of the server.
fn keeps_calls(app: &App) -> bool {
    app.handle.durability() > Durability::Memory && !matches!(*app.handle.tool_calls(), ToolCalls::Direct)
}

/// The end of a call, without its id, which the caller does not know.
fn ended(end: &End) -> Problem {
    let mut problem = *ApiError::ended(laneway_core::TaskId(0), end).problem;
    (problem.task_id, problem.task_id_camel) = (None, None);
    problem
}
