//! Slots for code that the caller runs itself.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use laneway_core::Fence;
use laneway_protocol::{SlotAnswer, SlotRequest};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, Path, Query, task_id};
use crate::net::write_timeout::Peer;
use crate::service::request_options::RequestOptions;
use crate::service::slots;

/// Takes a slot in each lane, for code that the caller runs itself. A heartbeat renews the lease; completing the task or
/// deleting the slot returns it.
#[utoipa::path(
    post, path = "/api/slots", tag = "tasks", request_body = SlotRequest,
    params(("x-laneway-parent" = Option<String>, Header, description = "the running task that sends the request")),
    responses((status = 200, body = SlotAnswer))
)]
pub(crate) async fn take(
    State(app): Shared,
    caller: Caller,
    options: RequestOptions,
    peer: Option<Extension<Peer>>,
    Body(request): Body<SlotRequest>,
) -> ApiJson<SlotAnswer> {
    let has_left = || peer.as_ref().is_some_and(|Extension(peer)| peer.has_left());
    Ok(Json(slots::take(&app, &caller, &options, request, has_left).await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SlotQuery {
    /// The fence of the slot.
    fence: u64,
}

/// Returns a slot. A repeated request changes nothing and succeeds.
#[utoipa::path(
    delete, path = "/api/slots/{id}", tag = "tasks", params(("id" = String, Path), SlotQuery),
    responses((status = 204, description = "The slot is free."))
)]
pub(crate) async fn give_back(
    State(app): Shared,
    Path(id): Path<String>,
    Query(query): Query<SlotQuery>,
) -> ApiResult<StatusCode> {
    let task = task_id(&id).map_err(|_| ApiError::not_found("slot"))?;
    slots::give_back(&app, task, Fence(query.fence)).await?;
    Ok(StatusCode::NO_CONTENT)
}
