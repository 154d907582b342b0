//! Agents and their queues: list, show, clear, release.

use laneway_config::{AgentConfig, Runner};
use laneway_core::{LaneName, LiveTaskView as Live, Scheduler, Source};
use laneway_protocol::{
    AgentView, At, ClearedQueue, Execution, Page, QueueView, ReleasedLane, ReleasedQueue, source_word,
    status_word,
};
use serde_json::json;

use crate::agents::handlers::core_agent;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::service::ask_agent::agent_named;
use crate::service::parse::checked;
use crate::service::task_view;

/// How many waiting turns are listed.
const LISTED_MAX: usize = 500;

/// The lane of an agent. A program may use such a lane without an agent, and look at it and clear it all the same.
fn lane_named(agent: &str) -> ApiResult<LaneName> {
    checked(LaneName::agent(agent))
}

/// All agents, by name.
pub(crate) async fn list(app: &App) -> ApiResult<Page<AgentView>> {
    Ok(Page { items: views(app, app.config().agents.clone()).await?, next_cursor: None })
}

/// One agent.
pub(crate) async fn get(app: &App, name: &str) -> ApiResult<AgentView> {
    let views = views(app, vec![agent_named(app, name).await?]).await?;
    views.into_iter().next().ok_or_else(|| ApiError::not_found("agent"))
}

/// Views of these agents, with one read of the state.
async fn views(app: &App, agents: Vec<AgentConfig>) -> ApiResult<Vec<AgentView>> {
    let lanes = agents.iter().map(lanes_of).collect::<ApiResult<Vec<AgentLanes>>>()?;
    let origins: Vec<&'static str> =
        agents.iter().map(|agent| app.agents.origin(agent.name.as_str())).collect();
    let look = move |scheduler: &Scheduler| {
        let agents = agents.iter().zip(&lanes).zip(origins);
        agents.map(|((agent, lanes), origin)| view(scheduler, agent, lanes, origin)).collect()
    };
    Ok(app.handle.read(look).await?)
}

/// The lanes of an agent.
struct AgentLanes {
    own: LaneName,
    /// That of its stateless tasks.
    task: LaneName,
    /// Those that a user's turn needs besides the agent's own and the session's.
    further: Vec<LaneName>,
}

fn lanes_of(agent: &AgentConfig) -> ApiResult<AgentLanes> {
    Ok(AgentLanes {
        own: lane_named(agent.name.as_str())?,
        task: checked(LaneName::task(agent.name.as_str()))?,
        further: checked(core_agent(agent)?.further_lanes(Source::User))?,
    })
}

fn view(scheduler: &Scheduler, agent: &AgentConfig, lanes: &AgentLanes, origin: &str) -> AgentView {
    let lane = &lanes.own;
    let settings = scheduler.settings_for(lane);
    let (running, waiting) = scheduler.lane(lane).map_or((0, 0), |view| (view.running, view.waiting));
    let runner = match &agent.runner {
        Runner::Program(_) => "command",
        Runner::Url(_) => "url",
        Runner::External => "external",
        _ => "echo",
    };
    AgentView {
        name: agent.name.to_string(),
        runner: runner.to_owned(),
        origin: origin.to_owned(),
        lane: lane.to_string(),
        task_lane: lanes.task.to_string(),
        lanes: lanes.further.iter().map(LaneName::to_string).collect(),
        is_busy: running > 0,
        running,
        waiting,
        max_concurrency: settings.max_concurrency,
        max_queued: settings.max_queued,
    }
}

