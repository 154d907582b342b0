//! Agents and their queues.

pub(crate) mod chat;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laneway_protocol::{AgentView, ClearedQueue, Page, QueueView, ReleasedQueue};
use serde_json::{Map, Value};

use crate::app::Shared;
use crate::http::auth::Caller;
use crate::http::error::{ApiJson, ApiResult};
use crate::http::extract::{Body, Path};
use crate::service::{agent_queue, change_agents};

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

/// Creates an agent. The body has its `name`, what runs its turns (`url`, `external` or `echo`), `lanes`, and settings of its
/// lane, as an `agent` block of the configuration. The log keeps the agent for all replicas.
#[utoipa::path(
    post, path = "/api/agents", tag = "agents", request_body = std::collections::HashMap<String, Value>,
    responses((status = 201, body = AgentView))
)]
pub(crate) async fn create(
    State(app): Shared,
    caller: Caller,
    Body(block): Body<Map<String, Value>>,
) -> ApiResult<(StatusCode, Json<AgentView>)> {
    Ok((StatusCode::CREATED, Json(change_agents::create(&app, &caller, block).await?)))
}

/// Changes an agent that the API has created. Settings that the body leaves out stay; `null` removes one.
#[utoipa::path(
    patch, path = "/api/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    request_body = std::collections::HashMap<String, Value>, responses((status = 200, body = AgentView))
)]
pub(crate) async fn change(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
    Body(changes): Body<Map<String, Value>>,
) -> ApiJson<AgentView> {
    Ok(Json(change_agents::change(&app, &caller, &name, changes).await?))
}

/// Removes an agent that the API has created. Its waiting tasks are cancelled; what runs may end.
#[utoipa::path(
    delete, path = "/api/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    responses((status = 204, description = "The agent is removed."))
)]
pub(crate) async fn remove(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<StatusCode> {
    change_agents::remove(&app, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
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
