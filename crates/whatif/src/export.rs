//! From a store to a trace. Nothing in the store is changed.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::{LaneName, Millis, Scheduler, TaskId, Timestamp};
use laneway_protocol::At;
use laneway_store::{ErrorKind, HistoryQuery, Log, StoreError};
use thiserror::Error;

use crate::anonymous::anonymous;
use crate::earlier_tasks;
use crate::recorder::{Known, NotReplayed, Recorder};
use crate::trace::{Arrival, Header, ParentOf, Sources, TRACE_FORMAT, Trace};

/// How many finished tasks one page holds.
const PAGE: u32 = 1000;
/// How often reading starts again after another process has trimmed the log.
const TRIES_MAX: u32 = 5;

/// Where an export starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStart {
    /// From this moment on.
    Moment(Timestamp),
    /// From this long before the last event.
    Last(Millis),
}

/// Why a store gave no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store with this name holds no task of that time.
    #[error("store {0} holds no task of that time, so there is nothing to export")]
    Nothing(String),
}

/// Reads the arrivals that a store knows of.
///
/// The log has every request, but only since it was last trimmed. Earlier tasks come from the history and from the state,
/// which know less of them; the header says what is missing.
pub async fn export(log: &Log, since: Option<TraceStart>, is_anonymous: bool) -> Result<Trace, ExportError> {
    let mut tries = 0;
    let found = loop {
        match gather(log).await {
            // Another process trimmed the log meanwhile.
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

/// The tasks in a store.
struct Contents {
    log: Vec<Known>,
    history: Vec<Known>,
    live: Vec<Known>,
    not_replayed: NotReplayed,
    /// When the log begins, if something before it was trimmed.
    trimmed: Option<u64>,
    to: u64,
    scheduler: Scheduler,
}

async fn gather(log: &Log) -> Result<Contents, StoreError> {
    let mut head = log.begin().await?;
    let is_trimmed = head != laneway_store::Head::EMPTY;
    let mut recorder = Recorder::default();
    loop {
        let batches = log.read(head).await?;
        let Some((last, _)) = batches.last() else { break };
        head = *last;
        batches.into_iter().for_each(|(_, batch)| recorder.record(batch));
    }
    let (_, scheduler) = log.restore(0).await?;
    let begins = recorder.from.unwrap_or(u64::MAX);
    let (not_replayed, mut to) = (recorder.not_replayed, recorder.to);
    let tasks = recorder.into_tasks();
    let known: BTreeSet<TaskId> = tasks.iter().map(|known| known.task).collect();
    let mut history = BTreeMap::new();
    let mut before = None;
    loop {
        let page = log.history(HistoryQuery { before, labels: Vec::new(), max: PAGE }).await?;
        let (length, last) = (page.len(), page.last().map(|(place, _)| *place));
        for (_, finished) in page.into_iter().filter(|(_, finished)| !known.contains(&finished.task)) {
            // Tasks that were accepted after the log was read are left out.
            if finished.submitted.0 <= begins {
                to = to.max(finished.ended.0);
                history.insert(finished.task, earlier_tasks::finished(finished));
            }
        }
        if length < PAGE as usize {
            break;
        }
        before = last;
    }
    let is_unknown = |task: &TaskId| !known.contains(task) && !history.contains_key(task);
    let views = scheduler.tasks().filter(|task| task.submitted.0 <= begins && is_unknown(&task.id));
    let live = views.map(|task| earlier_tasks::live(task, to)).collect();
    let trimmed = is_trimmed.then_some(begins);
    Ok(Contents {
        log: tasks,
        history: history.into_values().collect(),
        live,
        not_replayed,
        trimmed,
        to,
        scheduler,
    })
}

impl Contents {
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
        let missing = missing(sources, self.not_replayed, self.trimmed, cut);
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

/// Gives each task its number, and replaces ids by numbers.
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

/// The limits of the lanes, without sessions.
pub(crate) fn limits(scheduler: &Scheduler, arrivals: &[Arrival]) -> BTreeMap<LaneName, u32> {
    let named = arrivals.iter().flat_map(|arrival| arrival.lanes.iter().cloned());
    let lanes: BTreeSet<LaneName> = named.chain([LaneName::global(), LaneName::main()]).collect();
    let shared = lanes.into_iter().filter(|lane| !lane.as_str().starts_with("session:"));
    shared.filter_map(|lane| Some((lane.clone(), scheduler.settings_for(&lane).max_concurrency?))).collect()
}

/// What the trace does not hold, in sentences.
fn missing(sources: Sources, not_replayed: NotReplayed, trimmed: Option<u64>, cut: usize) -> Vec<String> {
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
        (not_replayed.gates, "pauses, resumes and drains of lanes"),
        (not_replayed.settings, "changes of settings"),
        (not_replayed.priorities, "changes of priorities"),
    ];
    for (count, what) in counted.into_iter().filter(|(count, _)| *count > 0) {
        missing.push(format!("{count} {what}"));
    }
    if not_replayed.turns > 0 {
        let turns = not_replayed.turns;
        missing.push(format!("the messages of {turns} turns, which arrive as the turns that they became"));
    }
    if cut > 0 {
        missing.push(format!("{cut} tasks that arrived before and were not over"));
    }
    missing
}
