//! Schedules: turns that the clock asks of agents.
//!
//! Each moment fires once on a shared log: the replica that first writes a note for the moment fires it. If that replica
//! dies before its task is accepted, another replica submits the task. The name of the schedule and the moment are the
//! idempotency key, so only one task exists.

pub(crate) mod cron;
pub(crate) mod notes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use laneway_config::{CatchUp, Config, Schedule};
use laneway_core::{Scheduler, TaskId};
use laneway_engine::Handle;
use laneway_protocol::{At, ChatRequest, Code, ScheduleRun, UserRef, end_word, status_word};
use tokio::sync::Notify;

use crate::app::App;
use crate::error::ServerError;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::schedules::cron::{Times, millis, moment};
use crate::schedules::notes::OpenRun;
use crate::service::ask_agent::{AgentCall, Form, agent_named, ask_agent};
use crate::service::request_options::RequestOptions;

/// How many schedules the API can create.
pub(crate) const CREATED_MAX: usize = 1000;
const ERROR_CHARS_MAX: usize = 200;
/// The longest sleep. After it the server notices a clock that was set, and firings of replicas that died.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// After this time another replica continues a firing.
const TAKEOVER_AFTER: Duration = Duration::from_secs(10);
/// After this time no other replica fires a moment that is still free.
const OTHERS_WITHIN: Duration = Duration::from_secs(5);
/// The pause before a failed write is repeated.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What this replica knows about schedules in addition to the notes in the log.
pub(crate) struct Schedules {
    /// Notified when a change may affect the next firing.
    pub(crate) changed: Arc<Notify>,
    /// Other replicas fire schedules too.
    is_shared: bool,
    /// The tasks whose end this server will write.
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

/// Checks the schedules of a configuration.
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

/// The loop that fires schedules.
struct FiringLoop {
    app: Arc<App>,
    started: Timestamp,
    /// The schedules that were disabled at the last visit.
    off: HashSet<String>,
    /// The visited schedules, each with the last moment that it missed before this server started and has not made up for.
    missed: HashMap<String, Option<Timestamp>>,
}

/// Fires schedules until the server drains.
pub(crate) async fn run(app: Arc<App>) {
    let started = Timestamp::now();
    let mut firing =
        FiringLoop { app: Arc::clone(&app), started, off: HashSet::new(), missed: HashMap::new() };
    let mut continue_at = started;
    while !app.draining.is_given() {
        let now = Timestamp::now();
        if now >= continue_at {
            if let Err(ApiError { problem, .. }) = continue_runs(&app, now).await {
                tracing::warn!(error = problem.detail, "firings of other replicas cannot be continued now");
            }
            continue_at = now + SLEEP_MAX;
        }
        let wake = firing.visit_all(now).await.unwrap_or(now + RETRY_AFTER);
        let pause = wake.min(continue_at).duration_since(Timestamp::now());
        let pause = Duration::try_from(pause).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.schedules.changed.notified() => {}
            () = app.draining.given() => {}
        }
    }
}

impl FiringLoop {
    /// Fires all schedules that are due. Returns when to look again.
    async fn visit_all(&mut self, now: Timestamp) -> ApiResult<Timestamp> {
        let mut wake = now + SLEEP_MAX;
        let overview = notes::overview(&self.app.handle, &self.app.config()).await?;
        for (schedule, _) in &overview.schedules {
            let last = overview.last.get(schedule.name.as_str()).copied();
            match self.visit(schedule, last, now).await {
                Ok(next) => wake = next.map_or(wake, |next| wake.min(next)),
                // A failed write is repeated soon. The other schedules still fire.
                Err(_) if self.app.draining.is_given() => {}
                Err(ApiError { problem, .. }) => {
                    tracing::warn!(
                        schedule = schedule.name.as_str(),
                        error = problem.detail,
                        "a schedule cannot be checked now"
                    );
                    wake = wake.min(now + RETRY_AFTER);
                }
            }
        }
        Ok(wake)
    }

