//! Agents and their queues.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use laneway_protocol::{AgentView, ClearedQueue, Page, QueueView, ReleasedQueue};

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::ApiResult;
use crate::http::extract::Path;
use crate::service::agent_queue;

/// All agents, by name.
#[utoipa::path(get, path = "/api/agents", tag = "agents", responses((status = 200, body = Page<AgentView>)))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult<Json<Page<AgentView>>> {
    Ok(Json(agent_queue::list(&app).await?))
}

/// An agent.
#[utoipa::path(
    get, path = "/api/agents/{agent}", tag = "agents", params(("agent" = String, Path)),
    responses((status = 200, body = AgentView))
)]
pub(crate) async fn get(State(app): State<Arc<App>>, Path(name): Path<String>) -> ApiResult<Json<AgentView>> {
    Ok(Json(agent_queue::get(&app, &name).await?))
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
    Ok(Json(agent_queue::queue(&app, name).await?))
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
    Ok(Json(agent_queue::clear(&app, &caller, name).await?))
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
    Ok(Json(agent_queue::release(&app, &caller, name).await?))
}
