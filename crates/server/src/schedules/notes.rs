//! Schedules and their firings as notes in the log, which all replicas share.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_config::{Config, Schedule};
use laneway_core::{Event, Name, Note, Scheduler, TaskId};
use laneway_engine::Handle;
use laneway_protocol::{ScheduleFiredEvent, ScheduleRun};
use serde::Serialize;
use serde_json::Value;

use crate::http::error::ApiResult;
pub(crate) use crate::notes::change;
use crate::notes::changed;

/// How many firings of each schedule are kept.
const RUNS_MAX: usize = 100;

// Prefixes of keys. A name has no line breaks.
const CREATED: &str = "schedule made\n";
const SWITCHED: &str = "schedule switched\n";
const LAST: &str = "schedule last\n";
const RUN: &str = "schedule run\n";

fn written(value: &impl Serialize) -> Option<Arc<str>> {
    serde_json::to_string(value).ok().map(Arc::from)
}

/// A schedule that was created through the API; `None` removes it.
pub(crate) fn created(name: &str, schedule: Option<&Schedule>) -> Note {
    (format!("{CREATED}{name}").into(), schedule.and_then(written))
}

/// A schedule of the configuration file is switched on or off.
pub(crate) fn switched(name: &str, is_on: bool) -> Note {
    (format!("{SWITCHED}{name}").into(), written(&is_on))
}

/// The moment up to which a schedule has fired, in milliseconds.
pub(crate) fn last(name: &str, at: Option<u64>) -> Note {
    (format!("{LAST}{name}").into(), at.as_ref().and_then(written))
}

/// The key of one firing. `own` tells apart firings that the clock did not cause.
pub(super) fn run_key(name: &str, due: u64, own: &str) -> Arc<str> {
    format!("{RUN}{name}\n{due:016}{own}").into()
}

pub(crate) fn run(key: &Arc<str>, run: &ScheduleRun) -> Note {
    (Arc::clone(key), written(run))
}

/// All schedules at one moment.
pub(super) struct Overview {
    /// By name, each with its origin: `file` or `api`.
    pub(super) schedules: Vec<(Schedule, &'static str)>,
    /// The moment up to which each has fired.
    pub(super) last: BTreeMap<String, u64>,
}

/// All schedules with one read, because on a shared log each read asks the store.
pub(super) async fn overview(handle: &Handle, config: &Config) -> ApiResult<Overview> {
    let own = |(key, text): (&Arc<str>, &Arc<str>)| (Arc::clone(key), Arc::clone(text));
    let look = move |lanes: &Scheduler| {
        [CREATED, SWITCHED, LAST].map(|prefix| lanes.notes(prefix).map(own).collect::<Vec<_>>())
    };
    let [created, switched, last] = handle.read(look).await?;
    let mut schedules = BTreeMap::new();
    for (_, text) in created {
        let schedule = serde_json::from_str::<Schedule>(&text).ok();
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
    Ok(Overview { schedules: schedules.into_values().collect(), last: last.collect() })
}

/// All schedules, by name, each with its origin.
pub(crate) async fn all(handle: &Handle, config: &Config) -> ApiResult<Vec<(Schedule, &'static str)>> {
    Ok(overview(handle, config).await?.schedules)
}

/// How many schedules were created through the API.
pub(crate) async fn created_count(handle: &Handle) -> ApiResult<usize> {
    Ok(handle.read(|lanes| lanes.notes(CREATED).count()).await?)
}

/// Changes that remove all firings of a schedule.
pub(crate) async fn without_runs(handle: &Handle, name: &str) -> ApiResult<Vec<Note>> {
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

/// Changes that remove the oldest firings to make room for one more; `None` if that one is kept already.
pub(super) async fn without_oldest_runs(
    handle: &Handle,
    name: &str,
    key: &Arc<str>,
) -> ApiResult<Option<Vec<Note>>> {
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

/// A firing that has not ended.
pub(super) struct OpenRun {
    pub(super) note: Note,
    pub(super) schedule: String,
    pub(super) run: ScheduleRun,
}

/// All firings that have not ended.
pub(super) async fn open_runs(handle: &Handle) -> ApiResult<Vec<OpenRun>> {
    let runs = handle.notes(RUN).await?;
    Ok(runs.into_iter().filter_map(|(key, text)| open_run(key, text)).collect())
}

fn open_run(key: Arc<str>, text: Arc<str>) -> Option<OpenRun> {
    let run: ScheduleRun =
        serde_json::from_str(&text).ok().filter(|run: &ScheduleRun| run.status == "running")?;
    let schedule = named_in(&key)?.to_owned();
    Some(OpenRun { note: (key, Some(text)), schedule, run })
}

/// The schedule of a firing.
fn named_in(key: &str) -> Option<&str> {
    key.strip_prefix(RUN)?.split_once('\n').map(|(name, _)| name)
}

/// Whether an event changes when schedules fire.
pub(crate) fn changes_schedules(event: &Event) -> bool {
    [CREATED, SWITCHED].into_iter().any(|prefix| changed(event, prefix).next().is_some())
}

/// The firings whose submission was accepted or refused with this event, each with its task.
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
