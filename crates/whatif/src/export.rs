//! From a store to a trace. Nothing in the store is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use laneway_core::{LaneName, Millis, Scheduler, TaskId, Timestamp};
use laneway_protocol::At;
use laneway_store::{ErrorKind, HistoryQuery, Log, StoreError};

use crate::anonymous::anonymous;
use crate::past;
use crate::recorder::{Known, Recorder, Untold};
use crate::trace::{Arrival, Header, ParentOf, Sources, TRACE_FORMAT, Trace};

/// So many finished tasks are asked for at a time.
const PAGE: u32 = 1000;
/// So often reading starts again because others trimmed the log meanwhile.
const TRIES_MAX: u32 = 5;

/// From when on work is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStart {
    /// From this moment on.
    Moment(Timestamp),
    /// So long before the last thing that is known.
    Last(Millis),
}

/// Why a store gave no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// It cannot be read.
    Store(StoreError),
    /// It holds no task, or none that is meant; holds its name.
    Nothing(String),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::Store(error) => error.fmt(f),
            ExportError::Nothing(store) => {
                write!(f, "store {store} holds no task of that time, so there is nothing to export")
            }
        }
    }
}

impl std::error::Error for ExportError {}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> ExportError {
        ExportError::Store(error)
    }
}

/// Reads the arrivals that a store knows of.
///
/// The log has all that was asked, but only since it was last trimmed. What was accepted before comes from the history of
/// finished work and from the state, which know less of it; the header says what is missing.
pub async fn export(log: &Log, since: Option<TraceStart>, is_anonymous: bool) -> Result<Trace, ExportError> {
    let mut tries = 0;
    let found = loop {
        match gather(log).await {
            // Others trimmed the log while we read it.
            Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES_MAX => tries += 1,
            other => break other?,
        }
    };
    let blocks = found.scheduler.blocks().map(|(lanes, _)| lanes.as_str());
    let known: BTreeSet<LaneName> = blocks.filter_map(|lanes| LaneName::new(lanes).ok()).collect();
    let name = log.store().name().to_owned();
    let mut trace = found.into_trace(&name, since).ok_or(ExportError::Nothing(name))?;
    if is_anonymous {
        anonymous(&mut trace, &known);
    }
    Ok(trace)
}

/// All that a store knows.
struct Found {
    log: Vec<Known>,
    history: Vec<Known>,
    live: Vec<Known>,
    untold: Untold,
    /// When the log begins, if something before it was trimmed.
    trimmed: Option<u64>,
    to: u64,
    scheduler: Scheduler,
}

async fn gather(log: &Log) -> Result<Found, StoreError> {
    let mut head = log.begin().await?;
    let is_trimmed = head != laneway_store::Head::EMPTY;
    let mut recorder = Recorder::default();
    loop {
        let batches = log.read(head).await?;
        let Some((last, _)) = batches.last() else { break };
        head = *last;
        batches.into_iter().for_each(|(_, batch)| recorder.hear(batch));
    }
    let (_, scheduler) = log.restore(0).await?;
    let begins = recorder.from.unwrap_or(u64::MAX);
    let (untold, mut to) = (recorder.untold, recorder.to);
    let tasks = recorder.into_tasks();
    let known: BTreeSet<TaskId> = tasks.iter().map(|known| known.task).collect();
    let mut history = BTreeMap::new();
    let mut before = None;
    loop {
        let page = log.history(HistoryQuery { before, labels: Vec::new(), max: PAGE }).await?;
        let (length, last) = (page.len(), page.last().map(|(place, _)| *place));
        for (_, finished) in page.into_iter().filter(|(_, finished)| !known.contains(&finished.task)) {
            // What was accepted after our look at the log is of another time.
            if finished.submitted.0 <= begins {
                to = to.max(finished.ended.0);
                history.insert(finished.task, past::finished(finished));
            }
        }
        if length < PAGE as usize {
            break;
        }
        before = last;
    }
    let is_unknown = |task: &TaskId| !known.contains(task) && !history.contains_key(task);
    let views = scheduler.tasks().filter(|task| task.submitted.0 <= begins && is_unknown(&task.id));
    let live = views.map(|task| past::live(task, to)).collect();
    let trimmed = is_trimmed.then_some(begins);
    Ok(Found { log: tasks, history: history.into_values().collect(), live, untold, trimmed, to, scheduler })
}

