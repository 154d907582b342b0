//! Schedules over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use laneway_config::{CatchUp, Schedule};
use laneway_protocol::{At, Code, NewSchedule, Page, ScheduleChange, ScheduleRun, ScheduleView};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, Path, Query};
use crate::http::routes::tasks::{PAGE, bad_cursor, page_size};
use crate::schedules::cron::{Times, millis};
use crate::schedules::notes::{self, Made};
use crate::schedules::{MADE_MAX, fire_now};
use crate::service::ask_agent::agent_named;
use crate::service::parse;

/// All schedules with messages of this length, and their firings, fit into the notes of the log.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// How often a change is tried again after a concurrent one.
const CHANGE_TRIES: usize = 10;
/// How many of the next firings are shown.
const NEXT_SHOWN: usize = 3;

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct SchedulePage {
    /// How many at most. Default 500, at most 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Where the page before ended.
    cursor: Option<String>,
    /// A browser's way to show its token.
    #[param(ignore)]
    access_token: Option<String>,
}

impl SchedulePage {
    /// The page, and where it ended if more follow.
    fn page_of<T>(self, all: Vec<T>) -> ApiResult<(Vec<T>, Option<String>)> {
        let max = page_size(Some(self.limit.unwrap_or(PAGE.1)))?;
        let skip = self.cursor.as_deref().map(str::parse::<usize>).transpose().map_err(|_| bad_cursor())?;
        let (skip, count) = (skip.unwrap_or(0), all.len());
        let items: Vec<T> = all.into_iter().skip(skip).take(max).collect();
        let next = skip + items.len();
        Ok((items, (next < count).then(|| next.to_string())))
    }
}

fn view(schedule: &Schedule, origin: &str, last_run: Option<ScheduleRun>) -> ScheduleView {
    let mut next_runs = Vec::new();
    let times = Times::read(&schedule.cron, &schedule.timezone).ok();
    if let (true, Some(times)) = (schedule.enabled, &times) {
        let mut from = Timestamp::now();
        while next_runs.len() < NEXT_SHOWN
            && let Some(next) = times.after(from)
        {
            next_runs.push(At(laneway_core::Timestamp(millis(next))));
            from = next;
        }
    }
    ScheduleView {
        name: schedule.name.to_string(),
        cron: schedule.cron.clone(),
        words: times.map(|times| times.words()),
        timezone: schedule.timezone.clone(),
        agent: schedule.agent.to_string(),
        message: schedule.message.clone(),
        session: schedule.session.clone(),
        enabled: schedule.enabled,
        catch_up: if schedule.catch_up == CatchUp::One { "one" } else { "skip" }.to_owned(),
        origin: origin.to_owned(),
        next_runs,
        last_run,
    }
}

async fn find(app: &App, name: &str) -> ApiResult<(Schedule, &'static str)> {
    let all = notes::all(&app.handle, &app.config()).await?;
    all.into_iter()
        .find(|(schedule, _)| schedule.name.as_str() == name)
        .ok_or_else(|| ApiError::not_found("schedule"))
}

/// How a schedule stands.
async fn shown(app: &App, name: &str) -> ApiResult<Json<ScheduleView>> {
    let (schedule, origin) = find(app, name).await?;
    let last_run = notes::newest(&app.handle, vec![schedule.name.clone()]).await?.pop().flatten();
    Ok(Json(view(&schedule, origin, last_run)))
}

fn catch_up(word: Option<&str>) -> ApiResult<Option<bool>> {
    match word {
        None => Ok(None),
        Some("skip") => Ok(Some(false)),
        Some("one") => Ok(Some(true)),
        Some(_) => Err(ApiError::invalid("catch_up must be skip or one")),
    }
}

fn check(app: &App, made: &Made) -> ApiResult<()> {
    Times::read(&made.cron, &made.timezone).map_err(|error| ApiError::invalid(error.to_string()))?;
    agent_named(app, &made.agent).map_err(|_| ApiError::invalid("agent must be the name of an agent"))?;
    if made.message.trim().is_empty() {
        return Err(ApiError::invalid("message must not be empty"));
    }
    if made.message.len() > MESSAGE_BYTES_MAX {
        let detail = format!("message must have at most {MESSAGE_BYTES_MAX} bytes");
        return Err(ApiError::new(Code::TooLarge, detail));
    }
    if let Some(session) = &made.session {
        if session.is_empty() {
            return Err(ApiError::invalid("session must not be empty"));
        }
        let lane = laneway_core::LaneName::session(session);
        lane.map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    }
    Ok(())
}

/// A concurrent request, here or at another replica, was faster.
fn is_taken() -> ApiError {
    ApiError::invalid("there is a schedule of that name already").status(StatusCode::CONFLICT)
}

fn has_changed() -> ApiError {
    ApiError::invalid("somebody else has changed it meanwhile; look again").status(StatusCode::CONFLICT)
}

