//! Schedules: what is asked of agents by the clock, and what came of it.
//!
//! One firing for each moment: the task that a firing asks for has the schedule's name and the moment as its key, so
//! that a second firing of the same moment, by a restart or another replica, finds the first.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use laneway_config::{CatchUp, Config, Schedule};
use laneway_core::{Name, TaskId};
use laneway_protocol::{At, ChatRequest, EventName, ScheduleRun, end_word};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

use crate::app::App;
use crate::asks::{self, Form, Manner};
use crate::auth::Caller;
use crate::cron::{Times, millis, moment};
use crate::files;
use crate::happening::Happening;
use crate::problem::Answer;

/// How many firings of each schedule are remembered.
const RUNS_MAX: usize = 100;
/// How many schedules there can be beside those of the file.
pub(crate) const MADE_MAX: usize = 1000;
/// How long to sleep at most: a clock that was set is noticed then.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// All schedules.
pub(crate) struct Schedules {
    path: Option<PathBuf>,
    state: Mutex<State>,
    pub(crate) changed: Notify,
}

/// What is kept.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct State {
    version: u32,
    /// Made over the API.
    pub(crate) made: BTreeMap<String, Made>,
    /// Schedules of the file that were switched over the API.
    #[serde(default)]
    pub(crate) switched: BTreeMap<String, bool>,
    /// Up to which moment each has fired, in milliseconds.
    #[serde(default)]
    last: BTreeMap<String, u64>,
    #[serde(default)]
    runs: BTreeMap<String, VecDeque<ScheduleRun>>,
}

/// A schedule that was made over the API.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) cron: String,
    pub(crate) timezone: String,
    pub(crate) agent: String,
    pub(crate) message: String,
    pub(crate) session: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) catch_up_one: bool,
}

