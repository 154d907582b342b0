//! Schedules: what is asked of agents by the clock, and what came of it.
//!
//! Each moment fires once, however many replicas share the queue: the replica that first writes a note for the moment
//! fires it. If that replica dies before its task is accepted, another submits the task. The schedule's name and the
//! moment are the idempotency key, so that only one task exists.

pub(crate) mod cron;
pub(crate) mod notes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use laneway_config::{CatchUp, Config, Schedule};
use laneway_core::TaskId;
use laneway_protocol::{At, ChatRequest, Code, ScheduleRun, end_word};
use tokio::sync::Notify;

use crate::app::App;
use crate::error::ServerError;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::schedules::cron::{Times, millis, moment};
use crate::schedules::notes::Open;
use crate::service::ask_agent::{AgentCall, Form, agent_named, ask_agent};
use crate::service::request_options::RequestOptions;

/// How many schedules the API can make.
pub(crate) const MADE_MAX: usize = 1000;
const ERROR_CHARS_MAX: usize = 200;
/// How long to sleep at most: a clock that was set is noticed then, and what became of firings of servers that died.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// After this time another replica goes on with a firing that was begun.
const PATIENCE: Duration = Duration::from_secs(10);
/// After this time no other replica takes a moment that is still free.
const OTHERS_WITHIN: Duration = Duration::from_secs(5);
/// How soon to try again what the store did not take.
const AGAIN: Duration = Duration::from_secs(1);

/// What this replica knows of schedules in addition to the notes in the log.
pub(crate) struct Schedules {
    /// Something has changed that matters for when they fire.
    pub(crate) changed: Arc<Notify>,
    /// Others fire too.
    is_shared: bool,
    /// The tasks that this server waits for.
    awaited: Mutex<HashSet<TaskId>>,
}

/// Why a schedule fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    Clock,
    CatchUp,
    Manual,
}

impl Trigger {
    fn as_str(self) -> &'static str {
        match self {
            Trigger::Clock => "clock",
            Trigger::CatchUp => "catch_up",
            Trigger::Manual => "manual",
        }
    }
}

/// What is wrong with the schedules of a configuration, each with its name.
pub fn check_schedules(config: &Config) -> Result<(), ServerError> {
    for schedule in &config.schedules {
        Times::read(&schedule.cron, &schedule.timezone).map_err(|source| ServerError::Schedule {
            place: config.source(&format!("schedule \"{}\"", schedule.name), "cron").to_string(),
            schedule: schedule.name.to_string(),
            source,
        })?;
    }
    Ok(())
}

impl Schedules {
    pub(crate) fn new(is_shared: bool) -> Schedules {
        Schedules { changed: Arc::default(), is_shared, awaited: Mutex::default() }
    }
}

/// What the clock looks at again and again.
struct Rounds {
    app: Arc<App>,
    started: Timestamp,
    /// Those that were off when they were looked at last.
    off: HashSet<String>,
    /// Those that were looked at, each with the last moment that it missed before this server started, if that is still to be
    /// made up for.
    missed: HashMap<String, Option<Timestamp>>,
}

/// Fires what is due, again and again.
pub(crate) async fn run(app: Arc<App>) {
    let started = Timestamp::now();
    let mut rounds = Rounds { app: Arc::clone(&app), started, off: HashSet::new(), missed: HashMap::new() };
    let mut settle_at = started;
    while !app.draining.is_given() {
        let now = Timestamp::now();
        if now >= settle_at {
            if let Err(ApiError { problem, .. }) = settle(&app, now).await {
                tracing::warn!(error = problem.detail, "firings that were begun cannot be gone on with now");
            }
            settle_at = now + SLEEP_MAX;
        }
        let wake = rounds.visit_all(now).await.unwrap_or(now + AGAIN);
        let pause = wake.min(settle_at).duration_since(Timestamp::now());
        let pause = Duration::try_from(pause).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.schedules.changed.notified() => {}
            () = app.draining.given() => {}
        }
    }
}

impl Rounds {
    /// Fires what is due, and says when to look again.
    async fn visit_all(&mut self, now: Timestamp) -> ApiResult<Timestamp> {
        let mut wake = now + SLEEP_MAX;
        let looked = notes::look(&self.app.handle, &self.app.config()).await?;
        for (schedule, _) in &looked.schedules {
            let last = looked.last.get(schedule.name.as_str()).copied();
            match self.visit(schedule, last, now).await {
                Ok(next) => wake = next.map_or(wake, |next| wake.min(next)),
                // What cannot be written now is tried again soon. The others fire all the same.
                Err(_) if self.app.draining.is_given() => {}
                Err(ApiError { problem, .. }) => {
                    tracing::warn!(
                        schedule = schedule.name.as_str(),
                        error = problem.detail,
                        "it cannot be looked after now"
                    );
                    wake = wake.min(now + AGAIN);
                }
            }
        }
        Ok(wake)
    }

