//! Sessions and their messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway_core::{
    EffectiveQueue, LaneName, Message as Waiting, Millis, QueueOverrides, SessionView, SetAside, TaskId,
    ToolLane,
};
use laneway_engine::{Filter, Since};
use laneway_protocol::{
    At, CancelManyAnswer, ClientEvent, MessageView, Page, SessionChange, SessionStats, SessionSummary,
    ToolLaneStats, handler_word,
};
use serde_json::{Value, json};

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::events::stream::{EventStream, everywhere};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, LAST_EVENT_ID, Path, Query, header_text};
use crate::http::routes::tasks::{PageQuery, bad_cursor, page_size};
use crate::service::send_message::{check_turn_owner, drop_rule, message_text, mode};

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

fn set_aside(aside: &SetAside) -> MessageView {
    MessageView { error: aside.error.as_deref().map(str::to_owned), ..waiting(&aside.message) }
}

/// How messages are queued, each value with where it comes from.
fn settings(queue: &EffectiveQueue) -> BTreeMap<String, Value> {
    let setting = |value: String, from: &str| json!({ "value": value, "from": from });
    let mut settings = BTreeMap::new();
    settings
        .insert("mode".to_owned(), setting(queue.mode.value.as_str().to_owned(), queue.mode.origin.as_str()));
    settings.insert(
        "debounce_ms".to_owned(),
        setting(queue.debounce.value.0.to_string(), queue.debounce.origin.as_str()),
    );
    settings.insert(
        "max_wait_ms".to_owned(),
        setting(queue.max_wait.value.0.to_string(), queue.max_wait.origin.as_str()),
    );
    settings.insert("cap".to_owned(), setting(queue.cap.value.to_string(), queue.cap.origin.as_str()));
    settings
        .insert("drop".to_owned(), setting(queue.drop.value.as_str().to_owned(), queue.drop.origin.as_str()));
    settings
}

fn summary(view: &SessionView) -> SessionSummary {
    let current_turn = view.turns.first().map(|turn| {
        json!({
            "task_id": turn.task.to_string(),
            "messages": turn.messages.iter().map(message_text).collect::<Vec<_>>(),
            "takes_steering": turn.takes_steering,
            "pending": turn.pending.iter().map(message_text).collect::<Vec<_>>(),
            "steered": turn.steered.iter().map(message_text).collect::<Vec<_>>(),
            "said": turn.said.iter().map(waiting).collect::<Vec<_>>(),
        })
    });
    SessionSummary {
        key: view.key.clone(),
        is_busy: view.busy,
        typing: view.typing,
        settings: settings(&view.queue),
        current_turn,
        messages: view.waiting.iter().map(waiting).collect(),
        dropped: view.dropped,
        retry_at: view.retry_at.map(At),
        set_aside: view.aside.iter().map(set_aside).collect(),
    }
}

/// The sessions of which there is something to remember.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", params(PageQuery),
    responses((status = 200, body = Page<SessionSummary>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Json<Page<SessionSummary>>> {
    let max = page_size(query.limit)?;
    let skip = query.cursor.as_deref().map(str::parse::<usize>).transpose().map_err(|_| bad_cursor())?;
    let skip = skip.unwrap_or(0);
    let sessions = app.handle.sessions().await?;
    let items: Vec<SessionSummary> = sessions.iter().skip(skip).take(max).map(summary).collect();
    let next = skip + items.len();
    Ok(Json(Page { items, next_cursor: (next < sessions.len()).then(|| next.to_string()) }))
}

/// A session.
#[utoipa::path(
    get, path = "/api/sessions/{key}", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = SessionSummary))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
) -> ApiResult<Json<SessionSummary>> {
    let view = app.handle.session(key).await?.ok_or_else(|| ApiError::not_found("session"))?;
    let mut summary = summary(&view);
    let turn = view.turns.first();
    if turn.is_none_or(|turn| turn.said.is_empty())
        && let Some((task, said)) = asked_directly(&app, view.lane, turn.map(|turn| turn.task)).await?
    {
        let nothing: [String; 0] = [];
        let turn = summary.current_turn.get_or_insert_with(|| {
            json!({
                "task_id": task.to_string(),
                "messages": nothing,
                "takes_steering": false,
                "pending": nothing,
                "steered": nothing,
            })
        });
        turn["said"] = json!([said]);
    }
    Ok(Json(summary))
}

