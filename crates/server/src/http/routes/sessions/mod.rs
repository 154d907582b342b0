//! Sessions and their messages.

pub(crate) mod messages;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway_core::{
    EffectiveQueue, End, Handler, LaneName, Message as Waiting, MessageId, Millis, Origin, ParkedMessage,
    QueueOverrides, Scheduler, SessionView, TaskId, ToolLane, TurnView,
};
use laneway_engine::{Filter, HistoryFilter, Since};
use laneway_protocol::{
    At, CancelManyAnswer, ClientEvent, CurrentTurn, MessageView, Page, SessionChange, SessionSetting,
    SessionSettings, SessionStats, SessionSummary, ToolLaneStats, handler_word,
};
use serde_json::json;

use crate::app::{App, Shared};
use crate::events::stream::{EventStream, of_all_replicas};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, LAST_EVENT_ID, Path, Query, header_text};
use crate::http::paging::PageQuery;
use crate::service::send_message::{check_turn_owner, drop_rule, message_text, mode};
use crate::service::task_view;

fn waiting(message: &Waiting) -> MessageView {
    MessageView {
        id: message_text(&message.id),
        text: message.text.to_string(),
        at: At(message.at),
        agent: message.address.agent.name.to_string(),
        channel: message.address.place.channel.as_deref().map(str::to_owned),
        sender_name: message.sender_name().map(str::to_owned),
        error: None,
    }
}

fn parked(parked: &ParkedMessage) -> MessageView {
    MessageView { error: parked.error.as_deref().map(str::to_owned), ..waiting(&parked.message) }
}

/// The settings for messages, each with its origin.
fn settings(queue: &EffectiveQueue) -> SessionSettings {
    let EffectiveQueue { mode, debounce, max_wait, cap, drop } = queue;
    let setting = |value: &dyn ToString, origin: Origin| SessionSetting {
        from: origin.as_str().to_owned(),
        value: value.to_string(),
    };
    SessionSettings {
        cap: setting(&cap.value, cap.origin),
        debounce_ms: setting(&debounce.value.0, debounce.origin),
        drop: setting(&drop.value.as_str(), drop.origin),
        max_wait_ms: setting(&max_wait.value.0, max_wait.origin),
        mode: setting(&mode.value.as_str(), mode.origin),
    }
}

fn current_turn(turn: &TurnView) -> CurrentTurn {
    let texts = |ids: &[MessageId]| ids.iter().map(message_text).collect();
    CurrentTurn {
        messages: texts(&turn.messages),
        pending: texts(&turn.pending),
        said: turn.said.iter().map(waiting).collect(),
        steered: texts(&turn.steered),
        takes_steering: turn.takes_steering,
        task_id: turn.task.to_string(),
    }
}

fn summary(view: &SessionView) -> SessionSummary {
    SessionSummary {
        key: view.key.clone(),
        is_busy: view.busy,
        typing: view.typing,
        settings: settings(&view.queue),
        current_turn: view.turns.first().map(current_turn),
        messages: view.waiting.iter().map(waiting).collect(),
        dropped: view.dropped,
        retry_at: view.retry_at.map(At),
        set_aside: view.parked.iter().map(parked).collect(),
    }
}

/// The sessions that have turns, messages or settings.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", params(PageQuery),
    responses((status = 200, body = Page<SessionSummary>))
)]
pub(crate) async fn list(
    State(app): Shared,
    Query(query): Query<PageQuery>,
) -> ApiJson<Page<SessionSummary>> {
    let (sessions, next_cursor) = query.cut(app.handle.sessions().await?)?;
    Ok(Json(Page { items: sessions.iter().map(summary).collect(), next_cursor }))
}

/// A session.
#[utoipa::path(
    get, path = "/api/sessions/{key}", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = SessionSummary))
)]
pub(crate) async fn get(State(app): Shared, Path(key): Path<String>) -> ApiJson<SessionSummary> {
    let view = app.handle.session(key).await?.ok_or_else(|| ApiError::not_found("session"))?;
    let mut summary = summary(&view);
    let turn = view.turns.first();
    if turn.is_none_or(|turn| turn.said.is_empty())
        && let Some((task, said)) = direct_turn(&app, view.lane, turn.map(|turn| turn.task)).await?
    {
        let turn = summary.current_turn.get_or_insert_with(|| CurrentTurn {
            messages: Vec::new(),
            pending: Vec::new(),
            said: Vec::new(),
            steered: Vec::new(),
            takes_steering: false,
            task_id: task.to_string(),
        });
        turn.said = vec![said];
    }
    Ok(Json(summary))
}

/// The request of a turn that answers no messages: of `turn`, else of the running task in the session's lane, else of the
/// first that waits there.
async fn direct_turn(
    app: &App,
    lane: LaneName,
    turn: Option<TaskId>,
) -> ApiResult<Option<(TaskId, MessageView)>> {
    let look = move |lanes: &Scheduler| match turn {
        Some(turn) => lanes.task(turn),
        None => {
            let (running, _) = lanes.line_of(&lane, 1);
            running.into_iter().next().or_else(|| Some(lanes.line_in(&lane, 0, 1).0.pop()?.0))
        }
    };
    let Some(task) = app.handle.read(look).await? else { return Ok(None) };
    let Some(turn) = task_view::turn_of(&app.handle, &task).await? else {
        return Ok(None);
    };
    let said = MessageView {
        id: task.id.to_string(),
        text: turn.message,
        at: At(task.submitted),
        agent: turn.agent,
        channel: None,
        sender_name: turn.source_agent,
        error: None,
    };
    Ok(Some((task.id, said)))
}