    /// Fires a schedule if it is due. Returns when to look again.
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
        // Moments that passed while the schedule was disabled do not fire later.
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
            } else if fire_missed(&self.app, schedule, last, due).await? {
                *missed = None;
                last = last.max(millis(due));
            } else {
                return Ok(Some(now + RETRY_AFTER));
            }
        }
        let since = moment(last).max(started);
        let Some(due) = times.latest(since, now) else { return Ok(wake) };
        // If no replica fires a moment in time, this one records the refusal.
        let others_had_time = times.after(since).unwrap_or(due) + OTHERS_WITHIN;
        let is_known = agent_named(&self.app, schedule.agent.as_str()).await.is_ok();
        if self.app.schedules.is_shared && !is_known && now < others_had_time {
            return Ok(wake.map(|wake| wake.min(others_had_time)));
        }
        fire_due(&self.app, schedule, last, due, Trigger::Clock).await?;
        Ok(wake)
    }
}

/// Fires or skips the moments that no replica was running for; `due` is the last of them. `false`: the notes changed
/// meanwhile.
async fn fire_missed(app: &Arc<App>, schedule: &Schedule, last: u64, due: Timestamp) -> ApiResult<bool> {
    if schedule.catch_up == CatchUp::One {
        return fire_due(app, schedule, last, due, Trigger::CatchUp).await;
    }
    let name = schedule.name.as_str();
    let skipped = vec![notes::last(name, Some(last.max(millis(due))))];
    notes::change(&app.handle, vec![notes::last(name, Some(last))], skipped).await
}

