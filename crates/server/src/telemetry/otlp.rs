//! Traces for an OpenTelemetry collector: a span for each ended task, with its waits and its attempts inside.
//!
//! The exporter makes the spans from the history, so a live task costs nothing. A task belongs to the trace that its caller
//! named (`traceparent`), else to its own trace, whose id is the task's. A span has names, numbers and outcomes, and no
//! texts of callers or agents.
//!
//! Bounds: [`ENDED_MAX`] ended tasks may wait, a replica of a shared log knows [`OWN_MAX`] live tasks as its own, and the
//! spans of [`TOGETHER_MAX`] tasks go out together. The log counts the tasks beyond these bounds, which are not traced.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::TaskId;
use laneway_engine::{Handle, TaskRecord};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::ServerError;
use crate::telemetry::otlp_spans::{request, spans};

/// The most ended tasks that wait for their export.
const ENDED_MAX: usize = 8192;
/// The most live tasks of a shared log that a replica knows as its own.
const OWN_MAX: usize = 200_000;
/// The most tasks per request.
const TOGETHER_MAX: usize = 512;
/// How long ended tasks wait for others, once or twice.
const GATHER: Duration = Duration::from_millis(500);
/// The timeout of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The tries of a request, and the pause before the second one.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// The way to the collector, if one is configured. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Traces(Option<Arc<Inner>>);

struct Inner {
    ended: mpsc::Sender<TaskId>,
    /// The live tasks that this replica accepted, where others export their own; `None` without others.
    own: Option<Mutex<HashSet<TaskId>>>,
    /// Ended tasks beyond the bound.
    dropped: AtomicU64,
}

/// Sends the traces.
pub(crate) struct Exporter {
    traces: Arc<Inner>,
    ended: mpsc::Receiver<TaskId>,
    client: reqwest::Client,
    url: String,
    handle: Handle,
}

/// The collector's address: of the configuration, else of the environment.
pub(crate) fn endpoint(configured: Option<&str>, variable: Option<String>) -> Option<String> {
    let given = configured.map(str::to_owned).or(variable);
    given.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl Traces {
    /// Traces to the collector at this address, and their exporter.
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
        let own = is_shared.then(Mutex::default);
        let inner = Inner { ended: sender, own, dropped: AtomicU64::new(0) };
        let traces = Arc::new(inner);
        let exporter = Exporter { traces: Arc::clone(&traces), ended, client, url, handle };
        Ok((Traces(Some(traces)), exporter))
    }

    /// A task was accepted here.
    pub(crate) fn accepted(&self, task: TaskId) {
        if let Some(mut own) = self.0.as_ref().and_then(|inner| inner.own())
            && own.len() < OWN_MAX
        {
            own.insert(task);
        }
    }

    /// A task has ended.
    pub(crate) fn ended(&self, task: TaskId) {
        if let Some(inner) = &self.0
            && inner.ended.try_send(task).is_err()
        {
            inner.dropped.fetch_add(1, Ordering::Relaxed);
            inner.take_own(task);
        }
    }
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

    async fn add(&self, task: TaskId, fresh: &mut Vec<(TaskId, TaskRecord)>) {
        if let Ok(Some(mut record)) = self.handle.record(task).await {
            (record.payload, record.result) = (None, None);
            fresh.push((task, record));
        }
    }

    /// The spans of tasks in the traces that their callers named.
    fn spans(&self, ready: &[(TaskId, TaskRecord)]) -> Vec<serde_json::Value> {
        let own = ready.iter().filter(|(task, _)| self.traces.take_own(*task));
        own.flat_map(|(_, record)| spans(record)).collect()
    }

    async fn send(&self, ready: Vec<(TaskId, TaskRecord)>, tries: u32) {
        let dropped = self.traces.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(tasks = dropped, "the collector is slow: these tasks are in no trace");
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
