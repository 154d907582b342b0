//! Dead letters: list, redrive, delete.

use axum::Json;
use axum::extract::State;
use laneway_core::{DeadLetter, LaneName, Name, TaskId};
use laneway_engine::Error;
use laneway_protocol::{At, DeadLetterView, LettersSelector, Page, RedriveAnswer};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::app::{App, Shared};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, Path, Query, task_id};
use crate::http::paging::{bad_cursor, page_size};
use crate::service::{parse, task_view};

/// Which dead letters to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLettersQuery {
    /// Tasks with this home lane.
    lane: Option<String>,
    /// Tasks of this session, also of its tool lanes.
    session: Option<String>,
    /// Tasks of this kind.
    kind: Option<String>,
    /// The largest number of items on the page. Default 50, at most 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

/// The tasks that failed for good, the oldest first.
#[utoipa::path(
    get, path = "/api/dead-letters", tag = "dead letters", params(DeadLettersQuery),
    responses((status = 200, body = Page<DeadLetterView>))
)]
pub(crate) async fn list(
    State(app): Shared,
    Query(query): Query<DeadLettersQuery>,
) -> ApiJson<Page<DeadLetterView>> {
    let max = page_size(query.limit)?;
    let after = query.cursor.as_deref().map(task_id).transpose().map_err(|_| bad_cursor())?;
    let which = Which::new(query.lane, query.session, query.kind)?;
    let dead_letters: Vec<DeadLetter> = app
        .handle
        .read(move |lanes| {
            let dead_letters =
                lanes.dead_letters().skip_while(|dead_letter| after.is_some_and(|id| dead_letter.task != id));
            let dead_letters = dead_letters.skip(usize::from(after.is_some()));
            dead_letters.filter(|dead_letter| which.fits(dead_letter)).take(max + 1).cloned().collect()
        })
        .await?;
    let next_cursor = (dead_letters.len() > max).then(|| dead_letters[max - 1].task.to_string());
    let mut items = Vec::with_capacity(dead_letters.len().min(max));
    for dead_letter in dead_letters.into_iter().take(max) {
        items.push(view(&app, &dead_letter).await?);
    }
    Ok(Json(Page { items, next_cursor }))
}

async fn view(app: &App, dead_letter: &DeadLetter) -> ApiResult<DeadLetterView> {
    // The history may have forgotten the task.
    let ended = app.handle.finished(dead_letter.task).await?;
    let output = ended.and_then(|(_, result)| result);
    Ok(DeadLetterView {
        id: dead_letter.task.to_string(),
        lane: home_of(dead_letter).to_string(),
        session: task_view::session_of(&dead_letter.spec.lanes),
        kind: dead_letter.spec.kind.to_string(),
        payload: task_view::payload_of(&app.handle, dead_letter.spec.payload).await?,
        error: dead_letter.error.to_string(),
        result: output.map(|bytes| task_view::json(Some(&bytes))),
        attempts: dead_letter.attempts,
        at: At(dead_letter.at),
    })
}

fn home_of(dead_letter: &DeadLetter) -> LaneName {
    dead_letter.spec.lanes.first().cloned().unwrap_or_else(LaneName::main)
}

