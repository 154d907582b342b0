//! Agents: who there is, and how their lines stand.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use laneway_config::{Agent, Runner};
use laneway_core::{LaneName, TaskView as Live};
use laneway_protocol::{
    AgentView, At, ClearedQueue, Execution, Page, QueueView, ReleasedQueue, source_word, status_word,
};
use serde_json::json;

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::ApiResult;
use crate::http::extract::Path;
use crate::http::routes::chat::agent_named;
use crate::service::submission;
use crate::service::task_view;

/// How many waiting turns are listed.
const LISTED_MAX: usize = 500;

fn lane_of(agent: &Agent) -> ApiResult<LaneName> {
    submission::lane(format!("agent:{}", agent.name))
}

async fn view(app: &App, agent: &Agent) -> ApiResult<AgentView> {
    let lane = lane_of(agent)?;
    let look = move |lanes: &laneway_core::Scheduler| {
        let settings = lanes.settings_for(&lane);
        let (running, waiting) = lanes.lane(&lane).map_or((0, 0), |view| (view.running, view.waiting));
        (running, waiting, settings.max_concurrency, settings.max_queued)
    };
    let (running, waiting, max_concurrency, max_queued) = app.handle.read(look).await?;
    let runner = match &agent.runner {
        Runner::Program(_) => "command",
        Runner::Url(_) => "url",
        Runner::External => "external",
        _ => "echo",
    };
    let further = agent.lanes.as_ref();
    Ok(AgentView {
        name: agent.name.to_string(),
        runner: runner.to_owned(),
        lane: format!("agent:{}", agent.name),
        task_lane: format!("task:{}", agent.name),
        lanes: further
            .map_or_else(|| vec!["main".to_owned()], |lanes| lanes.iter().map(LaneName::to_string).collect()),
        is_busy: running > 0,
        running,
        waiting,
        max_concurrency,
        max_queued,
    })
}

/// All agents, by name.
#[utoipa::path(get, path = "/api/agents", tag = "agents", responses((status = 200, body = Page<AgentView>)))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult<Json<Page<AgentView>>> {
    let mut items = Vec::new();
    for agent in &app.config().agents {
        items.push(view(&app, agent).await?);
    }
    Ok(Json(Page { items, next_cursor: None }))
}

/// An agent.
#[utoipa::path(
    get, path = "/api/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = AgentView))
)]
pub(crate) async fn get(State(app): State<Arc<App>>, Path(name): Path<String>) -> ApiResult<Json<AgentView>> {
    let agent = agent_named(&app, &name)?;
    Ok(Json(view(&app, &agent).await?))
}

/// How the line of an agent stands: the current run, and who waits, in order.
#[utoipa::path(
    get, path = "/api/agents/{agent}/queue", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = QueueView))
)]
pub(crate) async fn queue(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> ApiResult<Json<QueueView>> {
    let agent = agent_named(&app, &name)?;
    let lane = lane_of(&agent)?;
    let look = move |lanes: &laneway_core::Scheduler| {
        let (running, waiting) = lanes.line_of(&lane, LISTED_MAX);
        let length = lanes.lane(&lane).map_or(0, |view| view.waiting);
        (running, waiting, length)
    };
    let (running, waiting, length) = app.handle.read(look).await?;
    let mut running_executions = Vec::with_capacity(running.len());
    for view in &running {
        running_executions.push(execution(&app, view, None).await?);
    }
    let mut queued_executions = Vec::with_capacity(waiting.len());
    for (place, view) in waiting.iter().enumerate() {
        queued_executions.push(execution(&app, view, Some(place as u64 + 1)).await?);
    }
    Ok(Json(QueueView {
        agent_name: name,
        is_busy: !running.is_empty(),
        current_execution: running_executions.first().cloned(),
        running_executions,
        queue_length: u64::from(length),
        queued_executions,
    }))
}

async fn execution(app: &App, view: &Live, position: Option<u64>) -> ApiResult<Execution> {
    let envelope = task_view::envelope_of(&app.handle, view).await?;
    let turn = envelope.turn().unwrap_or_default();
    let message = if turn.message.is_empty() { written(app, view).await? } else { turn.message };
    let (user_id, user_email) = turn.user.map_or((None, None), |user| (Some(user.id), user.email));
    Ok(Execution {
        id: view.id.to_string(),
        source: source_word(view.source).to_owned(),
        source_agent: turn.source_agent,
        source_user_id: user_id,
        source_user_email: user_email,
        message,
        queued_at: At(view.submitted),
        started_at: view.running.as_ref().map(|running| At(running.started)),
        status: status_word(view.status).to_owned(),
        priority: view.priority,
        effective_priority: view.effective_priority,
        position,
    })
}

/// What the messages say that a turn of a conversation answers, one a line.
async fn written(app: &App, view: &Live) -> ApiResult<String> {
    let task = view.id;
    let Some(key) = view.lanes.iter().find_map(|lane| lane.session_key()) else { return Ok(String::new()) };
    let look = move |lanes: &laneway_core::Scheduler| {
        let turn = lanes.session(&key)?.turns.into_iter().find(|turn| turn.task == task)?;
        let texts: Vec<String> = turn.said.iter().map(|message| message.text.to_string()).collect();
        Some(texts.join("\n"))
    };
    Ok(app.handle.read(look).await?.unwrap_or_default())
}

/// Empties the line of an agent; what runs is not touched.
#[utoipa::path(
    post, path = "/api/agents/{agent}/queue/clear", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = ClearedQueue))
)]
pub(crate) async fn clear(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<ClearedQueue>> {
    let agent = agent_named(&app, &name)?;
    let cleared = app.handle.clear(lane_of(&agent)?).await? as u64;
    let details = json!({ "cleared_count": cleared });
    app.record(&caller, AuditRecord::new("agent_queue", "clear_queue", &name, details).severity("warning"))
        .await?;
    Ok(Json(ClearedQueue { status: "cleared".to_owned(), agent: name, cleared_count: cleared }))
}

/// Takes the slots away from what runs, at once.
#[utoipa::path(
    post, path = "/api/agents/{agent}/queue/release", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = ReleasedQueue))
)]
pub(crate) async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<ReleasedQueue>> {
    let agent = agent_named(&app, &name)?;
    let released = app.handle.force_release(lane_of(&agent)?).await?;
    let released: Vec<String> = released.iter().map(|task| task.to_string()).collect();
    app.record(
        &caller,
        AuditRecord::new("agent_queue", "force_release", &name, json!({ "released": &released }))
            .severity("critical"),
    )
    .await?;
    Ok(Json(ReleasedQueue {
        status: "released".to_owned(),
        agent: name,
        was_running: !released.is_empty(),
        released,
        warning: "The old run was told to stop and may still be going; whatever it reports is refused."
            .to_owned(),
    }))
}