/// The queue of an agent: the running turns, and the waiting turns in order.
pub(crate) async fn queue(app: &App, name: String) -> ApiResult<QueueView> {
    let lane = lane_named(&name)?;
    let look = move |scheduler: &Scheduler| {
        let (running, waiting) = scheduler.line_of(&lane, LISTED_MAX);
        let length = scheduler.lane(&lane).map_or(0, |view| view.waiting);
        let texts = |view: &Live| message_text(scheduler, view);
        let running: Vec<_> = running.into_iter().map(|view| (texts(&view), view)).collect();
        let waiting: Vec<_> = waiting.into_iter().map(|view| (texts(&view), view)).collect();
        (running, waiting, length)
    };
    let (running, waiting, length) = app.handle.read(look).await?;
    let mut running_executions = Vec::with_capacity(running.len());
    for (text, view) in running {
        running_executions.push(execution(app, &name, &view, text, None).await?);
    }
    let mut queued_executions = Vec::with_capacity(waiting.len());
    for (place, (text, view)) in waiting.into_iter().enumerate() {
        queued_executions.push(execution(app, &name, &view, text, Some(place as u64 + 1)).await?);
    }
    Ok(QueueView {
        agent_name: name,
        is_busy: !running_executions.is_empty(),
        current_execution: running_executions.first().cloned(),
        running_executions,
        queue_length: u64::from(length),
        queued_executions,
    })
}

/// The messages that a turn answers, one per line.
fn message_text(scheduler: &Scheduler, view: &Live) -> String {
    let session = view.lanes.iter().find_map(|lane| scheduler.session(&lane.session_key()?));
    let turn = session.and_then(|session| session.turns.into_iter().find(|turn| turn.task == view.id));
    let texts: Vec<String> =
        turn.map_or_else(Vec::new, |turn| turn.said.iter().map(|message| message.text.to_string()).collect());
    texts.join("\n")
}

async fn execution(
    app: &App,
    agent: &str,
    view: &Live,
    text: String,
    position: Option<u64>,
) -> ApiResult<Execution> {
    let turn = task_view::turn_of(&app.handle, view).await?.unwrap_or_default();
    let (user_id, user_email) = turn.user.map_or((None, None), |user| (Some(user.id), user.email));
    Ok(Execution {
        id: view.id.to_string(),
        agent_name: agent.to_owned(),
        source: source_word(view.source).to_owned(),
        source_agent: turn.source_agent,
        source_user_id: user_id,
        source_user_email: user_email,
        message: if turn.message.is_empty() { text } else { turn.message },
        queued_at: At(view.submitted),
        started_at: view.running.as_ref().map(|running| At(running.started)),
        status: status_word(view.status).to_owned(),
        priority: view.priority,
        effective_priority: view.effective_priority,
        position,
    })
}

/// Cancels the waiting turns of an agent. Running turns continue.
pub(crate) async fn clear(app: &App, caller: &Caller, name: String) -> ApiResult<ClearedQueue> {
    let cleared_count = app.handle.clear(lane_named(&name)?).await? as u64;
    let details = json!({ "cleared_count": cleared_count });
    app.record(caller, ("agent_queue", "clear_queue"), &name, details).await?;
    Ok(ClearedQueue { status: "cleared".to_owned(), agent: name, cleared_count })
}

/// Takes the slots of an agent's running turns at once.
pub(crate) async fn release(app: &App, caller: &Caller, name: String) -> ApiResult<ReleasedQueue> {
    let released = take_slots(app, lane_named(&name)?).await?;
    app.record(caller, ("agent_queue", "force_release"), &name, json!({ "released": &released })).await?;
    Ok(ReleasedQueue {
        status: "released".to_owned(),
        agent: name,
        was_running: !released.is_empty(),
        warning: release_warning(&released),
        released,
    })
}

/// Takes the slots of the running tasks of a lane at once.
pub(crate) async fn release_lane(app: &App, caller: &Caller, lane: LaneName) -> ApiResult<ReleasedLane> {
    let released = take_slots(app, lane.clone()).await?;
    app.record(caller, ("lane", "force_release"), lane.as_str(), json!({ "released": &released })).await?;
    let (was_running, warning) = (!released.is_empty(), release_warning(&released));
    Ok(ReleasedLane { lane: lane.to_string(), was_running, released, warning })
}

async fn take_slots(app: &App, lane: LaneName) -> ApiResult<Vec<String>> {
    Ok(app.handle.force_release(lane).await?.iter().map(|task| task.to_string()).collect())
}

fn release_warning(released: &[String]) -> String {
    let warning = match released {
        [] => "Nothing was running, so nothing has changed.",
        _ => "The old attempt has a stop signal and may still run. The server refuses its reports.",
    };
    warning.to_owned()
}
