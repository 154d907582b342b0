//! Slots that guard code of the caller's own.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laneway_core::Fence;
use laneway_protocol::{SlotAnswer, SlotRequest};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, Path, Query, task_id};
use crate::service::slots;

/// Takes a slot of each of some lanes, to guard code of the caller's own. Renewed by heartbeat, ended by complete, or by
/// giving it back.
#[utoipa::path(
    post, path = "/api/slots", tag = "tasks", request_body = SlotRequest,
    responses((status = 200, body = SlotAnswer))
)]
pub(crate) async fn take(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(request): Body<SlotRequest>,
) -> ApiResult<Json<SlotAnswer>> {
    Ok(Json(slots::take(&app, &caller, request).await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SlotQuery {
    /// The fence with which the slot was given.
    fence: u64,
}

/// Gives a slot back. Saying so again changes nothing and is no error.
#[utoipa::path(
    delete, path = "/api/slots/{id}", tag = "tasks", params(("id" = String, Path), SlotQuery),
    responses((status = 204, description = "it is free"))
)]
pub(crate) async fn give_back(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<SlotQuery>,
) -> ApiResult<StatusCode> {
    let task = task_id(&id).map_err(|_| ApiError::not_found("slot"))?;
    slots::give_back(&app, task, Fence(query.fence)).await?;
    Ok(StatusCode::NO_CONTENT)
}
