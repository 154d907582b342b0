//! Traces for an OpenTelemetry collector: a span for each task that is over, with its waits and its attempts inside.
//!
//! The spans are made from what is remembered of the task, so they cost nothing while it lives, and only where a collector
//! is configured. A task belongs to the trace that its caller named (`traceparent`), else to one of its own, whose id is the
//! task's. Texts of callers and agents stay here: a span has names, numbers and outcomes.
//!
//! Bounds: [`ENDED_MAX`] tasks may wait to be told of, [`NOTES_MAX`] live tasks have their trace remembered, and
//! the spans of [`TOGETHER_MAX`] tasks go out together. What is beyond is not traced, and the log says how much that was.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::TaskId;
use laneway_engine::{Handle, TaskRecord};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::ServerError;
use crate::service::envelope::Envelope;
use crate::telemetry::otlp_spans::{Parent, request, spans};

/// How many tasks that are over may wait to be told of.
const ENDED_MAX: usize = 8192;
/// Of how many live tasks the trace is remembered.
const NOTES_MAX: usize = 200_000;
/// How many tasks' spans are sent together.
const TOGETHER_MAX: usize = 512;
/// How long they wait for others, once or twice.
const GATHER: Duration = Duration::from_millis(500);
/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often spans are sent that the collector does not take, and how long to wait before the second time.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// Where traces go; nowhere, if no collector is configured. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<Inner>>);

struct Inner {
    ended: mpsc::Sender<TaskId>,
    notes: Mutex<HashMap<TaskId, Option<Parent>>>,
    /// Whether other replicas export their own tasks: then this one exports only those that it accepted.
    is_shared: bool,
    untold: AtomicU64,
}

/// What sends them.
pub(crate) struct Exporter {
    traces: Arc<Inner>,
    ended: mpsc::Receiver<TaskId>,
    client: reqwest::Client,
    url: String,
    handle: Handle,
}

/// The collector's address: as configured, else as the environment says.
pub(crate) fn endpoint(configured: Option<&str>, variable: Option<String>) -> Option<String> {
    let given = configured.map(str::to_owned).or(variable);
    given.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl Traces {
    /// Traces to the collector at this address, and what sends them there.
    pub(crate) fn to(
        endpoint: &str,
        handle: Handle,
        is_shared: bool,
    ) -> Result<(Traces, Exporter), ServerError> {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let parsed: Result<axum::http::Uri, _> = url.parse();
        if !parsed.is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
        {
            return Err(ServerError::TracesAddress(endpoint.to_owned()));
        }
        let client = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        let (sender, ended) = mpsc::channel(ENDED_MAX);
        let inner = Inner { ended: sender, notes: Mutex::default(), is_shared, untold: AtomicU64::new(0) };
        let traces = Arc::new(inner);
        let exporter = Exporter { traces: Arc::clone(&traces), ended, client, url, handle };
        Ok((Traces(Some(traces)), exporter))
    }

    /// A task was accepted here, in the trace that its caller named.
    pub(crate) fn accepted(&self, task: TaskId, traceparent: Option<&str>) {
        if let Some(inner) = &self.0 {
            inner.note(task, traceparent);
        }
    }

    /// A task is over.
    pub(crate) fn ended(&self, task: TaskId) {
        if let Some(inner) = &self.0
            && inner.ended.try_send(task).is_err()
        {
            inner.untold.fetch_add(1, Ordering::Relaxed);
            inner.notes().remove(&task);
        }
    }
}

impl Inner {
    fn notes(&self) -> MutexGuard<'_, HashMap<TaskId, Option<Parent>>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, task: TaskId, traceparent: Option<&str>) {
        let mut notes = self.notes();
        if notes.len() < NOTES_MAX {
            notes.insert(task, traceparent.and_then(Parent::parse));
        }
    }
}

impl Exporter {
    /// Sends what has ended until `stop`, and then what is left.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        self.recall().await;
        // A task that is over at once may be heard of before whoever asked has noted its trace: nothing is sent that has not
        // waited from one tick to the next.
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

    /// Takes up the traces of what was accepted before this server started.
    async fn recall(&self) {
        if self.traces.is_shared {
            return;
        }
        for task in self.handle.tasks().await.unwrap_or_default() {
            let Some(payload) = task.payload else { continue };
            if let Ok(Some(bytes)) = self.handle.payload(payload).await {
                self.traces.note(task.id, Envelope::open(&bytes).traceparent.as_deref());
            }
        }
    }

    async fn add(&self, task: TaskId, fresh: &mut Vec<(TaskId, TaskRecord)>) {
        if let Ok(Some(mut record)) = self.handle.record(task).await {
            (record.payload, record.result) = (None, None);
            fresh.push((task, record));
        }
    }

    /// The spans of tasks in the traces that their callers named.
    fn spans(&self, ready: &[(TaskId, TaskRecord)]) -> Vec<serde_json::Value> {
        let mut notes = self.traces.notes();
        let mut made = Vec::new();
        for (task, record) in ready {
            let note = notes.remove(task);
            if note.is_some() || !self.traces.is_shared {
                made.extend(spans(record, note.flatten()));
            }
        }
        made
    }

    async fn send(&self, ready: Vec<(TaskId, TaskRecord)>, tries: u32) {
        let untold = self.traces.untold.swap(0, Ordering::Relaxed);
        if untold > 0 {
            tracing::warn!(tasks = untold, "the collector is slow: these tasks are in no trace");
        }
        let spans = self.spans(&ready);
        if spans.is_empty() {
            return;
        }
        let body = request(spans).to_string();
        let mut pause = PAUSE;
        for attempt in 1..=tries {
            let problem = match self.post(body.clone()).await {
                Ok(status) if (200..300).contains(&status) => return,
                Ok(status @ (429 | 502 | 503 | 504)) => format!("it answered {status}"),
                Ok(status) => {
                    tracing::warn!(status, "the collector refuses traces; they are dropped");
                    return;
                }
                Err(error) => error.to_string(),
            };
            if attempt == tries {
                tracing::warn!(problem, "the collector cannot be reached; traces are dropped");
                return;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    async fn post(&self, body: String) -> Result<u16, reqwest::Error> {
        let request = self.client.post(&self.url).header("content-type", "application/json").body(body);
        // The address may hold a password, and is in the error's text.
        let answer = request.send().await.map_err(reqwest::Error::without_url)?;
        Ok(answer.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_stands_above_the_environment() {
        let variable = || Some("http://b:4318".to_owned());
        assert_eq!(endpoint(Some("http://a:4318"), variable()).as_deref(), Some("http://a:4318"));
        assert_eq!(endpoint(None, variable()).as_deref(), Some("http://b:4318"));
        assert_eq!(endpoint(None, Some(" ".to_owned())), None);
    }
}