/// What a turn was asked for with that was asked for directly and not with messages: that of `turn`, else of the one that
/// runs in the lane of the conversation, else of the first in its line.
async fn asked_directly(
    app: &App,
    lane: LaneName,
    turn: Option<TaskId>,
) -> ApiResult<Option<(TaskId, MessageView)>> {
    let look = move |lanes: &laneway_core::Scheduler| match turn {
        Some(turn) => lanes.task(turn),
        None => {
            let (running, _) = lanes.line_of(&lane, 1);
            running.into_iter().next().or_else(|| Some(lanes.line_in(&lane, 0, 1).0.pop()?.0))
        }
    };
    let Some(task) = app.handle.read(look).await? else { return Ok(None) };
    let Some(turn) = crate::service::task_view::envelope_of(&app.handle, &task).await?.turn() else {
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

/// How the tool lanes of a session stand.
#[utoipa::path(
    get, path = "/api/sessions/{key}/stats", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = SessionStats))
)]
pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
) -> ApiResult<Json<SessionStats>> {
    let tool_lanes = [ToolLane::Control, ToolLane::Query, ToolLane::Execute, ToolLane::Generate];
    let mut names = Vec::new();
    for lane in tool_lanes {
        let name =
            LaneName::tool(&key, lane).map_err(|error| ApiError::invalid(format!("session: {error}")))?;
        names.push((lane.as_str(), name));
    }
    let look = move |lanes: &laneway_core::Scheduler| {
        let mut stats =
            SessionStats { settings: settings(&lanes.queue_for(&key, None)), ..SessionStats::default() };
        for (word, name) in names {
            let lane_settings = lanes.settings_for(&name);
            let label = lanes.lane(&name).map(|view| view.label.to_owned());
            let label = label.unwrap_or_else(|| format!("session:*/{word}"));
            let seen = lanes.stats().find(|(known, _)| *known == label).map(|(_, stats)| stats);
            let (active, pending) = lanes.lane(&name).map_or((0, 0), |view| (view.running, view.waiting));
            let is_external = lane_settings.handler == laneway_core::Handler::External;
            stats.total_active += active;
            stats.total_pending += pending;
            stats.external_pending += if is_external { pending } else { 0 };
            let lane = ToolLaneStats {
                pending,
                active,
                completed: seen.map_or(0, |seen| seen.completed),
                failed: seen.map_or(0, |seen| seen.failed),
                max_concurrency: lane_settings.max_concurrency,
                handler_mode: handler_word(lane_settings.handler).to_owned(),
            };
            stats.lanes.insert(word.to_owned(), lane);
        }
        stats
    };
    Ok(Json(app.handle.read(look).await?))
}

/// Says how the messages of this session are queued. What is left out stays.
#[utoipa::path(
    patch, path = "/api/sessions/{key}", tag = "sessions", params(("key" = String, Path)),
    request_body = SessionChange, responses((status = 200, body = SessionSummary))
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
    Body(change): Body<SessionChange>,
) -> ApiResult<Json<SessionSummary>> {
    let asked = QueueOverrides {
        mode: change.mode.as_deref().map(mode).transpose()?,
        debounce: change.debounce_ms.map(Millis),
        max_wait: change.max_wait_ms.map(Millis),
        cap: change.cap,
        drop: change.drop.as_deref().map(drop_rule).transpose()?,
    };
    app.handle.amend_session(key.clone(), asked).await?;
    app.record(
        &caller,
        AuditRecord::new("session", "change", &key, serde_json::to_value(&change).unwrap_or_default()),
    )
    .await?;
    get(State(app), Path(key)).await
}

/// Cancels the turn that is under way; what waits goes on.
#[utoipa::path(
    post, path = "/api/sessions/{key}/interrupt", tag = "sessions", params(("key" = String, Path)),
    responses((status = 204, description = "it was told to stop"))
)]
pub(crate) async fn interrupt(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
) -> ApiResult<StatusCode> {
    check_turn_owner(&app, &caller, &key).await?;
    app.handle.interrupt(key.clone()).await?;
    app.record(&caller, AuditRecord::new("session", "interrupt", &key, json!({}))).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels the messages that wait.
#[utoipa::path(
    post, path = "/api/sessions/{key}/clear", tag = "sessions", params(("key" = String, Path)),
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn clear(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(key): Path<String>,
) -> ApiResult<Json<CancelManyAnswer>> {
    let cancelled = app.handle.clear_session(key.clone()).await? as u64;
    app.record(&caller, AuditRecord::new("session", "clear", &key, json!({ "cancelled": cancelled })))
        .await?;
    Ok(Json(CancelManyAnswer { cancelled }))
}

/// The events of a session.
#[utoipa::path(
    get, path = "/api/sessions/{key}/events", tag = "sessions",
    params(("key" = String, Path), ("last-event-id" = Option<String>, Header, description = "goes on after this")),
    responses((status = 200, body = ClientEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let lane = LaneName::session(&key).map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    let last = header_text(&headers, &LAST_EVENT_ID)?;
    let hub = app.handle.hub();
    let since = last.map_or(Since::Now, |last| hub.since(last));
    let subscription = hub.subscribe(everywhere(Filter::lane(lane)), since);
    Ok(EventStream::new(Arc::clone(&app), subscription).into_response())
}
