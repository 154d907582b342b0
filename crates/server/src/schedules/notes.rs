//! What is kept of schedules: notes in the log of the queue, so that all servers that share it know the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_config::{CatchUp, Config, Schedule};
use laneway_core::{Event, Name, Note, NoteChange, Rejection, Scheduler, TaskId};
use laneway_engine::{Error, Handle};
use laneway_protocol::{ScheduleFiredEvent, ScheduleRun};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::error::ApiResult;

/// How many firings of each schedule are remembered.
const RUNS_MAX: usize = 100;

// What keys begin with. A name has no line breaks.
const MADE: &str = "schedule made\n";
const SWITCHED: &str = "schedule switched\n";
const LAST: &str = "schedule last\n";
const RUN: &str = "schedule run\n";

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

impl Made {
    fn named(self, name: &str) -> Option<Schedule> {
        Some(Schedule {
            name: Name::new(name).ok()?,
            cron: self.cron,
            timezone: self.timezone,
            agent: Name::new(self.agent).ok()?,
            message: self.message,
            session: self.session,
            enabled: self.enabled,
            catch_up: if self.catch_up_one { CatchUp::One } else { CatchUp::Skip },
        })
    }
}

impl From<Schedule> for Made {
    fn from(schedule: Schedule) -> Made {
        Made {
            cron: schedule.cron,
            timezone: schedule.timezone,
            agent: schedule.agent.to_string(),
            message: schedule.message,
            session: schedule.session,
            enabled: schedule.enabled,
            catch_up_one: schedule.catch_up == CatchUp::One,
        }
    }
}

fn written(value: &impl Serialize) -> Option<Arc<str>> {
    serde_json::to_string(value).ok().map(Arc::from)
}

/// What a schedule is, as it was made.
pub(crate) fn made(name: &str, made: Option<&Made>) -> Note {
    (format!("{MADE}{name}").into(), made.and_then(written))
}

/// Whether a schedule of the file was switched.
pub(crate) fn switched(name: &str, is_on: bool) -> Note {
    (format!("{SWITCHED}{name}").into(), written(&is_on))
}

/// Up to which moment a schedule has fired, in milliseconds.
pub(crate) fn last(name: &str, at: Option<u64>) -> Note {
    (format!("{LAST}{name}").into(), at.as_ref().and_then(written))
}

/// One firing. Those by the clock are of one moment each; others carry something of their own.
pub(crate) fn run_key(name: &str, due: u64, own: &str) -> Arc<str> {
    format!("{RUN}{name}\n{due:016}{own}").into()
}

pub(crate) fn run(key: &Arc<str>, run: &ScheduleRun) -> Note {
    (Arc::clone(key), written(run))
}

