//! Lists of tasks by page: live tasks first, then ended ones.

use axum::Json;
use axum::extract::State;
use laneway_core::{InLine, LaneName, Scheduler, Selector, TaskStatus};
use laneway_engine::{Cursor as HistoryCursor, EndState, HistoryFilter, Standing, UnknownWord};
use laneway_protocol::{Page, TaskView};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::{App, Shared};
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Query, task_id};
use crate::http::paging::{bad_cursor, page_size};
use crate::http::routes::tasks::{parent, selector};
use crate::service::task_view;

/// The largest page with payloads, each of which may be as long as a body.
const WITH_PAYLOADS_MAX: usize = 50;

/// Which tasks to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct TasksQuery {
    /// `queued`, `running`, `retrying`, or an end.
    status: Option<String>,
    /// Tasks that name this lane.
    lane: Option<String>,
    /// Turns of this session.
    session: Option<String>,
    /// Tasks of this kind.
    kind: Option<String>,
    /// Tasks with this label.
    group: Option<String>,
    /// Tasks that this task submitted.
    parent: Option<String>,
    /// Whether the items have their payloads. Such a page has at most 50 items.
    payload: bool,
    /// The largest number of items on the page. Default 50, at most 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

/// Where the next page of a list begins: in a lane, among live tasks, or among ended ones.
enum Cursor {
    Line(usize),
    Live(u32),
    Ended(Option<HistoryCursor>),
}

impl Cursor {
    fn read(text: Option<&str>) -> ApiResult<Cursor> {
        let cursor = match text.map(|text| text.split_once('-')) {
            None => Some(Cursor::Live(0)),
            Some(Some(("p", place))) => place.parse().ok().map(Cursor::Line),
            Some(Some(("l", slot))) => slot.parse().ok().map(Cursor::Live),
            Some(Some(("o", ""))) => Some(Cursor::Ended(None)),
            Some(Some(("o", place))) => place.parse().ok().map(|place| Cursor::Ended(Some(place))),
            Some(_) => None,
        };
        cursor.ok_or_else(bad_cursor)
    }
}

/// Tasks: live ones first, then ended ones, the newest first. A list of the `queued` tasks of one lane without another
/// filter is in the order of that lane, with each task's position.
#[utoipa::path(
    get, path = "/api/tasks", tag = "tasks", params(TasksQuery),
    responses((status = 200, body = Page<TaskView>))
)]
pub(crate) async fn list(State(app): Shared, Query(query): Query<TasksQuery>) -> ApiJson<Page<TaskView>> {
    let max = page_size(query.limit)?;
    if !query.payload {
        return page_of(&app, &query, max).await.map(Json);
    }
    if query.limit.is_some_and(|limit| limit > WITH_PAYLOADS_MAX) {
        return Err(ApiError::invalid(format!("limit must be at most {WITH_PAYLOADS_MAX} with payload")));
    }
    let mut page = page_of(&app, &query, max.min(WITH_PAYLOADS_MAX)).await?;
    for item in &mut page.items {
        let record = app.handle.record(task_id(&item.id)?).await?;
        item.payload = Some(task_view::json(record.and_then(|record| record.payload).as_deref()));
    }
    Ok(Json(page))
}