impl Found {
    fn into_trace(self, store: &str, since: Option<TraceStart>) -> Option<Trace> {
        let since = since.map(|since| match since {
            TraceStart::Moment(at) => at.0,
            TraceStart::Last(length) => self.to.saturating_sub(length.0),
        });
        let is_meant = |known: &Known| since.is_none_or(|since| known.arrival.at_ms >= since);
        let count = |known: &[Known]| known.iter().filter(|known| is_meant(known)).count() as u64;
        let (history, live) = (count(&self.history), count(&self.live));
        let sources = Sources { log: count(&self.log), history, live };
        let all = self.log.into_iter().chain(self.history).chain(self.live);
        let (mut meant, left): (Vec<Known>, Vec<Known>) = all.partition(is_meant);
        meant.sort_by_key(|known| (known.arrival.at_ms, known.task));
        let cut = since.map_or(0, |since| {
            let still = |known: &&Known| known.arrival.ended().is_none_or(|ended| ended >= since);
            left.iter().filter(still).count()
        });
        let missing = missing(sources, self.untold, self.trimmed, cut);
        let arrivals = numbered(meant);
        let header = Header {
            laneway_trace: TRACE_FORMAT,
            store: Some(store.to_owned()),
            from: At(Timestamp(arrivals.first()?.at_ms)),
            to: At(Timestamp(self.to)),
            arrivals: arrivals.len() as u64,
            sources,
            anonymous: false,
            limits: limits(&self.scheduler, &arrivals),
            missing,
        };
        Some(Trace { header, arrivals })
    }
}

/// Gives each task its number and those it speaks of theirs.
fn numbered(known: Vec<Known>) -> Vec<Arrival> {
    let numbers: BTreeMap<TaskId, (u64, Option<u64>)> =
        known.iter().zip(1..).map(|(known, number)| (known.task, (number, known.arrival.ended()))).collect();
    let number = |(known, id): (Known, u64)| {
        let parent = known.parent.and_then(|parent| {
            let (id, parent_ended) = *numbers.get(&parent.task)?;
            // The end of a parent ends its children, but for those that it did not wait for.
            let outlived =
                known.arrival.ended().zip(parent_ended).is_some_and(|(ended, parent)| ended > parent);
            Some(ParentOf { id, detached: parent.detached.unwrap_or(outlived) })
        });
        let after = known.after.and_then(|after| numbers.get(&after)).map(|(id, _)| *id);
        let above = |other: &u64| *other < id;
        let parent = parent.filter(|parent| above(&parent.id));
        Arrival { id, parent, after: after.filter(above), ..known.arrival }
    };
    known.into_iter().zip(1..).map(number).collect()
}

/// How many slots the lanes have, where they are limited; a session has one of its own.
fn limits(scheduler: &Scheduler, arrivals: &[Arrival]) -> BTreeMap<LaneName, u32> {
    let named = arrivals.iter().flat_map(|arrival| arrival.lanes.iter().cloned());
    let lanes: BTreeSet<LaneName> = named.chain([LaneName::global(), LaneName::main()]).collect();
    let shared = lanes.into_iter().filter(|lane| !lane.as_str().starts_with("session:"));
    shared.filter_map(|lane| Some((lane.clone(), scheduler.settings_for(&lane).max_concurrency?))).collect()
}

/// What the trace does not hold, in sentences.
fn missing(sources: Sources, untold: Untold, trimmed: Option<u64>, cut: usize) -> Vec<String> {
    let mut missing = vec!["what was refused, because a store keeps only what it accepted".to_owned()];
    if let Some(at) = trimmed.filter(|at| *at != u64::MAX) {
        let at = At(Timestamp(at));
        missing.push(format!("what arrived before {at}, when the log begins, and has left the history too"));
    }
    if sources.history + sources.live > 0 {
        missing.push(format!(
            "fair keys, timeouts, deadlines, delays, retry policies and borrowed slots of {} tasks from before the log begins",
            sources.history + sources.live
        ));
    }
    let counted = [
        (untold.gates, "pauses, resumes and drains of lanes"),
        (untold.settings, "changes of settings"),
        (untold.priorities, "changes of priorities"),
    ];
    for (count, what) in counted.into_iter().filter(|(count, _)| *count > 0) {
        missing.push(format!("{count} {what}"));
    }
    if untold.turns > 0 {
        let turns = untold.turns;
        missing.push(format!("the messages of {turns} turns, which arrive as the turns that they became"));
    }
    if cut > 0 {
        missing.push(format!("{cut} tasks that arrived before and were not over"));
    }
    missing
}
