//! All events over SSE.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use laneway_core::LaneName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::events::hub::{Filter, From};
use crate::events::sse::Telling;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{LAST_EVENT_ID, Query, header_text, task_id};
use crate::service::parse;

/// Which events.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Of this lane, and of tasks that name it.
    pub(crate) lane: Option<String>,
    /// Of this conversation.
    pub(crate) session: Option<String>,
    /// Of this task.
    pub(crate) task: Option<String>,
    /// As the header `Last-Event-ID`, for whoever cannot set one.
    pub(crate) last_event_id: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

impl EventsQuery {
    pub(crate) fn filter(&self) -> ApiResult<Filter> {
        filter(self.lane.as_deref(), self.session.as_deref(), self.task.as_deref())
    }
}

/// What a client wants to hear.
pub(crate) fn filter(lane: Option<&str>, session: Option<&str>, task: Option<&str>) -> ApiResult<Filter> {
    if lane.is_some() && session.is_some() {
        return Err(ApiError::invalid("give a lane or a session, not both"));
    }
    let session = session.map(LaneName::session).transpose();
    let session = session.map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    let task =
        task.map(task_id).transpose().map_err(|_| ApiError::invalid("task must be the id of a task"))?;
    Ok(Filter { task, lane: lane.map(parse::lane).transpose()?.or(session) })
}

/// Everything that happens, or what of it fits; goes on after `Last-Event-ID`.
#[utoipa::path(
    get, path = "/api/events", tag = "events",
    params(EventsQuery, ("last-event-id" = Option<String>, Header, description = "goes on after this")),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let filter = query.filter()?;
    let last = header_text(&headers, &LAST_EVENT_ID)?.or(query.last_event_id.as_deref());
    let from = last.map_or(From::Now, |last| app.bus.resumption(last));
    app.bus.caught_up().await;
    let watch = app.bus.watch(filter, from);
    Ok(Telling::new(app, watch).into_response())
}
