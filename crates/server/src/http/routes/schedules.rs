//! Schedules over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use laneway_config::{CatchUp, Schedule};
use laneway_core::{LaneName, Name};
use laneway_protocol::{At, Code, NewSchedule, Page, ScheduleChange, ScheduleRun, ScheduleView, UserRef};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::app::{App, Shared};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, Path, Query};
use crate::http::paging::{PAGE_MAX, PageQuery};
use crate::schedules::cron::{Times, millis};
use crate::schedules::{CREATED_MAX, as_they_stand, fire_now, notes, owner};
use crate::service::ask_agent::agent_named;
use crate::service::parse;

/// All schedules with messages of this length, and their firings, fit into the notes of a log.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// How often a change is repeated after a concurrent one.
const CHANGE_TRIES: usize = 10;
/// How many of the next firings are shown.
const NEXT_SHOWN: usize = 3;

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct SchedulePage {
    /// The largest number of items on the page. Default 500, at most 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    /// A browser sends its token here.
    #[param(ignore)]
    access_token: Option<String>,
}

impl SchedulePage {
    fn cut<T>(self, all: Vec<T>) -> ApiResult<(Vec<T>, Option<String>)> {
        let SchedulePage { limit, cursor, access_token } = self;
        PageQuery { limit: limit.or(Some(PAGE_MAX)), cursor, access_token }.cut(all)
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
        user: owner(schedule),
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

async fn found_view(app: &App, name: &str) -> ApiJson<ScheduleView> {
    let (schedule, origin) = find(app, name).await?;
    let mut last_run = notes::newest(&app.handle, vec![schedule.name.clone()]).await?.pop().flatten();
    as_they_stand(&app.handle, &mut last_run).await?;
    Ok(Json(view(&schedule, origin, last_run)))
}

fn catch_up(word: &str) -> ApiResult<CatchUp> {
    match word {
        "skip" => Ok(CatchUp::Skip),
        "one" => Ok(CatchUp::One),
        _ => Err(ApiError::invalid("catch_up must be skip or one")),
    }
}

async fn agent_name(app: &App, name: &str) -> ApiResult<Name> {
    let unknown = |error: ApiError| match error.problem.code {
        Code::NotFound => ApiError::invalid("agent must be the name of an agent"),
        _ => error,
    };
    Ok(agent_named(app, name).await.map_err(unknown)?.name)
}

fn check(schedule: &Schedule) -> ApiResult<()> {
    Times::read(&schedule.cron, &schedule.timezone).map_err(|error| ApiError::invalid(error.to_string()))?;
    if schedule.message.trim().is_empty() {
        return Err(ApiError::invalid("message must not be empty"));
    }
    if schedule.message.len() > MESSAGE_BYTES_MAX {
        let detail = format!("message must have at most {MESSAGE_BYTES_MAX} bytes");
        return Err(ApiError::new(Code::TooLarge, detail));
    }
    if let Some(session) = &schedule.session {
        if session.is_empty() {
            return Err(ApiError::invalid("session must not be empty"));
        }
        let lane = LaneName::session(session);
        lane.map_err(|error| ApiError::invalid(format!("session: {error}")))?;
    }
    Ok(())
}

/// The person that a caller names, if it may.
fn given_user(caller: &Caller, user: Option<UserRef>) -> ApiResult<Option<UserRef>> {
    if user.is_some() && !caller.speaks_for_others {
        return Err(ApiError::forbidden("this token may not speak for other people"));
    }
    if user.as_ref().is_some_and(|user| user.id.is_empty()) {
        return Err(ApiError::invalid("user.id must not be empty"));
    }
    Ok(user)
}

fn name_taken() -> ApiError {
    ApiError::invalid("there is a schedule of that name already").status(StatusCode::CONFLICT)
}

fn changed_meanwhile() -> ApiError {
    ApiError::invalid("another caller has changed the schedule meanwhile; read it again")
        .status(StatusCode::CONFLICT)
}

/// All schedules, by name.
#[utoipa::path(
    get, path = "/api/schedules", tag = "schedules", params(SchedulePage),
    responses((status = 200, body = Page<ScheduleView>))
)]
pub(crate) async fn list(
    State(app): Shared,
    Query(query): Query<SchedulePage>,
) -> ApiJson<Page<ScheduleView>> {
    let all = notes::all(&app.handle, &app.config()).await?;
    let (some, next_cursor) = query.cut(all)?;
    let names = some.iter().map(|(schedule, _)| schedule.name.clone()).collect();
    let mut newest = notes::newest(&app.handle, names).await?;
    as_they_stand(&app.handle, newest.iter_mut().flatten()).await?;
    let items =
        some.iter().zip(newest).map(|((schedule, origin), last_run)| view(schedule, origin, last_run));
    Ok(Json(Page { items: items.collect(), next_cursor }))
}

