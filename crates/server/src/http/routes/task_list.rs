//! Lists of tasks, a page at a time: the live ones first, then those that are over.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use laneway_core::{InLine, LaneName, Selector, TaskStatus};
use laneway_engine::{Cursor as Place, EndState, HistoryFilter, Standing, UnknownWord};
use laneway_protocol::{Page, TaskView};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::Query;
use crate::http::routes::tasks::{bad_cursor, page_size, parent, selector};
use crate::service::task_view;

/// Which tasks to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct TasksQuery {
    /// `queued`, `running`, `retrying`, or an end.
    status: Option<String>,
    /// They name this lane.
    lane: Option<String>,
    /// They are turns of this conversation.
    session: Option<String>,
    /// They are of this kind.
    kind: Option<String>,
    /// They carry this label.
    group: Option<String>,
    /// This task asked for them.
    parent: Option<String>,
    /// How many at most. Default 50, at most 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Where the page before ended.
    cursor: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

/// Where a list of tasks goes on: in the line of a lane, among the live ones, or among those that are over.
enum Cursor {
    Line(usize),
    Live(u32),
    Over(Option<Place>),
}

impl Cursor {
    fn read(text: Option<&str>) -> ApiResult<Cursor> {
        let cursor = match text.map(|text| text.split_once('-')) {
            None => Some(Cursor::Live(0)),
            Some(Some(("p", place))) => place.parse().ok().map(Cursor::Line),
            Some(Some(("l", slot))) => slot.parse().ok().map(Cursor::Live),
            Some(Some(("o", ""))) => Some(Cursor::Over(None)),
            Some(Some(("o", place))) => place.parse().ok().map(|place| Cursor::Over(Some(place))),
            Some(_) => None,
        };
        cursor.ok_or_else(bad_cursor)
    }
}

/// Tasks, the live ones first, then those that are over, the newest first. Those that are `queued` in a lane, by no other
/// mark, come in the order in which they stand in it, each with its place there.
#[utoipa::path(
    get, path = "/api/tasks", tag = "tasks", params(TasksQuery),
    responses((status = 200, body = Page<TaskView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<TasksQuery>,
) -> ApiResult<Json<Page<TaskView>>> {
    let max = page_size(query.limit)?;
    let which = Which::of(&query)?;
    let mut items = Vec::new();
    let mut cursor = Some(Cursor::read(query.cursor.as_deref())?);
    if let Some(lane) = which.line_of() {
        let from = match cursor {
            Some(Cursor::Line(from)) => from,
            Some(Cursor::Live(0)) => 0,
            _ => return Err(bad_cursor()),
        };
        return line(&app, lane, from, max).await;
    }
    if let Some(Cursor::Live(from)) = cursor {
        cursor = None;
        let mut next = None;
        if which.status.is_none_or(|status| status.is_live()) {
            let (selector, status) = (which.selector.clone(), which.status.and_then(Status::live));
            let look = move |lanes: &laneway_core::Scheduler| {
                let (page, next) = lanes.page(&selector, status, from, max);
                let page = page.into_iter().map(|view| {
                    let standing = Standing::of(lanes, view.id);
                    task_view::live(&view, standing, None)
                });
                (page.collect::<Vec<TaskView>>(), next)
            };
            (items, next) = app.handle.read(look).await?;
        }
        cursor = match next {
            Some(slot) => return Ok(page(items, Some(format!("l-{slot}")))),
            None => cursor.or(Some(Cursor::Over(None))),
        };
    }
    let Some(Cursor::Over(after)) = cursor else { return Ok(page(items, None)) };
    if which.status.is_some_and(|status| status.is_live()) {
        return Ok(page(items, None));
    }
    if items.len() >= max {
        return Ok(page(items, Some("o-".to_owned())));
    }
    let Selector { lane, kind, group, parent } = which.selector;
    let state = which.status.and_then(Status::over);
    let max = (max - items.len()) as u32;
    let filter = HistoryFilter { state, lane, kind, session: None, group, parent, after, max };
    let found = app.handle.history(filter).await?;
    items.extend(found.items.iter().map(|finished| task_view::finished(finished, None, None)));
    Ok(page(items, found.next.map(|place| format!("o-{place}"))))
}

/// Those that wait in a lane, in order.
async fn line(app: &App, lane: LaneName, from: usize, max: usize) -> ApiResult<Json<Page<TaskView>>> {
    let look = move |lanes: &laneway_core::Scheduler| {
        let (line, next) = lanes.line_in(&lane, from, max);
        let view = |(view, place): InLine| TaskView {
            lane_position: place.map(|place| place as u64),
            ..task_view::live(&view, Standing::of(lanes, view.id), None)
        };
        (line.into_iter().map(view).collect(), next)
    };
    let (items, next) = app.handle.read(look).await?;
    Ok(page(items, next.map(|place| format!("p-{place}"))))
}

fn page(items: Vec<TaskView>, next_cursor: Option<String>) -> Json<Page<TaskView>> {
    Json(Page { items, next_cursor })
}

#[derive(Clone, Copy)]
enum Status {
    Live(TaskStatus),
    Over(EndState),
}

impl Status {
    fn is_live(self) -> bool {
        matches!(self, Status::Live(_))
    }

    fn over(self) -> Option<EndState> {
        match self {
            Status::Live(_) => None,
            Status::Over(state) => Some(state),
        }
    }

    fn live(self) -> Option<TaskStatus> {
        match self {
            Status::Live(status) => Some(status),
            Status::Over(_) => None,
        }
    }
}

struct Which {
    selector: Selector,
    status: Option<Status>,
}

impl Which {
    fn of(query: &TasksQuery) -> ApiResult<Which> {
        let status = match query.status.as_deref() {
            None => None,
            Some("queued") => Some(Status::Live(TaskStatus::Queued)),
            Some("running") => Some(Status::Live(TaskStatus::Running)),
            Some("retrying") => Some(Status::Live(TaskStatus::Retrying)),
            Some(word) => Some(Status::Over(word.parse().map_err(|error: UnknownWord| {
                ApiError::invalid(format!("status must be queued, running, retrying, or else {error}"))
            })?)),
        };
        let selector =
            selector(query.lane.clone(), query.session.clone(), query.kind.clone(), query.group.clone())?;
        let parent = query.parent.as_deref().map(parent).transpose()?;
        Ok(Which { selector: Selector { parent, ..selector }, status })
    }

    /// The lane whose line is asked for, and nothing else.
    fn line_of(&self) -> Option<LaneName> {
        let Selector { lane, kind: None, group: None, parent: None } = &self.selector else { return None };
        lane.clone().filter(|_| matches!(self.status, Some(Status::Live(TaskStatus::Queued))))
    }
}
