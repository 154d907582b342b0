//! Traces for an OpenTelemetry collector: a span for each ended task, with its waits and its attempts inside.
//!
//! The exporter makes the spans from the history, so a live task costs nothing. A task belongs to the trace that its caller
//! named (`traceparent`), else to its own trace, whose id is the task's. A span has names, numbers and outcomes, and no
//! texts of callers or agents.
//!
//! Bounds: [`ENDED_MAX`] ended tasks may wait, a replica of a shared log knows [`OWN_MAX`] live tasks as its own, and the
//! spans of [`TOGETHER_MAX`] tasks go out together. The log counts the tasks beyond these bounds, which are not traced.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::{Blocker, Explanation, LaneName, TaskId, TaskStatus, Timestamp};
use laneway_engine::{Handle, Standing};
use laneway_protocol::Code;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::http::error::ErrorLabels;
use crate::telemetry::collector::{Collector, TRIES};
use crate::telemetry::otlp_spans::{Ended, Refused, refusal, request, spans};

/// The most ended tasks that wait for their export.
const ENDED_MAX: usize = 8192;
/// The most live tasks of a shared log that a replica knows as its own.
const OWN_MAX: usize = 200_000;
/// The most tasks per request.
const TOGETHER_MAX: usize = 512;
/// The most refused requests that wait for the next export. A flood of them leaves only the first.
const REFUSED_MAX: usize = 512;
/// The longest name of a model.
const MODEL_BYTES_MAX: usize = 256;
/// How long ended tasks wait for others, once or twice.
const GATHER: Duration = Duration::from_millis(500);

/// The way to the collector, if one is configured. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<Inner>>);

struct Inner {
    ended: mpsc::Sender<TaskId>,
    /// The live tasks that this replica accepted, where others export their own; `None` without others.
    own: Option<Mutex<HashSet<TaskId>>>,
    /// The lanes that tasks waited for, at most [`ENDED_MAX`].
    waited: Mutex<HashMap<TaskId, LaneName>>,
    /// The spans of refused requests.
    refused: Mutex<Vec<Value>>,
    /// Ended tasks beyond the bound that the log has not counted yet.
    dropped: AtomicU64,
    /// All ended tasks that are in no trace.
    dropped_ever: AtomicU64,
}

/// Sends the traces.
pub(crate) struct Exporter {
    traces: Arc<Inner>,
    ended: mpsc::Receiver<TaskId>,
    collector: Collector,
    handle: Handle,
}

impl Traces {
    /// Traces to this collector, and their exporter.
    pub(crate) fn to(collector: Collector, handle: Handle, is_shared: bool) -> (Traces, Exporter) {
        let (sender, ended) = mpsc::channel(ENDED_MAX);
        let own = is_shared.then(Mutex::default);
        let (dropped, dropped_ever) = (AtomicU64::new(0), AtomicU64::new(0));
        let (waited, refused) = (Mutex::default(), Mutex::default());
        let inner = Inner { ended: sender, own, waited, refused, dropped, dropped_ever };
        let traces = Arc::new(inner);
        let exporter = Exporter { traces: Arc::clone(&traces), ended, collector, handle };
        (Traces(Some(traces)), exporter)
    }

    /// A task was accepted here.
    pub(crate) fn accepted(&self, task: TaskId) {
        if let Some(mut own) = self.0.as_ref().and_then(|inner| inner.own())
            && own.len() < OWN_MAX
        {
            own.insert(task);
        }
    }

    /// Notes which lane a new task waits for, if it waits.
    pub(crate) fn note_wait(&self, task: TaskId, standing: &Standing, handle: &Handle) {
        let (Some(inner), Some(TaskStatus::Queued)) = (self.0.clone(), standing.status) else { return };
        let handle = handle.clone();
        tokio::spawn(async move {
            let explained = handle.read(move |lanes| lanes.explain(task)).await;
            let Some(lane) = explained.ok().flatten().and_then(blocking_lane) else { return };
            let mut waited = inner.waited.lock().unwrap_or_else(PoisonError::into_inner);
            if waited.len() >= ENDED_MAX {
                waited.clear();
            }
            waited.insert(task, lane);
        });
    }

    /// A request was refused, for want of room or because the server takes no work.
    pub(crate) fn refused(
        &self,
        (error, status): (&ErrorLabels, u16),
        request: (&str, &str),
        traceparent: Option<&str>,
        times: (Timestamp, Timestamp),
    ) {
        let Some(inner) = &self.0 else { return };
        let mut kept = inner.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_of_work(error.code) || kept.len() >= REFUSED_MAX {
            return;
        }
        let mut random = [0; 24];
        // Without randomness, spans share an id.
        getrandom::fill(&mut random).unwrap_or_default();
        let (span, trace) = random.split_at(8);
        let number =
            |bytes: &[u8]| bytes.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
        let ids = (number(span) as u64, number(trace));
        let (code, lane) = (error.code.as_str(), error.label.as_deref());
        kept.extend(refusal(&Refused { code, lane, request, status, traceparent, times, ids }));
    }

