//! Events over SSE.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use laneway_core::LaneName;
use laneway_engine::Filter;
use laneway_protocol::ClientEvent;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::events::stream::{EventStream, of_all_replicas};
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{LAST_EVENT_ID, Query, header_text, task_id};
use crate::service::parse;

/// Which events a client gets.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Events of this lane and of tasks that name it.
    pub(super) lane: Option<String>,
    /// Events of this session.
    pub(super) session: Option<String>,
    /// Events of this task.
    pub(super) task: Option<String>,
    /// The same as the header `Last-Event-ID`, for clients that cannot set one.
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

/// The filter that a client asks for.
pub(crate) fn filter(lane: Option<&str>, session: Option<&str>, task: Option<&str>) -> ApiResult<Filter> {
    if lane.is_some() && session.is_some() {
        return Err(ApiError::invalid("give a lane or a session, not both"));
    }
    let session = session.map(LaneName::session).transpose();
    let session = session.map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    let task =
        task.map(task_id).transpose().map_err(|_| ApiError::invalid("task must be the id of a task"))?;
    let lane = lane.map(parse::lane).transpose()?.or(session);
    Ok(Filter { task, lane, ..Filter::default().news() })
}

/// All events, or those that match. Resumes after `Last-Event-ID`. Otherwise the events of a lane begin with its numbers, as an
/// event `changed`.
#[utoipa::path(
    get, path = "/api/events", tag = "events",
    params(EventsQuery, ("last-event-id" = Option<String>, Header, description = "resumes after this event")),
    responses((status = 200, body = ClientEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): Shared,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let filter = query.filter()?;
    let last = header_text(&headers, &LAST_EVENT_ID)?.or(query.last_event_id.as_deref());
    let Some(last) = last else {
        let (numbers, subscription) = app.lane_snapshot(filter).await;
        let stream = EventStream::new(Arc::clone(&app), subscription);
        return Ok(numbers.into_iter().fold(stream, EventStream::of_lane).into_response());
    };
    let hub = app.handle.hub();
    let subscription = hub.subscribe(of_all_replicas(filter), hub.since(last));
    Ok(EventStream::new(Arc::clone(&app), subscription).into_response())
}