/// Runs a dead letter again, as a new task.
#[utoipa::path(
    post, path = "/api/dead-letters/{id}/redrive", tag = "dead letters", params(("id" = String, Path)),
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn redrive(
    State(app): Shared,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiJson<RedriveAnswer> {
    let dead_letter = dead_letter_id(&id)?;
    let answer = redrive_all(&app, vec![dead_letter]).await?;
    recorded(&app, &caller, "redrive", &dead_letter.to_string(), answer).await
}

/// Deletes a dead letter.
#[utoipa::path(
    delete, path = "/api/dead-letters/{id}", tag = "dead letters", params(("id" = String, Path)),
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn discard(
    State(app): Shared,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiJson<RedriveAnswer> {
    let dead_letter = dead_letter_id(&id)?;
    app.handle.discard(dead_letter).await?;
    recorded(&app, &caller, "discard", &dead_letter.to_string(), count(1)).await
}

/// Runs all dead letters again that match.
#[utoipa::path(
    post, path = "/api/dead-letters/redrive", tag = "dead letters", request_body = LettersSelector,
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn redrive_many(
    State(app): Shared,
    caller: Caller,
    Body(which): Body<LettersSelector>,
) -> ApiJson<RedriveAnswer> {
    let dry_run = which.dry_run;
    let dead_letters = matching(&app, which).await?;
    if dry_run {
        return Ok(Json(count(dead_letters.len())));
    }
    let answer = redrive_all(&app, dead_letters).await?;
    recorded(&app, &caller, "redrive", ALL, answer).await
}

/// Deletes all dead letters that match.
#[utoipa::path(
    delete, path = "/api/dead-letters", tag = "dead letters",
    params(
        ("lane" = Option<String>, Query),
        ("session" = Option<String>, Query),
        ("kind" = Option<String>, Query),
        ("dry_run" = Option<bool>, Query),
    ),
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn discard_many(
    State(app): Shared,
    caller: Caller,
    Query(which): Query<LettersSelector>,
) -> ApiJson<RedriveAnswer> {
    let dry_run = which.dry_run;
    let dead_letters = matching(&app, which).await?;
    if dry_run {
        return Ok(Json(count(dead_letters.len())));
    }
    let mut discarded = 0;
    for dead_letter in dead_letters {
        match app.handle.discard(dead_letter).await {
            Ok(()) => discarded += 1,
            // Another caller was faster.
            Err(error) if error.code() == "NOT_FOUND" => {}
            Err(error) => return Err(error.into()),
        }
    }
    recorded(&app, &caller, "discard", ALL, count(discarded)).await
}

/// The audit log's name for several dead letters.
const ALL: &str = "dead letters";

fn dead_letter_id(text: &str) -> ApiResult<TaskId> {
    task_id(text).map_err(|_| ApiError::not_found("dead letter"))
}

fn count(dead_letters: usize) -> RedriveAnswer {
    RedriveAnswer { count: dead_letters as u64, tasks: Vec::new() }
}

async fn recorded(
    app: &App,
    caller: &Caller,
    action: &'static str,
    target: &str,
    answer: RedriveAnswer,
) -> ApiJson<RedriveAnswer> {
    app.record(caller, ("dead_letter", action), target, json!({ "count": answer.count })).await?;
    Ok(Json(answer))
}

async fn matching(app: &App, which: LettersSelector) -> ApiResult<Vec<TaskId>> {
    let which = Which::new(which.lane, which.session, which.kind)?;
    if which.is_everything() {
        return Err(ApiError::invalid("say which: a lane, a session or a kind"));
    }
    let look = move |lanes: &laneway_core::Scheduler| {
        let dead_letters = lanes.dead_letters().filter(|dead_letter| which.fits(dead_letter));
        dead_letters.map(|dead_letter| dead_letter.task).collect()
    };
    Ok(app.handle.read(look).await?)
}

/// The dead letters that a caller means: those that match everything that is set.
struct Which {
    lane: Option<LaneName>,
    session: Option<String>,
    kind: Option<Name>,
}

impl Which {
    fn new(lane: Option<String>, session: Option<String>, kind: Option<String>) -> ApiResult<Which> {
        let lane = lane.map(parse::lane).transpose()?;
        let kind = kind.map(|kind| parse::name("kind", kind)).transpose()?;
        Ok(Which { lane, session, kind })
    }

    fn is_everything(&self) -> bool {
        self.lane.is_none() && self.session.is_none() && self.kind.is_none()
    }

    fn fits(&self, dead_letter: &DeadLetter) -> bool {
        let spec = &dead_letter.spec;
        self.lane.as_ref().is_none_or(|lane| home_of(dead_letter) == *lane)
            && self
                .session
                .as_ref()
                .is_none_or(|key| task_view::session_of(&spec.lanes).as_ref() == Some(key))
            && self.kind.as_ref().is_none_or(|kind| spec.kind == *kind)
    }
}

async fn redrive_all(app: &App, dead_letters: Vec<TaskId>) -> ApiResult<RedriveAnswer> {
    let is_one = dead_letters.len() == 1;
    let mut tasks = Vec::new();
    for dead_letter in dead_letters {
        match app.handle.redrive(dead_letter).await {
            Ok(task) => {
                tasks.push(task.id().to_string());
                task.detach();
            }
            Err(error) if error.code() == "NOT_FOUND" && !is_one => {}
            Err(Error::NotForClosures(_)) if !is_one => {}
            // A full lane ends a redrive of many; the answer names those that were redriven.
            Err(_) if !tasks.is_empty() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(RedriveAnswer { count: tasks.len() as u64, tasks })
}