/// All schedules, by name.
#[utoipa::path(
    get, path = "/api/schedules", tag = "schedules", params(SchedulePage),
    responses((status = 200, body = Page<ScheduleView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<SchedulePage>,
) -> ApiResult<Json<Page<ScheduleView>>> {
    let all = notes::all(&app.handle, &app.config()).await?;
    let (some, next_cursor) = query.page_of(all)?;
    let names = some.iter().map(|(schedule, _)| schedule.name.clone()).collect();
    let newest = notes::newest(&app.handle, names).await?;
    let items =
        some.iter().zip(newest).map(|((schedule, origin), last_run)| view(schedule, origin, last_run));
    Ok(Json(Page { items: items.collect(), next_cursor }))
}

/// Makes a schedule.
#[utoipa::path(
    post, path = "/api/schedules", tag = "schedules", request_body = NewSchedule,
    responses((status = 201, body = ScheduleView))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(new): Body<NewSchedule>,
) -> ApiResult<(StatusCode, Json<ScheduleView>)> {
    let name = parse::name("name", new.name)?.to_string();
    let made = Made {
        cron: new.cron,
        timezone: new.timezone.unwrap_or_else(|| "UTC".to_owned()),
        agent: new.agent,
        message: new.message,
        session: new.session,
        enabled: new.enabled.unwrap_or(true),
        catch_up_one: catch_up(new.catch_up.as_deref())?.unwrap_or(false),
    };
    check(&app, &made)?;
    if find(&app, &name).await.is_ok() {
        return Err(is_taken());
    }
    if notes::made_count(&app.handle).await? >= MADE_MAX {
        return Err(ApiError::invalid(format!("there can be {MADE_MAX} schedules at most")));
    }
    let details = json!({ "cron": &made.cron, "agent": &made.agent });
    // A firing that was under way when one of this name was taken away may have been written after that.
    let mut changes = notes::forgotten(&app.handle, &name).await?;
    changes.push(notes::made(&name, Some(&made)));
    if !notes::change(&app.handle, vec![notes::made(&name, None)], changes).await? {
        return Err(is_taken());
    }
    app.record(&caller, AuditRecord::new("schedule", "create_schedule", &name, details)).await?;
    Ok((StatusCode::CREATED, shown(&app, &name).await?))
}

/// Changes a schedule. One of the configuration file can only be switched on and off.
#[utoipa::path(
    patch, path = "/api/schedules/{name}", tag = "schedules", params(("name" = String, Path)),
    request_body = ScheduleChange, responses((status = 200, body = ScheduleView))
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Body(change): Body<ScheduleChange>,
) -> ApiResult<Json<ScheduleView>> {
    let enabled = change.enabled;
    let mut is_done = false;
    for _ in 0..CHANGE_TRIES {
        is_done = try_change(&app, &name, change.clone()).await?;
        if is_done {
            break;
        }
    }
    if !is_done {
        return Err(has_changed());
    }
    app.record(
        &caller,
        AuditRecord::new("schedule", "change_schedule", &name, json!({ "enabled": enabled })),
    )
    .await?;
    shown(&app, &name).await
}

/// Changes a schedule as it is now; `false`: a concurrent change was faster.
async fn try_change(app: &App, name: &str, change: ScheduleChange) -> ApiResult<bool> {
    let (schedule, origin) = find(app, name).await?;
    let ScheduleChange { cron, timezone, agent, message, session, enabled, catch_up: word } = change;
    let catch_up_one = catch_up(word.as_deref())?;
    let (mut expected, mut changes) = (vec![], vec![]);
    if enabled == Some(true) && !schedule.enabled {
        // What it would have done while it was off is not made up for.
        changes.push(notes::last(name, Some(millis(Timestamp::now()))));
    }
    if origin == "file" {
        let others = [&cron, &timezone, &agent, &message, &session, &word];
        if others.iter().any(|other| other.is_some()) {
            return Err(ApiError::invalid(
                "it comes from the configuration file; here it can only be switched",
            ));
        }
        changes.extend(enabled.map(|enabled| notes::switched(name, enabled)));
    } else {
        let before = Made::from(schedule);
        let made = before.clone();
        let made = Made {
            cron: cron.unwrap_or(made.cron),
            timezone: timezone.unwrap_or(made.timezone),
            agent: agent.unwrap_or(made.agent),
            message: message.unwrap_or(made.message),
            session: session.or(made.session),
            enabled: enabled.unwrap_or(made.enabled),
            catch_up_one: catch_up_one.unwrap_or(made.catch_up_one),
        };
        check(app, &made)?;
        expected.push(notes::made(name, Some(&before)));
        changes.push(notes::made(name, Some(&made)));
    }
    notes::change(&app.handle, expected, changes).await
}

/// Takes a schedule away.
#[utoipa::path(
    delete, path = "/api/schedules/{name}", tag = "schedules", params(("name" = String, Path)),
    responses((status = 204, description = "it is gone"))
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<StatusCode> {
    let (_, origin) = find(&app, &name).await?;
    if origin == "file" {
        return Err(ApiError::invalid(
            "it comes from the configuration file; take it out there, or switch it off",
        ));
    }
    let mut changes = notes::forgotten(&app.handle, &name).await?;
    changes.push(notes::made(&name, None));
    notes::change(&app.handle, vec![], changes).await?;
    app.record(&caller, AuditRecord::new("schedule", "remove_schedule", &name, json!({}))).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fires a schedule now.
#[utoipa::path(
    post, path = "/api/schedules/{name}/run", tag = "schedules", params(("name" = String, Path)),
    responses((status = 202, body = ScheduleRun))
)]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<(StatusCode, Json<ScheduleRun>)> {
    let (schedule, _) = find(&app, &name).await?;
    let run = fire_now(&app, &schedule).await?;
    app.record(
        &caller,
        AuditRecord::new("schedule", "run_schedule", &name, json!({ "task_id": run.task_id })),
    )
    .await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

/// The firings of a schedule, the newest first.
#[utoipa::path(
    get, path = "/api/schedules/{name}/runs", tag = "schedules", params(("name" = String, Path), SchedulePage),
    responses((status = 200, body = Page<ScheduleRun>))
)]
pub(crate) async fn runs(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(query): Query<SchedulePage>,
) -> ApiResult<Json<Page<ScheduleRun>>> {
    find(&app, &name).await?;
    let (items, next_cursor) = query.page_of(notes::runs(&app.handle, &name).await?)?;
    Ok(Json(Page { items, next_cursor }))
}