/// The tool lanes of a session.
#[utoipa::path(
    get, path = "/api/sessions/{key}/stats", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = SessionStats))
)]
pub(crate) async fn stats(State(app): Shared, Path(key): Path<String>) -> ApiJson<SessionStats> {
    let tool_lanes = [ToolLane::Control, ToolLane::Query, ToolLane::Execute, ToolLane::Generate];
    let mut names = Vec::new();
    for lane in tool_lanes {
        let name =
            LaneName::tool(&key, lane).map_err(|error| ApiError::invalid(format!("session: {error}")))?;
        names.push((lane.as_str(), name));
    }
    let ended = ended_calls(&app, &key).await?;
    let look = move |lanes: &Scheduler| {
        let settings = Some(settings(&lanes.queue_for(&key, None)));
        let mut stats = SessionStats { settings, ..SessionStats::default() };
        for (word, name) in names {
            let lane_settings = lanes.settings_for(&name);
            let (completed, failed) = ended.get(&name).copied().unwrap_or_default();
            let (active, pending) = lanes.lane(&name).map_or((0, 0), |view| (view.running, view.waiting));
            let is_external = lane_settings.handler == Handler::External;
            stats.total_active += active;
            stats.total_pending += pending;
            stats.external_pending += if is_external { pending } else { 0 };
            let lane = ToolLaneStats {
                pending,
                active,
                completed,
                failed,
                max_concurrency: lane_settings.max_concurrency,
                handler_mode: handler_word(lane_settings.handler).to_owned(),
            };
            stats.lanes.insert(word.to_owned(), lane);
        }
        stats
    };
    Ok(Json(app.handle.read(look).await?))
}

/// How many tasks of a session have completed and failed in each home lane, as far as the history goes.
async fn ended_calls(app: &App, key: &str) -> ApiResult<BTreeMap<LaneName, (u64, u64)>> {
    let mut counts: BTreeMap<LaneName, (u64, u64)> = BTreeMap::new();
    let mut filter = HistoryFilter { session: Some(key.to_owned()), max: 1000, ..HistoryFilter::default() };
    loop {
        let page = app.handle.history(filter.clone()).await?;
        for finished in page.items {
            let Some(home) = finished.lanes.into_iter().next() else { continue };
            let (completed, failed) = counts.entry(home).or_default();
            match finished.end {
                End::Completed => *completed += 1,
                End::Failed { .. } | End::TimedOut | End::Lost => *failed += 1,
                End::Cancelled { .. } | End::Expired | End::WaitTimeout => {}
            }
        }
        filter.after = page.next;
        if filter.after.is_none() {
            return Ok(counts);
        }
    }
}

/// Changes how the messages of a session are queued. Settings that the body leaves out stay.
#[utoipa::path(
    patch, path = "/api/sessions/{key}", tag = "sessions", params(("key" = String, Path)),
    request_body = SessionChange, responses((status = 200, body = SessionSummary))
)]
pub(crate) async fn change(
    State(app): Shared,
    caller: Caller,
    Path(key): Path<String>,
    Body(change): Body<SessionChange>,
) -> ApiJson<SessionSummary> {
    let overrides = QueueOverrides {
        mode: change.mode.as_deref().map(mode).transpose()?,
        debounce: change.debounce_ms.map(Millis),
        max_wait: change.max_wait_ms.map(Millis),
        cap: change.cap,
        drop: change.drop.as_deref().map(drop_rule).transpose()?,
    };
    app.handle.amend_session(key.clone(), overrides).await?;
    let details = serde_json::to_value(&change).unwrap_or_default();
    app.record(&caller, ("session", "change"), &key, details).await?;
    get(State(app), Path(key)).await
}

/// Cancels the running turn. Waiting messages continue.
#[utoipa::path(
    post, path = "/api/sessions/{key}/interrupt", tag = "sessions", params(("key" = String, Path)),
    responses((status = 204, description = "The turn has a stop signal."))
)]
pub(crate) async fn interrupt(
    State(app): Shared,
    caller: Caller,
    Path(key): Path<String>,
) -> ApiResult<StatusCode> {
    check_turn_owner(&app, &caller, &key).await?;
    app.handle.interrupt(key.clone()).await?;
    app.record(&caller, ("session", "interrupt"), &key, json!({})).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels the waiting messages.
#[utoipa::path(
    post, path = "/api/sessions/{key}/clear", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn clear(
    State(app): Shared,
    caller: Caller,
    Path(key): Path<String>,
) -> ApiJson<CancelManyAnswer> {
    let cancelled = app.handle.clear_session(key.clone()).await? as u64;
    app.record(&caller, ("session", "clear"), &key, json!({ "cancelled": cancelled })).await?;
    Ok(Json(CancelManyAnswer { cancelled }))
}

/// The events of a session.
#[utoipa::path(
    get, path = "/api/sessions/{key}/events", tag = "sessions",
    params(("key" = String, Path), ("last-event-id" = Option<String>, Header, description = "resumes after this event")),
    responses((status = 200, body = ClientEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): Shared,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let lane = LaneName::session(&key).map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    let last = header_text(&headers, &LAST_EVENT_ID)?;
    let hub = app.handle.hub();
    let since = last.map_or(Since::Now, |last| hub.since(last));
    let subscription = hub.subscribe(of_all_replicas(Filter::lane(lane)), since);
    Ok(EventStream::new(Arc::clone(&app), subscription).into_response())
}