    /// How many ended tasks are in no trace because the collector was slow or away.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.dropped_ever.load(Ordering::Relaxed))
    }

    /// A task has ended.
    pub(crate) fn ended(&self, task: TaskId) {
        if let Some(inner) = &self.0
            && inner.ended.try_send(task).is_err()
        {
            inner.dropped.fetch_add(1, Ordering::Relaxed);
            inner.dropped_ever.fetch_add(1, Ordering::Relaxed);
            inner.take_own(task);
        }
    }
}

/// Whether a refusal is about work that might have been accepted at another moment.
fn is_of_work(code: Code) -> bool {
    matches!(
        code,
        Code::AtCapacity
            | Code::RateLimited
            | Code::SessionBusy
            | Code::WouldDeadlock
            | Code::ChainTooDeep
            | Code::DeadlineUnmeetable
            | Code::Draining
            | Code::StoreUnavailable
    )
}

/// The first lane that holds a task up.
fn blocking_lane(explained: Explanation) -> Option<LaneName> {
    explained.blockers.into_iter().find_map(|blocker| match blocker {
        Blocker::Paused { lane }
        | Blocker::RateLimited { lane, .. }
        | Blocker::SessionBusy { lane, .. }
        | Blocker::LaneFull { lane, .. }
        | Blocker::Reserved { lane, .. } => Some(lane),
        _ => None,
    })
}

impl Inner {
    fn own(&self) -> Option<MutexGuard<'_, HashSet<TaskId>>> {
        Some(self.own.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether this replica exports an ended task. Forgets the task.
    fn take_own(&self, task: TaskId) -> bool {
        self.own().is_none_or(|mut own| own.remove(&task))
    }
}

/// The model that a turn's payload names.
fn model_of(payload: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Asked {
        model: Option<String>,
    }
    let asked: Asked = serde_json::from_slice(payload).ok()?;
    asked.model.filter(|model| model.len() <= MODEL_BYTES_MAX)
}

impl Exporter {
    /// Sends ended tasks until `stop`, and then the rest.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        // A task may end before its submission returns and marks it as this replica's own. So each task waits for a tick.
        let (mut fresh, mut ready) = (Vec::new(), Vec::new());
        let mut ticks = tokio::time::interval(GATHER);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                task = self.ended.recv() => match task {
                    Some(task) => self.add(task, &mut fresh).await,
                    None => break,
                },
                _ = ticks.tick() => {
                    self.send(std::mem::take(&mut ready), TRIES).await;
                    std::mem::swap(&mut fresh, &mut ready);
                }
            }
            if fresh.len() >= TOGETHER_MAX {
                self.send(std::mem::take(&mut ready), TRIES).await;
                std::mem::swap(&mut fresh, &mut ready);
            }
        }
        while let Ok(task) = self.ended.try_recv() {
            self.add(task, &mut fresh).await;
        }
        ready.append(&mut fresh);
        self.send(ready, 1).await;
    }

    async fn add(&self, task: TaskId, fresh: &mut Vec<(TaskId, Ended)>) {
        if let Ok(Some(mut record)) = self.handle.record(task).await {
            let model = record.payload.as_deref().and_then(model_of);
            (record.payload, record.result) = (None, None);
            fresh.push((task, Ended { record, model, waited_for: None }));
        }
    }

    async fn send(&self, mut ready: Vec<(TaskId, Ended)>, tries: u32) {
        let dropped = self.traces.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(tasks = dropped, "the collector is slow: these tasks are in no trace");
        }
        ready.retain(|(task, _)| self.traces.take_own(*task));
        {
            let mut waited = self.traces.waited.lock().unwrap_or_else(PoisonError::into_inner);
            ready.iter_mut().for_each(|(task, ended)| ended.waited_for = waited.remove(task));
        }
        // In the traces that their callers named.
        let mut spans: Vec<_> = ready.iter().flat_map(|(_, ended)| spans(ended)).collect();
        spans.append(&mut self.traces.refused.lock().unwrap_or_else(PoisonError::into_inner));
        if spans.is_empty() {
            return;
        }
        if !self.collector.send("traces", &request(spans, self.collector.resource()), tries).await {
            self.traces.dropped_ever.fetch_add(ready.len() as u64, Ordering::Relaxed);
        }
    }
}