/// A schedule.
#[utoipa::path(
    get, path = "/api/schedules/{name}", tag = "schedules", params(("name" = String, Path)),
    responses((status = 200, body = ScheduleView))
)]
pub(crate) async fn get(State(app): Shared, Path(name): Path<String>) -> ApiJson<ScheduleView> {
    found_view(&app, &name).await
}

/// Creates a schedule.
#[utoipa::path(
    post, path = "/api/schedules", tag = "schedules", request_body = NewSchedule,
    responses((status = 201, body = ScheduleView))
)]
pub(crate) async fn create(
    State(app): Shared,
    caller: Caller,
    Body(new): Body<NewSchedule>,
) -> ApiResult<(StatusCode, Json<ScheduleView>)> {
    let own_user = || UserRef { id: caller.subject.to_string(), email: None };
    let user = given_user(&caller, new.user)?.or_else(|| caller.token.as_ref().map(|_| own_user()));
    let (user, user_email) = user.map_or((None, None), |user| (Some(user.id), user.email));
    let schedule = Schedule {
        name: parse::name("name", new.name)?,
        cron: new.cron,
        timezone: new.timezone.unwrap_or_else(|| "UTC".to_owned()),
        agent: agent_name(&app, &new.agent).await?,
        message: new.message,
        session: new.session,
        user,
        user_email,
        enabled: new.enabled.unwrap_or(true),
        catch_up: new.catch_up.as_deref().map_or(Ok(CatchUp::Skip), catch_up)?,
    };
    check(&schedule)?;
    let name = schedule.name.to_string();
    if find(&app, &name).await.is_ok() {
        return Err(name_taken());
    }
    if notes::created_count(&app.handle).await? >= CREATED_MAX {
        return Err(ApiError::invalid(format!("there can be {CREATED_MAX} schedules at most")));
    }
    let details = json!({ "cron": &schedule.cron, "agent": &schedule.agent });
    // The last firing of a removed schedule of this name may have been written after the removal.
    let mut changes = notes::without_runs(&app.handle, &name).await?;
    changes.push(notes::created(&name, Some(&schedule)));
    if !notes::change(&app.handle, vec![notes::created(&name, None)], changes).await? {
        return Err(name_taken());
    }
    app.record(&caller, ("schedule", "create_schedule"), &name, details).await?;
    Ok((StatusCode::CREATED, found_view(&app, &name).await?))
}

/// Changes a schedule. A schedule of the configuration file can only be enabled and disabled.
#[utoipa::path(
    patch, path = "/api/schedules/{name}", tag = "schedules", params(("name" = String, Path)),
    request_body = ScheduleChange, responses((status = 200, body = ScheduleView))
)]
pub(crate) async fn change(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
    Body(change): Body<ScheduleChange>,
) -> ApiJson<ScheduleView> {
    given_user(&caller, change.user.clone())?;
    let enabled = change.enabled;
    let mut is_done = false;
    for _ in 0..CHANGE_TRIES {
        is_done = try_change(&app, &name, change.clone()).await?;
        if is_done {
            break;
        }
    }
    if !is_done {
        return Err(changed_meanwhile());
    }
    app.record(&caller, ("schedule", "change_schedule"), &name, json!({ "enabled": enabled })).await?;
    found_view(&app, &name).await
}