impl State {
    /// Forgets a schedule that was made, and all that is known of it.
    pub(crate) fn forget(&mut self, name: &str) {
        self.made.remove(name);
        self.last.remove(name);
        self.runs.remove(name);
    }
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
pub fn check_schedules(config: &Config) -> Result<(), String> {
    for schedule in &config.schedules {
        let source = config.source(&format!("schedule \"{}\"", schedule.name), "cron");
        Times::read(&schedule.cron, &schedule.timezone)
            .map_err(|error| format!("{source}: schedule \"{}\": {error}", schedule.name))?;
    }
    Ok(())
}

impl Schedules {
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Schedules, String> {
        let mut state = State { version: 1, ..State::default() };
        if let Some(path) = &path {
            let cannot = |error: String| format!("cannot read {}: {error}", path.display());
            if let Some(text) = files::read(path).map_err(|error| cannot(error.to_string()))? {
                state = serde_json::from_str(&text).map_err(|error| cannot(error.to_string()))?;
            }
        }
        Ok(Schedules { path, state: Mutex::new(state), changed: Notify::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is kept; it is on the disk when this returns.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T, String> {
        let mut state = self.lock();
        let mut next = state.clone();
        let answer = change(&mut next);
        if let Some(path) = &self.path {
            let text = serde_json::to_vec(&next).map_err(|error| error.to_string())?;
            files::replace(path, &text).map_err(|error| format!("cannot write the schedules: {error}"))?;
        }
        *state = next;
        Ok(answer)
    }

    /// Those of the file and those that were made, by name.
    pub(crate) fn all(&self, config: &Config) -> Vec<(Schedule, &'static str)> {
        let state = self.lock();
        let mut all: Vec<(Schedule, &'static str)> = Vec::new();
        for schedule in &config.schedules {
            let mut schedule = schedule.clone();
            if let Some(enabled) = state.switched.get(schedule.name.as_str()) {
                schedule.enabled = *enabled;
            }
            all.push((schedule, "file"));
        }
        let is_new = |name: &str| !config.schedules.iter().any(|schedule| schedule.name.as_str() == name);
        for (name, made) in state.made.iter().filter(|(name, _)| is_new(name)) {
            let (Ok(name), Ok(agent)) = (Name::new(name.as_str()), Name::new(made.agent.as_str())) else {
                continue;
            };
            let schedule = Schedule {
                name,
                cron: made.cron.clone(),
                timezone: made.timezone.clone(),
                agent,
                message: made.message.clone(),
                session: made.session.clone(),
                enabled: made.enabled,
                catch_up: if made.catch_up_one { CatchUp::One } else { CatchUp::Skip },
            };
            all.push((schedule, "api"));
        }
        all.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        all
    }

    /// The firings of a schedule, the newest first.
    pub(crate) fn runs(&self, name: &str) -> Vec<ScheduleRun> {
        self.lock().runs.get(name).map(|runs| runs.iter().rev().cloned().collect()).unwrap_or_default()
    }

    fn record(&self, name: &str, due: Option<Timestamp>, run: ScheduleRun) {
        let kept = self.change(|state| {
            if let Some(due) = due {
                state.last.insert(name.to_owned(), millis(due));
            }
            let runs = state.runs.entry(name.to_owned()).or_default();
            if runs.len() >= RUNS_MAX {
                runs.pop_front();
            }
            runs.push_back(run);
        });
        if let Err(error) = kept {
            tracing::error!(error, "a firing could not be recorded");
        }
    }

    fn ended(&self, name: &str, task: &str, status: &str, error: Option<String>) {
        let kept = self.change(|state| {
            let runs = state.runs.get_mut(name).into_iter().flatten();
            for run in runs.filter(|run| run.task_id.as_deref() == Some(task)) {
                (run.status, run.error) = (status.to_owned(), error.clone());
            }
        });
        if let Err(error) = kept {
            tracing::error!(error, "the end of a firing could not be recorded");
        }
    }
}

/// Fires what is due, again and again.
pub(crate) async fn run(app: Arc<App>) {
    wait_for_old_runs(&app);
    let mut is_first = true;
    while !app.draining.is_given() {
        let now = Timestamp::now();
        let mut wake = now + SLEEP_MAX;
        for (schedule, _) in app.schedules.all(&app.config()) {
            let Some(next) = visit(&app, &schedule, now, is_first).await else { continue };
            wake = wake.min(next);
        }
        is_first = false;
        let pause = wake.duration_since(Timestamp::now());
        let pause = Duration::try_from(pause).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.schedules.changed.notified() => {}
            () = app.draining.given() => {}
        }
    }
}

/// Fires a schedule if it is due, and says when it will be next.
async fn visit(app: &Arc<App>, schedule: &Schedule, now: Timestamp, is_start: bool) -> Option<Timestamp> {
    let name = schedule.name.as_str();
    let times = Times::read(&schedule.cron, &schedule.timezone).ok().filter(|_| schedule.enabled);
    let Some(times) = times else {
        // What it would have done while it was off is not made up for.
        drop(app.schedules.change(|state| state.last.remove(name)));
        return None;
    };
    let last = app.schedules.lock().last.get(name).copied();
    let Some(last) = last else {
        drop(app.schedules.change(|state| state.last.insert(name.to_owned(), millis(now))));
        return times.after(now);
    };
    let Some(due) = times.latest(moment(last), now) else { return times.after(now) };
    let trigger = if is_start { Trigger::CatchUp } else { Trigger::Clock };
    if is_start && schedule.catch_up == CatchUp::Skip {
        drop(app.schedules.change(|state| state.last.insert(name.to_owned(), millis(due))));
    } else {
        // A refusal is recorded as such, and the next firing comes.
        drop(fire(app, schedule, due, trigger).await);
    }
    times.after(now)
}

/// Asks what a schedule asks, for one moment.
pub(crate) async fn fire(
    app: &Arc<App>,
    schedule: &Schedule,
    due: Timestamp,
    trigger: Trigger,
) -> Answer<ScheduleRun> {
    let name = schedule.name.to_string();
    let asked = ask(app, schedule, due, trigger).await;
    let text = |at: Timestamp| At(laneway_core::Timestamp(millis(at))).to_string();
    let mut run = ScheduleRun {
        due_at: text(due),
        fired_at: text(Timestamp::now()),
        trigger: trigger.as_str().to_owned(),
        status: "running".to_owned(),
        task_id: None,
        error: None,
    };
    match &asked {
        Ok(task) => run.task_id = Some(task.to_string()),
        Err(refusal) => {
            run.status = "failed".to_owned();
            run.error = Some(format!("{}: {}", refusal.0.code.as_str(), refusal.0.detail));
        }
    }
    app.schedules.record(&name, (trigger != Trigger::Manual).then_some(due), run.clone());
    let data = json!({ "schedule": name, "due_at": run.due_at, "status": run.status, "error": run.error });
    app.bus.publish(Happening::made(EventName::ScheduleFired, asked.as_ref().ok().copied(), data));
    let task = asked?;
    tokio::spawn(watch_run(Arc::downgrade(app), name, task));
    Ok(run)
}

async fn ask(app: &Arc<App>, schedule: &Schedule, due: Timestamp, trigger: Trigger) -> Answer<TaskId> {
    let agent = crate::chat::agent_named(app, schedule.agent.as_str())?;
    let request = ChatRequest {
        message: schedule.message.clone(),
        session: schedule.session.clone(),
        priority: None,
        wait_timeout_ms: None,
        timeout_ms: None,
        deadline_ms: None,
        model: None,
        metadata: None,
        user: None,
    };
    let key = (trigger != Trigger::Manual).then(|| millis(due).to_string());
    let manner = Manner { schedule: Some(schedule.name.to_string()), key, ..Manner::default() };
    let caller = Caller::schedule(schedule.name.as_str());
    let asked = asks::turn(app, &caller, &agent, Form::Chat, request, &manner)?;
    let task = asks::submit(app, asked).await?;
    let id = task.id();
    task.detach();
    Ok(id)
}

async fn watch_run(app: std::sync::Weak<App>, name: String, task: TaskId) {
    let Some(handle) = app.upgrade().map(|app| app.handle.clone()) else { return };
    let ending = handle.wait_for(task).await;
    let Some(app) = app.upgrade() else { return };
    let (status, error) = match ending {
        Ok(ending) => {
            let error = match &ending.end {
                laneway_core::End::Failed { error } => Some(error.to_string()),
                _ => None,
            };
            (end_word(&ending.end), error)
        }
        // It goes on after a restart, and is looked for then.
        Err(laneway_engine::Error::Closed) => return,
        Err(_) => ("unknown", None),
    };
    app.schedules.ended(&name, &task.to_string(), status, error);
}

/// Goes on waiting for what an earlier process has started.
fn wait_for_old_runs(app: &Arc<App>) {
    let state = app.schedules.lock();
    for (name, runs) in &state.runs {
        for run in runs.iter().filter(|run| run.status == "running") {
            let task = run.task_id.as_deref().and_then(|id| crate::extract::task_id(id).ok());
            if let Some(task) = task {
                tokio::spawn(watch_run(Arc::downgrade(app), name.clone(), task));
            }
        }
    }
}
