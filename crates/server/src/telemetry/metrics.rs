//! The route of the metrics, and what this server counts itself. The scheduler counts the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use laneway_core::{End, Event, LEASE_LAPSED};
use laneway_engine::Update;
use laneway_protocol::Code;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::app::{App, Shared};
use crate::http::error::ErrorLabels;
use crate::telemetry::exposition::{Exposition, to_classic};

type Counts = BTreeMap<(Arc<str>, Code), u64>;

/// The number of refusals by lane label and code. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct RejectionCounts(Arc<Mutex<Counts>>);

/// The most labels, so that refused callers cannot fill the memory.
const LABELS_MAX: usize = 10_000;
/// How long a scrape waits for the state. Without its store, a server shows what it knows by itself.
const STATE_WITHIN: Duration = Duration::from_millis(500);
/// The upper bounds of the times that requests take, in seconds. A request may wait in a line.
const REQUEST_BOUNDS: [f64; 10] = [0.005, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0];

impl RejectionCounts {
    pub(crate) fn count(&self, label: Arc<str>, code: Code) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() < LABELS_MAX || counts.contains_key(&(Arc::clone(&label), code)) {
            *counts.entry((label, code)).or_default() += 1;
        }
    }

    pub(super) fn all(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The labels of an answered request: its method, its route and its status.
pub(super) type Answered = [(&'static str, String); 3];

/// Requests, with the trace of a recent one in each bucket.
pub(super) type Requests = HistogramWithExemplars<[(&'static str, String); 1]>;

/// What this server counts since it started.
pub(crate) struct Metrics {
    pub(super) requests: Family<Answered, Requests, fn() -> Requests>,
    /// Connections beyond the bound.
    pub(crate) connections_refused: Counter,
    pub(super) store_up: Gauge,
    pub(super) outages: Counter,
    pub(super) log_losses: Counter,
    pub(super) tasks_lost: Counter,
    pub(super) tasks_restored: Counter,
    pub(super) leases_lapsed: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let store_up = Gauge::default();
        store_up.set(1);
        Metrics {
            requests: Family::new_with_constructor(|| Requests::new(REQUEST_BOUNDS.into_iter())),
            connections_refused: Counter::default(),
            store_up,
            outages: Counter::default(),
            log_losses: Counter::default(),
            tasks_lost: Counter::default(),
            tasks_restored: Counter::default(),
            leases_lapsed: Counter::default(),
        }
    }
}

impl Metrics {
    /// A request was answered, or its stream has begun.
    pub(crate) fn answered(
        &self,
        (method, route): (&Method, Option<&str>),
        status: u16,
        took: Duration,
        traceparent: Option<&str>,
    ) {
        // A caller may send any method and path, and each label stays for ever.
        let method = match method.as_str() {
            known @ ("GET" | "HEAD" | "POST" | "PATCH" | "PUT" | "DELETE" | "OPTIONS") => known,
            _ => "other",
        };
        let route = route.unwrap_or("unknown");
        let labels =
            [("method", method.to_owned()), ("route", route.to_owned()), ("status", status.to_string())];
        let trace = traceparent.and_then(|text| text.split('-').nth(1));
        let trace = trace.map(|trace| [("trace_id", trace.to_owned())]);
        self.requests.get_or_create_owned(&labels).observe(took.as_secs_f64(), trace, None);
    }

    /// This server decided something.
    pub(crate) fn decided(&self, event: &Event) {
        let has_lapsed = match event {
            Event::Redelivered { .. } | Event::Ended { end: End::Lost, .. } => true,
            Event::Retrying { error, .. } | Event::Ended { end: End::Failed { error }, .. } => {
                error.starts_with(LEASE_LAPSED)
            }
            _ => false,
        };
        if has_lapsed {
            self.leases_lapsed.inc();
        }
    }

    /// Something befell the store.
    pub(crate) fn befell_store(&self, update: &Update) {
        match update {
            Update::StoreAway { .. } => {
                self.store_up.set(0);
                self.outages.inc();
            }
            Update::StoreBack => {
                self.store_up.set(1);
            }
            Update::LogLost { lost, restored, ends_restored, .. } => {
                self.log_losses.inc();
                self.tasks_lost.inc_by(lost.len() as u64);
                self.tasks_restored.inc_by((restored.len() + ends_restored.len()) as u64);
            }
            _ => {}
        }
    }
}

impl App {
    /// Counts an error under the label of its lane.
    pub(crate) fn count_rejection(&self, error: ErrorLabels) {
        self.rejections.count(error.label.unwrap_or_default(), error.code);
    }

    /// All metrics of this moment in the text form of OpenMetrics.
    pub(crate) async fn open_metrics(self: &Arc<App>) -> Result<String, fmt::Error> {
        let exposition = Exposition::read(self, STATE_WITHIN).await;
        let mut registry = Registry::default();
        registry.register_collector(Box::new(exposition));
        let mut text = String::new();
        encode_registry(&mut text, &registry)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

fn gzip(text: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).and_then(|()| encoder.finish()).ok()
}

/// Metrics for Prometheus: in the form of OpenMetrics for a scraper that accepts it, else in the older text form.
#[utoipa::path(
    get, path = "/metrics", tag = "around",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): Shared, headers: HeaderMap) -> Response {
    // Writing to a string cannot fail.
    let text = app.open_metrics().await.unwrap_or_default();
    let names = |header: HeaderName, name: &str| {
        let given = headers.get(header).and_then(|value| value.to_str().ok());
        given.is_some_and(|given| given.contains(name))
    };
    let (kind, text) = if names(header::ACCEPT, "application/openmetrics-text") {
        (OPEN_METRICS, text)
    } else {
        (CLASSIC, to_classic(&text))
    };
    let kind = [(header::CONTENT_TYPE, kind), (header::VARY, "accept, accept-encoding")];
    let takes_gzip = names(header::ACCEPT_ENCODING, "gzip");
    match takes_gzip.then(|| gzip(text.as_bytes())).flatten() {
        Some(compressed) => (kind, [(header::CONTENT_ENCODING, "gzip")], compressed).into_response(),
        None => (kind, text).into_response(),
    }
}