async fn page_of(app: &App, query: &TasksQuery, max: usize) -> ApiResult<Page<TaskView>> {
    let wanted = TaskFilter::of(query)?;
    let mut items = Vec::new();
    let mut cursor = Some(Cursor::read(query.cursor.as_deref())?);
    if let Some(lane) = wanted.line_of() {
        let from = match cursor {
            Some(Cursor::Line(from)) => from,
            Some(Cursor::Live(0)) => 0,
            _ => return Err(bad_cursor()),
        };
        return line(app, lane, from, max).await;
    }
    if let Some(Cursor::Live(from)) = cursor {
        cursor = None;
        let mut next = None;
        if wanted.status.is_none_or(|status| status.is_live()) {
            let (selector, status) = (wanted.selector.clone(), wanted.status.and_then(Status::live));
            let look = move |lanes: &Scheduler| {
                let (page, next) = lanes.page(&selector, status, from, max);
                let page = page.into_iter().map(|view| {
                    let standing = Standing::of(lanes, view.id);
                    task_view::live(&view, standing)
                });
                (page.collect::<Vec<TaskView>>(), next)
            };
            (items, next) = app.handle.read(look).await?;
        }
        cursor = match next {
            Some(slot) => return Ok(page(items, Some(format!("l-{slot}")))),
            None => cursor.or(Some(Cursor::Ended(None))),
        };
    }
    let Some(Cursor::Ended(after)) = cursor else { return Ok(page(items, None)) };
    if wanted.status.is_some_and(|status| status.is_live()) {
        return Ok(page(items, None));
    }
    if items.len() >= max {
        return Ok(page(items, Some("o-".to_owned())));
    }
    let Selector { lane, kind, group, parent } = wanted.selector;
    let state = wanted.status.and_then(Status::ended);
    let max = (max - items.len()) as u32;
    let filter = HistoryFilter { state, lane, kind, session: None, group, parent, after, max };
    let found = app.handle.history(filter).await?;
    items.extend(found.items.iter().map(task_view::finished));
    Ok(page(items, found.next.map(|place| format!("o-{place}"))))
}

/// The tasks that wait in a lane, in order.
async fn line(app: &App, lane: LaneName, from: usize, max: usize) -> ApiResult<Page<TaskView>> {
    let look = move |lanes: &Scheduler| {
        let (line, next) = lanes.line_in(&lane, from, max);
        let view = |(view, place): InLine| TaskView {
            lane_position: place.map(|place| place as u64),
            ..task_view::live(&view, Standing::of(lanes, view.id))
        };
        (line.into_iter().map(view).collect(), next)
    };
    let (items, next) = app.handle.read(look).await?;
    Ok(page(items, next.map(|place| format!("p-{place}"))))
}

fn page(items: Vec<TaskView>, next_cursor: Option<String>) -> Page<TaskView> {
    Page { items, next_cursor }
}

#[derive(Clone, Copy)]
enum Status {
    Live(TaskStatus),
    Ended(EndState),
}

impl Status {
    fn is_live(self) -> bool {
        matches!(self, Status::Live(_))
    }

    fn ended(self) -> Option<EndState> {
        match self {
            Status::Live(_) => None,
            Status::Ended(state) => Some(state),
        }
    }

    fn live(self) -> Option<TaskStatus> {
        match self {
            Status::Live(status) => Some(status),
            Status::Ended(_) => None,
        }
    }
}

struct TaskFilter {
    selector: Selector,
    status: Option<Status>,
}

impl TaskFilter {
    fn of(query: &TasksQuery) -> ApiResult<TaskFilter> {
        let status = match query.status.as_deref() {
            None => None,
            Some("queued") => Some(Status::Live(TaskStatus::Queued)),
            Some("running") => Some(Status::Live(TaskStatus::Running)),
            Some("retrying") => Some(Status::Live(TaskStatus::Retrying)),
            Some(word) => Some(Status::Ended(word.parse().map_err(|error: UnknownWord| {
                ApiError::invalid(format!("status must be queued, running, retrying, or else {error}"))
            })?)),
        };
        let selector =
            selector(query.lane.clone(), query.session.clone(), query.kind.clone(), query.group.clone())?;
        let parent = query.parent.as_deref().map(parent).transpose()?;
        Ok(TaskFilter { selector: Selector { parent, ..selector }, status })
    }

    /// The lane, if the filter has no other condition than `queued`.
    fn line_of(&self) -> Option<LaneName> {
        let Selector { lane, kind: None, group: None, parent: None } = &self.selector else { return None };
        lane.clone().filter(|_| matches!(self.status, Some(Status::Live(TaskStatus::Queued))))
    }
}
