//! Dead letters: look at them, run them again, throw them away.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use laneway_core::{DeadLetter, LaneName, TaskId};
use laneway_engine::Error;
use laneway_protocol::{At, DeadLetterView, LettersSelector, Page, RedriveAnswer};
use serde_json::json;

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, Path, Query, task_id};
use crate::http::routes::tasks::{PageQuery, bad_cursor, page_size};
use crate::service::envelope::Envelope;
use crate::service::parse;

/// The tasks that could not be done, the oldest first.
#[utoipa::path(
    get, path = "/api/dead-letters", tag = "dead letters", params(PageQuery),
    responses((status = 200, body = Page<DeadLetterView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Json<Page<DeadLetterView>>> {
    let max = page_size(query.limit)?;
    let after = query.cursor.as_deref().map(task_id).transpose().map_err(|_| bad_cursor())?;
    let letters: Vec<DeadLetter> = app
        .handle
        .read(move |lanes| {
            let letters = lanes.dead_letters().skip_while(|letter| after.is_some_and(|id| letter.task != id));
            letters.skip(usize::from(after.is_some())).take(max + 1).cloned().collect()
        })
        .await?;
    let next_cursor = (letters.len() > max).then(|| letters[max - 1].task.to_string());
    let mut items = Vec::with_capacity(letters.len().min(max));
    for letter in letters.into_iter().take(max) {
        items.push(view(&app, &letter).await?);
    }
    Ok(Json(Page { items, next_cursor }))
}

async fn view(app: &App, letter: &DeadLetter) -> ApiResult<DeadLetterView> {
    let bytes = match letter.spec.payload {
        Some(blob) => app.handle.payload(blob).await?,
        None => None,
    };
    let envelope = bytes.map(|bytes| Envelope::open(&bytes)).unwrap_or_default();
    Ok(DeadLetterView {
        id: letter.task.to_string(),
        lane: home_of(letter).to_string(),
        kind: letter.spec.kind.to_string(),
        payload: envelope.payload,
        error: letter.error.to_string(),
        attempts: letter.attempts,
        at: At(letter.at),
    })
}

fn home_of(letter: &DeadLetter) -> LaneName {
    letter.spec.lanes.first().cloned().unwrap_or_else(LaneName::main)
}

/// Runs a dead letter again, as a new task.
#[utoipa::path(
    post, path = "/api/dead-letters/{id}/redrive", tag = "dead letters", params(("id" = String, Path)),
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn redrive(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<RedriveAnswer>> {
    let letter = task_id(&id).map_err(|_| ApiError::not_found("dead letter"))?;
    let answer = redrive_all(&app, vec![letter]).await?;
    app.record(
        &caller,
        AuditRecord::new("dead_letter", "redrive", letter.to_string(), json!({ "count": answer.count })),
    )
    .await?;
    Ok(Json(answer))
}

/// Throws a dead letter away.
#[utoipa::path(
    delete, path = "/api/dead-letters/{id}", tag = "dead letters", params(("id" = String, Path)),
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn discard(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<RedriveAnswer>> {
    let letter = task_id(&id).map_err(|_| ApiError::not_found("dead letter"))?;
    app.handle.discard(letter).await?;
    let answer = RedriveAnswer { count: 1, tasks: Vec::new() };
    app.record(
        &caller,
        AuditRecord::new("dead_letter", "discard", letter.to_string(), json!({ "count": answer.count })),
    )
    .await?;
    Ok(Json(answer))
}

/// Runs all dead letters again that fit.
#[utoipa::path(
    post, path = "/api/dead-letters/redrive", tag = "dead letters", request_body = LettersSelector,
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn redrive_many(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(which): Body<LettersSelector>,
) -> ApiResult<Json<RedriveAnswer>> {
    let dry_run = which.dry_run;
    let letters = fitting(&app, which).await?;
    if dry_run {
        return Ok(Json(RedriveAnswer { count: letters.len() as u64, tasks: Vec::new() }));
    }
    let answer = redrive_all(&app, letters).await?;
    app.record(
        &caller,
        AuditRecord::new(
            "dead_letter",
            "redrive",
            "dead letters".to_owned(),
            json!({ "count": answer.count }),
        ),
    )
    .await?;
    Ok(Json(answer))
}

/// Throws all dead letters away that fit.
#[utoipa::path(
    delete, path = "/api/dead-letters", tag = "dead letters",
    params(("lane" = Option<String>, Query), ("kind" = Option<String>, Query), ("dry_run" = Option<bool>, Query)),
    responses((status = 200, body = RedriveAnswer))
)]
pub(crate) async fn discard_many(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(which): Query<LettersSelector>,
) -> ApiResult<Json<RedriveAnswer>> {
    let dry_run = which.dry_run;
    let letters = fitting(&app, which).await?;
    if dry_run {
        return Ok(Json(RedriveAnswer { count: letters.len() as u64, tasks: Vec::new() }));
    }
    let mut count = 0;
    for letter in letters {
        match app.handle.discard(letter).await {
            Ok(()) => count += 1,
            // Another caller was faster.
            Err(error) if error.code() == "NOT_FOUND" => {}
            Err(error) => return Err(error.into()),
        }
    }
    let answer = RedriveAnswer { count, tasks: Vec::new() };
    app.record(
        &caller,
        AuditRecord::new(
            "dead_letter",
            "discard",
            "dead letters".to_owned(),
            json!({ "count": answer.count }),
        ),
    )
    .await?;
    Ok(Json(answer))
}

async fn fitting(app: &App, which: LettersSelector) -> ApiResult<Vec<TaskId>> {
    let lane = which.lane.map(parse::lane).transpose()?;
    let kind = which.kind.map(|kind| parse::name("kind", kind)).transpose()?;
    if lane.is_none() && kind.is_none() {
        return Err(ApiError::invalid("say which: a lane or a kind"));
    }
    let look = move |lanes: &laneway_core::Scheduler| {
        let letters = lanes.dead_letters().filter(|letter| {
            lane.as_ref().is_none_or(|lane| home_of(letter) == *lane)
                && kind.as_ref().is_none_or(|kind| letter.spec.kind == *kind)
        });
        letters.map(|letter| letter.task).collect()
    };
    Ok(app.handle.read(look).await?)
}

async fn redrive_all(app: &App, letters: Vec<TaskId>) -> ApiResult<RedriveAnswer> {
    let is_one = letters.len() == 1;
    let mut tasks = Vec::new();
    for letter in letters {
        match app.handle.redrive(letter).await {
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