    /// Fires a schedule if it is due, and says when to look again.
    async fn visit(
        &mut self,
        schedule: &Schedule,
        known: Option<u64>,
        now: Timestamp,
    ) -> ApiResult<Option<Timestamp>> {
        let (handle, name) = (&self.app.handle, schedule.name.as_str());
        let Some(times) = Times::read(&schedule.cron, &schedule.timezone).ok().filter(|_| schedule.enabled)
        else {
            self.off.insert(name.to_owned());
            return Ok(None);
        };
        // What it would have done while it was off is not made up for.
        let Some(mut last) = known.filter(|_| !self.off.contains(name)) else {
            let from_now = vec![notes::last(name, Some(millis(now)))];
            notes::change(handle, vec![notes::last(name, known)], from_now).await?;
            self.off.remove(name);
            self.missed.insert(name.to_owned(), None);
            return Ok(times.after(now));
        };
        let started = self.started;
        let missed =
            self.missed.entry(name.to_owned()).or_insert_with(|| times.latest(moment(last), started));
        let mut wake = times.after(now);
        if let Some(due) = *missed {
            // A replica that was running at that moment may be about to fire it.
            let ready = if self.app.schedules.is_shared { due + OTHERS_WITHIN } else { due };
            if now < ready {
                wake = wake.map(|wake| wake.min(ready));
            } else if make_up(&self.app, schedule, last, due).await? {
                *missed = None;
                last = last.max(millis(due));
            } else {
                return Ok(Some(now + AGAIN));
            }
        }
        let since = moment(last).max(started);
        let Some(due) = times.latest(since, now) else { return Ok(wake) };
        // If no replica takes a moment in time, its refusal is recorded.
        let others_had_time = times.after(since).unwrap_or(due) + OTHERS_WITHIN;
        let is_known = agent_named(&self.app, schedule.agent.as_str()).is_ok();
        if self.app.schedules.is_shared && !is_known && now < others_had_time {
            return Ok(wake.map(|wake| wake.min(others_had_time)));
        }
        fire_due(&self.app, schedule, last, due, Trigger::Clock).await?;
        Ok(wake)
    }
}

/// Does as the schedule says about moments that nobody was there for, the latest of which is this. `false`: something has
/// changed meanwhile.
async fn make_up(app: &Arc<App>, schedule: &Schedule, last: u64, due: Timestamp) -> ApiResult<bool> {
    if schedule.catch_up == CatchUp::One {
        return fire_due(app, schedule, last, due, Trigger::CatchUp).await;
    }
    let name = schedule.name.as_str();
    let skipped = vec![notes::last(name, Some(last.max(millis(due))))];
    notes::change(&app.handle, vec![notes::last(name, Some(last))], skipped).await
}

fn begun(due: Timestamp, trigger: Trigger) -> ScheduleRun {
    let text = |at: Timestamp| At(laneway_core::Timestamp(millis(at))).to_string();
    ScheduleRun {
        due_at: text(due),
        fired_at: text(Timestamp::now()),
        trigger: trigger.as_str().to_owned(),
        status: "running".to_owned(),
        task_id: None,
        error: None,
    }
}

/// Fires for one moment, unless another server does or has. `false`: something else has changed meanwhile.
async fn fire_due(
    app: &Arc<App>,
    schedule: &Schedule,
    last: u64,
    due: Timestamp,
    trigger: Trigger,
) -> ApiResult<bool> {
    let name = schedule.name.as_str();
    let key = notes::run_key(name, millis(due), "");
    let Some(mut changes) = notes::surplus(&app.handle, name, &key).await? else { return Ok(true) };
    let run = begun(due, trigger);
    let claim = notes::run(&key, &run);
    changes.extend([claim.clone(), notes::last(name, Some(last.max(millis(due))))]);
    let expected = vec![(key, None), notes::last(name, Some(last))];
    let is_ours = notes::change(&app.handle, expected, changes).await?;
    if is_ours {
        go_on(app, schedule, Open { note: claim, schedule: name.to_owned(), run }).await?;
    }
    Ok(is_ours)
}

/// Asks for what a firing is to ask for, and writes what came of it.
async fn go_on(app: &Arc<App>, schedule: &Schedule, mut open: Open) -> ApiResult<()> {
    let due = open.run.due_at.parse::<Timestamp>().unwrap_or_else(|_| Timestamp::now());
    let asked = ask(app, schedule, Some(millis(due).to_string())).await;
    if let Err(refusal) = &asked
        && (refusal.problem.code == Code::StoreUnavailable || app.draining.is_given())
    {
        // Whether it was accepted is not known, or another may have more luck: it is asked again, under the same key.
        return asked.map(drop);
    }
    answered(&mut open.run, &asked);
    let kept = notes::run(&open.note.0, &open.run);
    let is_ours = notes::change(&app.handle, vec![open.note], vec![kept.clone()]).await?;
    if let (Ok(task), true) = (asked, is_ours) {
        await_end(app, task, Open { note: kept, ..open });
    }
    Ok(())
}

