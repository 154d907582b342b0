//! Metrics for Prometheus. The scheduler counts everything except rejections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use laneway_core::{Histogram, LaneStats};
use laneway_protocol::Code;

use crate::app::{App, Shared};
use crate::http::error::{ApiResult, ErrorLabels};

type Counts = BTreeMap<(Arc<str>, Code), u64>;

/// The number of refusals by lane label and code. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct RejectionCounts(Arc<Mutex<Counts>>);

/// The most labels, so that refused callers cannot fill the memory.
const LABELS_MAX: usize = 10_000;

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

impl App {
    /// Counts an error under the label of its lane.
    pub(crate) fn count_rejection(&self, error: ErrorLabels) {
        self.rejections.count(error.label.unwrap_or_default(), error.code);
    }
}

/// The numbers of the lanes with one label.
#[derive(Default)]
struct LabelNumbers {
    running: u64,
    waiting: u64,
    limit: Option<u32>,
    oldest_ms: u64,
}

/// Metrics for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "around",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): Shared) -> ApiResult<Response> {
    let tool_calls = app.handle.tool_calls();
    let look = move |lanes: &laneway_core::Scheduler| {
        let mut now: BTreeMap<String, LabelNumbers> = BTreeMap::new();
        for view in lanes.lanes().into_iter().filter(|view| tool_calls.counts(view.label)) {
            let entry = now.entry(view.label.to_owned()).or_default();
            entry.running += u64::from(view.running);
            entry.waiting += u64::from(view.waiting);
            entry.limit = view.settings.max_concurrency;
            let oldest = lanes.oldest_waiting(&view.name).map_or(0, |at| lanes.now().since(at).0);
            entry.oldest_ms = entry.oldest_ms.max(oldest);
        }
        let mut sums: BTreeMap<String, LaneStats> = BTreeMap::new();
        for (label, stats) in lanes.stats().filter(|(label, _)| tool_calls.counts(label)) {
            sums.entry(label.to_owned()).or_default().add(stats);
        }
        (now, sums)
    };
    let (now, stats) = app.handle.read(look).await?;
    let body = render(&now, &stats, &app.rejections.all());
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], body).into_response())
}

struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _infallible = self.0.write_fmt(line);
    }
}

fn render(
    now: &BTreeMap<String, LabelNumbers>,
    stats: &BTreeMap<String, LaneStats>,
    refusals: &BTreeMap<(Arc<str>, Code), u64>,
) -> String {
    let mut text = Exposition(String::new());
    text.family("laneway_tasks_total", "counter", "Tasks that ended, by lane and outcome.");
    for (label, stats) in stats {
        let lane = escape(label);
        let outcomes = [
            ("completed", stats.completed),
            ("failed", stats.failed),
            ("cancelled", stats.cancelled),
            ("timed_out_waiting", stats.timed_out_waiting),
            ("lost", stats.lost),
        ];
        for (outcome, count) in outcomes {
            text.line(format_args!("laneway_tasks_total{{lane=\"{lane}\",outcome=\"{outcome}\"}} {count}\n"));
        }
    }
    gauge(&mut text, now, "laneway_running", "Slots taken.", |now| Some(now.running as f64));
    gauge(&mut text, now, "laneway_waiting", "Tasks waiting.", |now| Some(now.waiting as f64));
    gauge(&mut text, now, "laneway_limit", "Slots of each lane.", |now| now.limit.map(f64::from));
    let oldest = |now: &LabelNumbers| Some(now.oldest_ms as f64 / 1000.0);
    gauge(&mut text, now, "laneway_oldest_waiting_seconds", "How long the first in line has waited.", oldest);
    text.family("laneway_rejected_total", "counter", "Requests that were refused, by lane and code.");
    let mut stale = 0;
    for ((label, code), count) in refusals {
        let (lane, code_text) = (escape(label), code.as_str());
        text.line(format_args!("laneway_rejected_total{{lane=\"{lane}\",code=\"{code_text}\"}} {count}\n"));
        if *code == Code::StaleLease {
            stale += count;
        }
    }
    text.family("laneway_stale_total", "counter", "Reports of attempts that had lost their lease.");
    text.line(format_args!("laneway_stale_total {stale}\n"));
    histogram(&mut text, stats, "laneway_wait_seconds", "From joining the line to each start.", |stats| {
        &stats.wait
    });
    histogram(&mut text, stats, "laneway_run_seconds", "How long attempts took.", |stats| &stats.run);
    text.0
}

fn gauge(
    text: &mut Exposition,
    now: &BTreeMap<String, LabelNumbers>,
    name: &str,
    help: &str,
    value: impl Fn(&LabelNumbers) -> Option<f64>,
) {
    text.family(name, "gauge", help);
    for (label, now) in now {
        if let Some(value) = value(now) {
            text.line(format_args!("{name}{{lane=\"{}\"}} {value}\n", escape(label)));
        }
    }
}

fn histogram(
    text: &mut Exposition,
    stats: &BTreeMap<String, LaneStats>,
    name: &str,
    help: &str,
    of: impl Fn(&LaneStats) -> &Histogram,
) {
    text.family(name, "histogram", help);
    for (label, stats) in stats {
        let (lane, histogram) = (escape(label), of(stats));
        for (bound, below) in histogram.below_powers() {
            let bound = bound.0 as f64 / 1000.0;
            text.line(format_args!("{name}_bucket{{lane=\"{lane}\",le=\"{bound}\"}} {below}\n"));
        }
        let samples = histogram.samples();
        text.line(format_args!("{name}_bucket{{lane=\"{lane}\",le=\"+Inf\"}} {samples}\n"));
        let sum = histogram.sum().0 as f64 / 1000.0;
        text.line(format_args!("{name}_sum{{lane=\"{lane}\"}} {sum}\n"));
        text.line(format_args!("{name}_count{{lane=\"{lane}\"}} {samples}\n"));
    }
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
