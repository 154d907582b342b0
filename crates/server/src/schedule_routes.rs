//! Schedules over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use laneway_config::{CatchUp, Schedule};
use laneway_protocol::{At, Code, NewSchedule, Page, ScheduleChange, ScheduleRun, ScheduleView};
use serde_json::json;

use crate::app::App;
use crate::asks;
use crate::audit::Deed;
use crate::auth::Caller;
use crate::chat::agent_named;
use crate::cron::{Times, millis};
use crate::extract::{Body, Path};
use crate::problem::{Answer, Refusal};
use crate::schedules::{MADE_MAX, Made, Trigger, fire};

/// How many of the next firings are shown.
const NEXT_SHOWN: usize = 3;

fn view(app: &App, schedule: &Schedule, origin: &str) -> ScheduleView {
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
        last_run: app.schedules.runs(schedule.name.as_str()).into_iter().next(),
    }
}

fn find(app: &App, name: &str) -> Answer<(Schedule, &'static str)> {
    let all = app.schedules.all(&app.config());
    all.into_iter()
        .find(|(schedule, _)| schedule.name.as_str() == name)
        .ok_or_else(|| Refusal::not_found("schedule"))
}

fn catch_up(word: Option<&str>) -> Answer<Option<bool>> {
    match word {
        None => Ok(None),
        Some("skip") => Ok(Some(false)),
        Some("one") => Ok(Some(true)),
        Some(_) => Err(Refusal::invalid("catch_up must be skip or one")),
    }
}

fn check(app: &App, made: &Made) -> Answer<()> {
    Times::read(&made.cron, &made.timezone).map_err(Refusal::invalid)?;
    agent_named(app, &made.agent).map_err(|_| Refusal::invalid("agent must be the name of an agent"))?;
    if made.message.trim().is_empty() {
        return Err(Refusal::invalid("message must not be empty"));
    }
    if let Some(session) = &made.session {
        if session.is_empty() {
            return Err(Refusal::invalid("session must not be empty"));
        }
        let lane = laneway_core::LaneName::session(session);
        lane.map_err(|error| Refusal::invalid(format!("session: {error}")))?;
    }
    Ok(())
}

fn unkept(error: String) -> Refusal {
    tracing::error!(error, "schedules");
    Refusal::new(Code::StoreUnavailable, "the schedules cannot be written")
}

/// All schedules, by name.
#[utoipa::path(get, path = "/api/schedules", tag = "schedules", responses((status = 200, body = Page<ScheduleView>)))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Answer<Json<Page<ScheduleView>>> {
    let all = app.schedules.all(&app.config());
    let items = all.iter().map(|(schedule, origin)| view(&app, schedule, origin)).collect();
    Ok(Json(Page { items, next_cursor: None }))
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
) -> Answer<(StatusCode, Json<ScheduleView>)> {
    let name = asks::name("name", new.name)?.to_string();
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
    if find(&app, &name).is_ok() {
        return Err(Refusal::invalid("there is a schedule of that name already").status(StatusCode::CONFLICT));
    }
    let details = json!({ "cron": &made.cron, "agent": &made.agent });
    let is_kept = app.schedules.change(|state| {
        let has_room = state.made.len() < MADE_MAX;
        if has_room {
            // A firing that was under way when one of this name was taken away may have been recorded after that.
            state.forget(&name);
            state.made.insert(name.clone(), made);
        }
        has_room
    });
    if !is_kept.map_err(unkept)? {
        return Err(Refusal::invalid(format!("there can be {MADE_MAX} schedules at most")));
    }
    app.schedules.changed.notify_one();
    record(&app, &caller, "create_schedule", &name, details).await?;
    let (schedule, origin) = find(&app, &name)?;
    Ok((StatusCode::CREATED, Json(view(&app, &schedule, origin))))
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
) -> Answer<Json<ScheduleView>> {
    let (schedule, origin) = find(&app, &name)?;
    let ScheduleChange { cron, timezone, agent, message, session, enabled, catch_up: word } = change;
    let catch_up_one = catch_up(word.as_deref())?;
    if origin == "file" {
        let others = [&cron, &timezone, &agent, &message, &session, &word];
        if others.iter().any(|other| other.is_some()) {
            return Err(Refusal::invalid(
                "it comes from the configuration file; here it can only be switched",
            ));
        }
        if let Some(enabled) = enabled {
            let kept = app.schedules.change(|state| state.switched.insert(name.clone(), enabled));
            kept.map_err(unkept)?;
        }
    } else {
        let made = Made {
            cron: cron.unwrap_or(schedule.cron),
            timezone: timezone.unwrap_or(schedule.timezone),
            agent: agent.unwrap_or_else(|| schedule.agent.to_string()),
            message: message.unwrap_or(schedule.message),
            session: session.or(schedule.session),
            enabled: enabled.unwrap_or(schedule.enabled),
            catch_up_one: catch_up_one.unwrap_or(schedule.catch_up == CatchUp::One),
        };
        check(&app, &made)?;
        app.schedules.change(|state| state.made.insert(name.clone(), made)).map_err(unkept)?;
    }
    app.schedules.changed.notify_one();
    record(&app, &caller, "change_schedule", &name, json!({ "enabled": enabled })).await?;
    let (schedule, origin) = find(&app, &name)?;
    Ok(Json(view(&app, &schedule, origin)))
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
) -> Answer<StatusCode> {
    let (_, origin) = find(&app, &name)?;
    if origin == "file" {
        return Err(Refusal::invalid(
            "it comes from the configuration file; take it out there, or switch it off",
        ));
    }
    app.schedules.change(|state| state.forget(&name)).map_err(unkept)?;
    app.schedules.changed.notify_one();
    record(&app, &caller, "remove_schedule", &name, json!({})).await?;
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
) -> Answer<(StatusCode, Json<ScheduleRun>)> {
    let (schedule, _) = find(&app, &name)?;
    let run = fire(&app, &schedule, Timestamp::now(), Trigger::Manual).await?;
    record(&app, &caller, "run_schedule", &name, json!({ "task_id": run.task_id })).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

/// The firings of a schedule, the newest first.
#[utoipa::path(
    get, path = "/api/schedules/{name}/runs", tag = "schedules", params(("name" = String, Path)),
    responses((status = 200, body = Page<ScheduleRun>))
)]
pub(crate) async fn runs(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Answer<Json<Page<ScheduleRun>>> {
    find(&app, &name)?;
    Ok(Json(Page { items: app.schedules.runs(&name), next_cursor: None }))
}

async fn record(
    app: &App,
    caller: &Caller,
    action: &str,
    name: &str,
    details: serde_json::Value,
) -> Answer<()> {
    let deed = Deed {
        actor: &caller.subject,
        event_type: "schedule",
        action,
        severity: "info",
        target: name.to_owned(),
        details,
    };
    app.audit.record(app.now(), deed).await
}