fn new_run(due: Timestamp, trigger: Trigger) -> ScheduleRun {
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

/// Fires one moment, unless another replica fires it. `false`: the notes changed meanwhile.
async fn fire_due(
    app: &Arc<App>,
    schedule: &Schedule,
    last: u64,
    due: Timestamp,
    trigger: Trigger,
) -> ApiResult<bool> {
    let name = schedule.name.as_str();
    let key = notes::run_key(name, millis(due), "");
    let Some(mut changes) = notes::without_oldest_runs(&app.handle, name, &key).await? else {
        return Ok(true);
    };
    let run = new_run(due, trigger);
    let claim = notes::run(&key, &run);
    changes.extend([claim.clone(), notes::last(name, Some(last.max(millis(due))))]);
    let expected = vec![(key, None), notes::last(name, Some(last))];
    let is_ours = notes::change(&app.handle, expected, changes).await?;
    if is_ours {
        continue_run(app, schedule, OpenRun { note: claim, schedule: name.to_owned(), run }).await?;
    }
    Ok(is_ours)
}

/// Submits the task of a firing, and writes whether it was accepted.
async fn continue_run(app: &Arc<App>, schedule: &Schedule, mut open: OpenRun) -> ApiResult<()> {
    let due = open.run.due_at.parse::<Timestamp>().unwrap_or_else(|_| Timestamp::now());
    let submitted = submit_turn(app, schedule, Some(millis(due).to_string())).await;
    if let Err(refusal) = &submitted
        && (refusal.problem.code == Code::StoreUnavailable || app.draining.is_given())
    {
        // The task may have been accepted. It is submitted again under the same key, here or at another replica.
        return submitted.map(drop);
    }
    record_submission(&mut open.run, &submitted);
    let kept = notes::run(&open.note.0, &open.run);
    let is_ours = notes::change(&app.handle, vec![open.note], vec![kept.clone()]).await?;
    if let (Ok(task), true) = (submitted, is_ours) {
        await_end(app, task, OpenRun { note: kept, ..open });
    }
    Ok(())
}

fn record_submission(run: &mut ScheduleRun, submitted: &ApiResult<TaskId>) {
    match submitted {
        Ok(task) => run.task_id = Some(task.to_string()),
        Err(refusal) => {
            run.status = "failed".to_owned();
            run.error =
                Some(shorten(&format!("{}: {}", refusal.problem.code.as_str(), refusal.problem.detail)));
        }
    }
}

/// The start of an error. The task has the whole text.
fn shorten(error: &str) -> String {
    error.chars().take(ERROR_CHARS_MAX).collect()
}

/// Fires now, for a caller.
pub(crate) async fn fire_now(app: &Arc<App>, schedule: &Schedule) -> ApiResult<ScheduleRun> {
    let (name, now) = (schedule.name.as_str(), Timestamp::now());
    let mut run = new_run(now, Trigger::Manual);
    let submitted = submit_turn(app, schedule, None).await;
    record_submission(&mut run, &submitted);
    let own = format!("-{}", app.handle.new_id());
    let key = notes::run_key(name, millis(now), &own);
    let kept = notes::run(&key, &run);
    let mut changes = notes::without_oldest_runs(&app.handle, name, &key).await?.unwrap_or_default();
    changes.push(kept.clone());
    notes::change(&app.handle, vec![], changes).await?;
    await_end(app, submitted?, OpenRun { note: kept, schedule: name.to_owned(), run: run.clone() });
    as_they_stand(&app.handle, [&mut run]).await?;
    Ok(run)
}

async fn submit_turn(app: &Arc<App>, schedule: &Schedule, key: Option<String>) -> ApiResult<TaskId> {
    let name = schedule.name.as_str();
    let request = ChatRequest {
        message: schedule.message.clone(),
        session: schedule.session.clone(),
        user: owner(schedule),
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

/// The person whose schedule it is.
pub(crate) fn owner(schedule: &Schedule) -> Option<UserRef> {
    schedule.user.clone().map(|id| UserRef { id, email: schedule.user_email.clone() })
}

/// The firings as they are now: one whose task waits in its lane is `queued` instead of `running`.
pub(crate) async fn as_they_stand<'a>(
    handle: &Handle,
    runs: impl IntoIterator<Item = &'a mut ScheduleRun>,
) -> ApiResult<()> {
    let mut open: Vec<(&mut ScheduleRun, TaskId)> = Vec::new();
    for run in runs.into_iter().filter(|run| run.status == "running") {
        if let Some(task) = run.task_id.as_deref().and_then(|id| crate::http::extract::task_id(id).ok()) {
            open.push((run, task));
        }
    }
    let tasks: Vec<TaskId> = open.iter().map(|(_, task)| *task).collect();
    if tasks.is_empty() {
        return Ok(());
    }
    let look = move |lanes: &Scheduler| tasks.iter().map(|task| lanes.status(*task)).collect::<Vec<_>>();
    for ((run, _), status) in open.into_iter().zip(handle.read(look).await?) {
        if let Some(status) = status {
            run.status = status_word(status).to_owned();
        }
    }
    Ok(())
}

/// Writes how the task of a firing ends, unless another replica does.
fn await_end(app: &Arc<App>, task: TaskId, open: OpenRun) {
    if app.schedules.awaited.lock().unwrap_or_else(PoisonError::into_inner).insert(task) {
        tokio::spawn(watch_run(Arc::downgrade(app), task, open));
    }
}

async fn watch_run(app: std::sync::Weak<App>, task: TaskId, open: OpenRun) {
    let Some(handle) = app.upgrade().map(|app| app.handle.clone()) else { return };
    let ending = handle.wait_for(task).await;
    let Some(app) = app.upgrade() else { return };
    app.schedules.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&task);
    let (status, error) = match ending {
        Ok(ending) => {
            let error = match &ending.end {
                laneway_core::End::Failed { error } => Some(shorten(error)),
                _ => None,
            };
            (end_word(&ending.end), error)
        }
        // The task continues after a restart. The server looks for it then.
        Err(laneway_engine::Error::Closed) => return,
        Err(_) => ("unknown", None),
    };
    let run = ScheduleRun { status: status.to_owned(), error, ..open.run };
    let ended = notes::run(&open.note.0, &run);
    if let Err(ApiError { problem, .. }) = notes::change(&handle, vec![open.note], vec![ended]).await {
        // The next `continue_runs` writes it.
        tracing::warn!(
            schedule = open.schedule,
            error = problem.detail,
            "the end of a firing could not be written"
        );
    }
}

/// Continues the firings of replicas that have ended, and of this one before its restart.
async fn continue_runs(app: &Arc<App>, now: Timestamp) -> ApiResult<()> {
    let all = notes::all(&app.handle, &app.config()).await?;
    for open in notes::open_runs(&app.handle).await? {
        let fired = open.run.fired_at.parse::<Timestamp>().unwrap_or(now);
        match open.run.task_id.as_deref().map(crate::http::extract::task_id) {
            Some(Ok(task)) => await_end(app, task, open),
            Some(Err(_)) => {}
            None if now < fired + TAKEOVER_AFTER && app.schedules.is_shared => {}
            None => {
                if let Some((schedule, _)) =
                    all.iter().find(|(known, _)| known.name.as_str() == open.schedule)
                {
                    continue_run(app, schedule, open).await?;
                }
            }
        }
    }
    Ok(())
}