fn answered(run: &mut ScheduleRun, asked: &ApiResult<TaskId>) {
    match asked {
        Ok(task) => run.task_id = Some(task.to_string()),
        Err(refusal) => {
            run.status = "failed".to_owned();
            run.error =
                Some(short(&format!("{}: {}", refusal.problem.code.as_str(), refusal.problem.detail)));
        }
    }
}

/// As much of an error as is remembered of a firing; the task has all of it.
fn short(error: &str) -> String {
    error.chars().take(ERROR_CHARS_MAX).collect()
}

/// Fires now, for a caller.
pub(crate) async fn fire_now(app: &Arc<App>, schedule: &Schedule) -> ApiResult<ScheduleRun> {
    let (name, now) = (schedule.name.as_str(), Timestamp::now());
    let mut run = begun(now, Trigger::Manual);
    let asked = ask(app, schedule, None).await;
    answered(&mut run, &asked);
    let own = format!("-{}", app.handle.new_id());
    let key = notes::run_key(name, millis(now), &own);
    let kept = notes::run(&key, &run);
    let mut changes = notes::surplus(&app.handle, name, &key).await?.unwrap_or_default();
    changes.push(kept.clone());
    notes::change(&app.handle, vec![], changes).await?;
    await_end(app, asked?, Open { note: kept, schedule: name.to_owned(), run: run.clone() });
    Ok(run)
}

async fn ask(app: &Arc<App>, schedule: &Schedule, key: Option<String>) -> ApiResult<TaskId> {
    let name = schedule.name.as_str();
    let request = ChatRequest {
        message: schedule.message.clone(),
        session: schedule.session.clone(),
        ..ChatRequest::default()
    };
    let schedule_name = Some(name.to_owned());
    let options = RequestOptions { schedule: schedule_name, key, detach: true, ..RequestOptions::default() };
    let agent = schedule.agent.as_str();
    let call = AgentCall { agent, form: Form::Chat, request, options, watches: false };
    let run = ask_agent(app, &Caller::schedule(name), call).await?;
    let id = run.id();
    run.into_task().detach();
    Ok(id)
}

/// Writes how the task of a firing ends, unless another server does.
fn await_end(app: &Arc<App>, task: TaskId, open: Open) {
    if app.schedules.awaited.lock().unwrap_or_else(PoisonError::into_inner).insert(task) {
        tokio::spawn(watch_run(Arc::downgrade(app), task, open));
    }
}

async fn watch_run(app: std::sync::Weak<App>, task: TaskId, open: Open) {
    let Some(handle) = app.upgrade().map(|app| app.handle.clone()) else { return };
    let ending = handle.wait_for(task).await;
    let Some(app) = app.upgrade() else { return };
    app.schedules.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&task);
    let (status, error) = match ending {
        Ok(ending) => {
            let error = match &ending.end {
                laneway_core::End::Failed { error } => Some(short(error)),
                _ => None,
            };
            (end_word(&ending.end), error)
        }
        // It goes on after a restart, and is looked for then.
        Err(laneway_engine::Error::Closed) => return,
        Err(_) => ("unknown", None),
    };
    let run = ScheduleRun { status: status.to_owned(), error, ..open.run };
    let ended = notes::run(&open.note.0, &run);
    if let Err(ApiError { problem, .. }) = notes::change(&handle, vec![open.note], vec![ended]).await {
        // The next round of `settle` writes it.
        tracing::warn!(
            schedule = open.schedule,
            error = problem.detail,
            "the end of a firing could not be written"
        );
    }
}

/// Goes on with what servers have begun that ended meanwhile, this one among them.
async fn settle(app: &Arc<App>, now: Timestamp) -> ApiResult<()> {
    let all = notes::all(&app.handle, &app.config()).await?;
    for open in notes::open_runs(&app.handle).await? {
        let fired = open.run.fired_at.parse::<Timestamp>().unwrap_or(now);
        match open.run.task_id.as_deref().map(crate::http::extract::task_id) {
            Some(Ok(task)) => await_end(app, task, open),
            Some(Err(_)) => {}
            None if now < fired + PATIENCE && app.schedules.is_shared => {}
            None => {
                if let Some((schedule, _)) =
                    all.iter().find(|(known, _)| known.name.as_str() == open.schedule)
                {
                    go_on(app, schedule, open).await?;
                }
            }
        }
    }
    Ok(())
}
