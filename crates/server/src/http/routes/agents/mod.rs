//! Agents and their queues.

pub(crate) mod chat;

use axum::Json;
use axum::extract::State;
use laneway_protocol::{AgentView, ClearedQueue, Page, QueueView, ReleasedQueue};

use crate::app::Shared;
use crate::http::auth::Caller;
use crate::http::error::ApiJson;
use crate::http::extract::Path;
use crate::service::agent_queue;

/// All agents, by name.
#[utoipa::path(get, path = "/api/agents", tag = "agents", responses((status = 200, body = Page<AgentView>)))]
pub(crate) async fn list(State(app): Shared) -> ApiJson<Page<AgentView>> {
    Ok(Json(agent_queue::list(&app).await?))
}

/// An agent.
#[utoipa::path(
    get, path = "/api/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = AgentView))
)]
pub(crate) async fn get(State(app): Shared, Path(name): Path<String>) -> ApiJson<AgentView> {
    Ok(Json(agent_queue::get(&app, &name).await?))
}

/// The queue of an agent: its running and waiting turns, in order.
#[utoipa::path(
    get, path = "/api/agents/{agent}/queue", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = QueueView))
)]
pub(crate) async fn queue(State(app): Shared, Path(name): Path<String>) -> ApiJson<QueueView> {
    Ok(Json(agent_queue::queue(&app, name).await?))
}

/// Cancels the waiting turns of an agent. Running turns continue.
#[utoipa::path(
    post, path = "/api/agents/{agent}/queue/clear", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = ClearedQueue))
)]
pub(crate) async fn clear(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiJson<ClearedQueue> {
    Ok(Json(agent_queue::clear(&app, &caller, name).await?))
}

/// Takes the slots of an agent's running turns at once.
#[utoipa::path(
    post, path = "/api/agents/{agent}/queue/release", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = ReleasedQueue))
)]
pub(crate) async fn release(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiJson<ReleasedQueue> {
    Ok(Json(agent_queue::release(&app, &caller, name).await?))
}