/// Changes notes, if they are as expected: says whether they were.
pub(crate) async fn change(handle: &Handle, expected: Vec<Note>, changes: Vec<Note>) -> ApiResult<bool> {
    match handle.note(NoteChange { expected, changes }).await {
        Ok(()) => Ok(true),
        Err(Error::Rejected(Rejection::NoteChanged { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What there is to know of all schedules.
pub(crate) struct Looked {
    /// Those of the file and those that were made, by name, each with where it comes from.
    pub(crate) schedules: Vec<(Schedule, &'static str)>,
    /// Up to which moment each has fired.
    pub(crate) last: BTreeMap<String, u64>,
}

/// Looks at all schedules, at once: where others share the queue, each look is a question to the store.
pub(crate) async fn look(handle: &Handle, config: &Config) -> ApiResult<Looked> {
    let own = |(key, text): (&Arc<str>, &Arc<str>)| (Arc::clone(key), Arc::clone(text));
    let look = move |lanes: &Scheduler| {
        [MADE, SWITCHED, LAST].map(|prefix| lanes.notes(prefix).map(own).collect::<Vec<_>>())
    };
    let [made, switched, last] = handle.read(look).await?;
    let mut schedules = BTreeMap::new();
    for (key, text) in made {
        let made = serde_json::from_str::<Made>(&text).ok();
        let schedule = key.strip_prefix(MADE).and_then(|name| made?.named(name));
        schedules.extend(schedule.map(|schedule| (schedule.name.clone(), (schedule, "api"))));
    }
    for schedule in &config.schedules {
        let mut schedule = schedule.clone();
        let is_it = |key: &str| key.strip_prefix(SWITCHED) == Some(schedule.name.as_str());
        let switch = switched.iter().find(|(key, _)| is_it(key));
        schedule.enabled = switch.map_or(schedule.enabled, |(_, is_on)| &**is_on == "true");
        schedules.insert(schedule.name.clone(), (schedule, "file"));
    }
    let last =
        last.iter().filter_map(|(key, at)| Some((key.strip_prefix(LAST)?.to_owned(), at.parse().ok()?)));
    Ok(Looked { schedules: schedules.into_values().collect(), last: last.collect() })
}

/// All schedules, by name, each with where it comes from.
pub(crate) async fn all(handle: &Handle, config: &Config) -> ApiResult<Vec<(Schedule, &'static str)>> {
    Ok(look(handle, config).await?.schedules)
}

/// How many were made.
pub(crate) async fn made_count(handle: &Handle) -> ApiResult<usize> {
    Ok(handle.read(|lanes| lanes.notes(MADE).count()).await?)
}

/// All that is kept of the firings of a schedule, and up to when it has fired: as changes that take it away.
pub(crate) async fn forgotten(handle: &Handle, name: &str) -> ApiResult<Vec<Note>> {
    let runs = handle.notes(format!("{RUN}{name}\n")).await?;
    let gone = runs.into_iter().map(|(key, _)| (key, None));
    Ok(gone.chain([last(name, None)]).collect())
}

/// The firings of a schedule, the newest first.
pub(crate) async fn runs(handle: &Handle, name: &str) -> ApiResult<Vec<ScheduleRun>> {
    let runs = handle.notes(format!("{RUN}{name}\n")).await?;
    Ok(runs.into_iter().rev().filter_map(|(_, text)| serde_json::from_str(&text).ok()).collect())
}

/// The newest firing of each of these schedules.
pub(crate) async fn newest(handle: &Handle, names: Vec<Name>) -> ApiResult<Vec<Option<ScheduleRun>>> {
    let newest = |lanes: &Scheduler, name: &Name| {
        lanes.notes(&format!("{RUN}{name}\n")).last().map(|(_, text)| Arc::clone(text))
    };
    let texts: Vec<Option<Arc<str>>> =
        handle.read(move |lanes| names.iter().map(|name| newest(lanes, name)).collect()).await?;
    Ok(texts.into_iter().map(|text| serde_json::from_str(&text?).ok()).collect())
}

/// The firings that are too many when one more is kept, as changes that take them away; `None`: that one is kept already.
pub(crate) async fn surplus(handle: &Handle, name: &str, key: &Arc<str>) -> ApiResult<Option<Vec<Note>>> {
    let (prefix, key) = (format!("{RUN}{name}\n"), Arc::clone(key));
    let oldest = move |lanes: &Scheduler| {
        if lanes.note(&key).is_some() {
            return None;
        }
        let count = lanes.notes(&prefix).count();
        let oldest = lanes.notes(&prefix).take((count + 1).saturating_sub(RUNS_MAX));
        Some(oldest.map(|(key, _)| (Arc::clone(key), None)).collect())
    };
    Ok(handle.read(oldest).await?)
}

/// A firing that is not over, as it is kept.
pub(crate) struct Open {
    pub(crate) note: Note,
    pub(crate) schedule: String,
    pub(crate) run: ScheduleRun,
}

/// All firings that are not over.
pub(crate) async fn open_runs(handle: &Handle) -> ApiResult<Vec<Open>> {
    let runs = handle.notes(RUN).await?;
    Ok(runs.into_iter().filter_map(|(key, text)| open_run(key, text)).collect())
}

fn open_run(key: Arc<str>, text: Arc<str>) -> Option<Open> {
    let run: ScheduleRun =
        serde_json::from_str(&text).ok().filter(|run: &ScheduleRun| run.status == "running")?;
    let schedule = named_in(&key)?.to_owned();
    Some(Open { note: (key, Some(text)), schedule, run })
}

/// Which schedule a firing is of.
fn named_in(key: &str) -> Option<&str> {
    key.strip_prefix(RUN)?.split_once('\n').map(|(name, _)| name)
}

/// Whether an event changes when schedules fire.
pub(crate) fn changes_schedules(event: &Event) -> bool {
    let Event::Noted { changes } = event else { return false };
    changes.iter().any(|(key, _)| key.starts_with(MADE) || key.starts_with(SWITCHED))
}

/// The firings that an event records: their submission was accepted or refused. Each with its task.
pub(crate) fn fired(event: &Event) -> impl Iterator<Item = (Option<TaskId>, Value)> {
    let changes = match event {
        Event::Noted { changes } => &changes[..],
        _ => &[],
    };
    changes.iter().filter_map(|(key, text)| {
        let schedule = named_in(key)?.to_owned();
        let run: ScheduleRun = serde_json::from_str(text.as_ref()?).ok()?;
        let task = run.task_id.as_deref().and_then(|id| crate::http::extract::task_id(id).ok());
        let is_new = (run.status == "running") == task.is_some();
        let ScheduleRun { due_at, status, error, .. } = run;
        let fired = ScheduleFiredEvent { schedule, due_at, status, error, ..ScheduleFiredEvent::default() };
        is_new.then(|| (task, serde_json::to_value(fired).unwrap_or_default()))
    })
}