/// Changes a schedule; `false`: a concurrent change was faster.
async fn try_change(app: &App, name: &str, change: ScheduleChange) -> ApiResult<bool> {
    let (schedule, origin) = find(app, name).await?;
    let ScheduleChange { cron, timezone, agent, message, session, user, enabled, catch_up: word } = change;
    let (mut expected, mut changes) = (vec![], vec![]);
    if enabled == Some(true) && !schedule.enabled {
        // Moments that passed while the schedule was disabled do not fire later.
        changes.push(notes::last(name, Some(millis(Timestamp::now()))));
    }
    if origin == "file" {
        let others = [&cron, &timezone, &agent, &message, &session, &word];
        if user.is_some() || others.iter().any(|other| other.is_some()) {
            return Err(ApiError::invalid(
                "the schedule is in the configuration file; the API can only enable and disable it",
            ));
        }
        changes.extend(enabled.map(|enabled| notes::switched(name, enabled)));
    } else {
        expected.push(notes::created(name, Some(&schedule)));
        let (user, user_email) = match user {
            Some(user) => (Some(user.id), user.email),
            None => (schedule.user, schedule.user_email),
        };
        let schedule = Schedule {
            name: schedule.name,
            cron: cron.unwrap_or(schedule.cron),
            timezone: timezone.unwrap_or(schedule.timezone),
            agent: agent_name(app, agent.as_deref().unwrap_or(schedule.agent.as_str())).await?,
            message: message.unwrap_or(schedule.message),
            session: session.or(schedule.session),
            user,
            user_email,
            enabled: enabled.unwrap_or(schedule.enabled),
            catch_up: word.as_deref().map_or(Ok(schedule.catch_up), catch_up)?,
        };
        check(&schedule)?;
        changes.push(notes::created(name, Some(&schedule)));
    }
    notes::change(&app.handle, expected, changes).await
}

/// Removes a schedule.
#[utoipa::path(
    delete, path = "/api/schedules/{name}", tag = "schedules", params(("name" = String, Path)),
    responses((status = 204, description = "The schedule is removed."))
)]
pub(crate) async fn remove(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<StatusCode> {
    let (_, origin) = find(&app, &name).await?;
    if origin == "file" {
        return Err(ApiError::invalid(
            "the schedule is in the configuration file; remove it there, or disable it",
        ));
    }
    let mut changes = notes::without_runs(&app.handle, &name).await?;
    changes.push(notes::created(&name, None));
    notes::change(&app.handle, vec![], changes).await?;
    app.record(&caller, ("schedule", "remove_schedule"), &name, json!({})).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fires a schedule now.
#[utoipa::path(
    post, path = "/api/schedules/{name}/run", tag = "schedules", params(("name" = String, Path)),
    responses((status = 202, body = ScheduleRun))
)]
pub(crate) async fn run(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<(StatusCode, Json<ScheduleRun>)> {
    let (schedule, _) = find(&app, &name).await?;
    let run = fire_now(&app, &schedule).await?;
    app.record(&caller, ("schedule", "run_schedule"), &name, json!({ "task_id": run.task_id })).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

/// The firings of a schedule, the newest first.
#[utoipa::path(
    get, path = "/api/schedules/{name}/runs", tag = "schedules", params(("name" = String, Path), SchedulePage),
    responses((status = 200, body = Page<ScheduleRun>))
)]
pub(crate) async fn runs(
    State(app): Shared,
    Path(name): Path<String>,
    Query(query): Query<SchedulePage>,
) -> ApiJson<Page<ScheduleRun>> {
    find(&app, &name).await?;
    let (mut items, next_cursor) = query.cut(notes::runs(&app.handle, &name).await?)?;
    as_they_stand(&app.handle, &mut items).await?;
    Ok(Json(Page { items, next_cursor }))
}
