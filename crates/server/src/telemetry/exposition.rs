//! Every metric, with its name and its meaning.
//!
//! A name that begins with `laneway_cluster_` is a number of the whole queue, and every replica gives the same. All others
//! belong to this server, and the numbers of several servers add up. Four gauges have a second, older name without `cluster_`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use laneway_config::StoreLocation;
use laneway_core::{Histogram, LaneStats, Scheduler};
use laneway_engine::{AppendTimes, Appends};
use laneway_protocol::Code;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use tokio::time::timeout;

use crate::app::App;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::process::Process;

/// The numbers of the lanes with one label.
#[derive(Default)]
struct LabelNumbers {
    running: u64,
    waiting: u64,
    limit: Option<u32>,
    oldest_ms: u64,
    paused: u64,
}

/// The state of the queue.
#[derive(Default)]
struct Queue {
    now: BTreeMap<String, LabelNumbers>,
    stats: BTreeMap<String, LaneStats>,
    dead_letters: u64,
}

/// Everything that a scrape shows.
pub(super) struct Exposition {
    metrics: Arc<Metrics>,
    /// `None` while the store is away.
    queue: Option<Queue>,
    /// What this server has counted in its lanes, if the state tells.
    stats: BTreeMap<String, LaneStats>,
    rejections: BTreeMap<(Arc<str>, Code), u64>,
    appends: Appends,
    append_times: AppendTimes,
    store: &'static str,
    is_ready: bool,
    /// Settings in force that differ from this server's file; `None` while the store is away.
    differences: Option<u64>,
    connections: usize,
    traces_dropped: u64,
    process: Option<Process>,
}

impl fmt::Debug for Exposition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Exposition").finish_non_exhaustive()
    }
}

impl Exposition {
    /// Reads all numbers. Those of the queue are left out if it does not answer in time.
    pub(super) async fn read(app: &Arc<App>, patience: Duration) -> Exposition {
        let tool_calls = app.handle.tool_calls();
        let look = move |lanes: &Scheduler| Queue::read(lanes, |label| tool_calls.counts(label));
        let (queue, readiness, differences) = tokio::join!(
            timeout(patience, app.handle.read(look)),
            timeout(patience, app.readiness()),
            timeout(patience, app.differences()),
        );
        let mut queue = queue.ok().and_then(Result::ok);
        let tool_calls = app.handle.tool_calls();
        let stats = match app.handle.own_stats() {
            Some(own) => {
                let counted = own.into_iter().filter(|(label, _)| tool_calls.counts(label));
                counted.map(|(label, stats)| (label.to_string(), stats)).collect()
            }
            None => queue.as_mut().map(|queue| std::mem::take(&mut queue.stats)).unwrap_or_default(),
        };
        let store = match app.config.load().store {
            StoreLocation::Memory => "memory",
            StoreLocation::Path(_) => "sqlite",
            StoreLocation::Redis(_) => "redis",
            StoreLocation::Postgres(_) => "postgres",
        };
        Exposition {
            metrics: Arc::clone(&app.metrics),
            queue,
            stats,
            rejections: app.rejections.all(),
            appends: app.handle.appends(),
            append_times: app.handle.append_times(),
            store,
            is_ready: readiness.is_ok_and(|word| word == "ready"),
            differences: differences.ok().and_then(Result::ok).map(|found| found.len() as u64),
            connections: app.connections.len(),
            traces_dropped: app.traces.dropped(),
            process: Process::read(),
        }
    }
}

impl Queue {
    fn read(lanes: &Scheduler, counts: impl Fn(&str) -> bool) -> Queue {
        let mut queue = Queue { dead_letters: lanes.dead_letters().count() as u64, ..Queue::default() };
        for view in lanes.lanes().into_iter().filter(|view| counts(view.label)) {
            let entry = queue.now.entry(view.label.to_owned()).or_default();
            entry.running += u64::from(view.running);
            entry.waiting += u64::from(view.waiting);
            entry.limit = view.settings.max_concurrency;
            entry.paused += u64::from(view.gate.paused);
            let oldest = lanes.oldest_waiting(&view.name).map_or(0, |at| lanes.now().since(at).0);
            entry.oldest_ms = entry.oldest_ms.max(oldest);
        }
        for (label, stats) in lanes.stats().filter(|(label, _)| counts(label)) {
            queue.stats.entry(label.to_owned()).or_default().add(stats);
        }
        queue
    }
}

/// Writes the families. The form of OpenMetrics adds `_total` to the name of a counter.
struct Writer<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Writer<'_, '_> {
    fn family<'s>(
        &'s mut self,
        name: &'s str,
        kind: MetricType,
        help: &str,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut family = self.family(name, MetricType::Counter, help)?;
        family.encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.family(name, MetricType::Gauge, help)?.encode_gauge(&value)
    }

    fn whole(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, MetricType::Gauge, help)?.encode_gauge(&value)
    }

    /// A counter for each lane.
    fn lane_counter(
        &mut self,
        name: &str,
        help: &str,
        stats: &BTreeMap<String, LaneStats>,
        value: impl Fn(&LaneStats) -> u64,
    ) -> fmt::Result {
        let mut family = self.family(name, MetricType::Counter, help)?;
        for (label, stats) in stats {
            let labels = [("lane", escape(label))];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&value(stats), None)?;
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        stats: &BTreeMap<String, LaneStats>,
        of: impl Fn(&LaneStats) -> &Histogram,
    ) -> fmt::Result {
        let mut family = self.family(name, MetricType::Histogram, help)?;
        for (label, stats) in stats {
            let (labels, histogram) = ([("lane", escape(label))], of(stats));
            let mut before = 0;
            let mut buckets: Vec<(f64, u64)> = histogram
                .below_powers()
                .map(|(bound, below)| (seconds(bound.0), below - std::mem::replace(&mut before, below)))
                .collect();
            buckets.push((f64::INFINITY, histogram.samples() - before));
            let (sum, count) = (seconds(histogram.sum().0), histogram.samples());
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// The encoder writes the values of labels as they are.
fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Writer(&mut encoder);
        if let Some(queue) = &self.queue {
            queue.encode(&mut to)?;
        }
        self.encode_tasks(&mut to)?;
        self.encode_rejections(&mut to)?;
        self.encode_requests(&mut to)?;
        self.encode_store(&mut to)?;
        self.encode_server(&mut to)?;
        self.process.as_ref().map_or(Ok(()), |process| encode_process(process, &mut to))
    }
}

impl Queue {
    /// The numbers of the whole queue, which every replica gives alike.
    fn encode(&self, to: &mut Writer<'_, '_>) -> fmt::Result {
        type Gauge<'a> = (&'a str, &'a str, &'a dyn Fn(&LabelNumbers) -> Option<f64>);
        let gauges: [Gauge<'_>; 4] = [
            ("running", "Slots taken", &|now| Some(now.running as f64)),
            ("waiting", "Tasks waiting", &|now| Some(now.waiting as f64)),
            ("limit", "Slots of each lane", &|now| now.limit.map(f64::from)),
            ("oldest_waiting_seconds", "How long the first in line has waited", &|now| {
                Some(seconds(now.oldest_ms))
            }),
        ];
        for (name, what, value) in gauges {
            let help = format!("{what}, in the whole queue: take the maximum over replicas, not the sum.");
            self.gauge(to, &format!("laneway_cluster_{name}"), &help, value)?;
            let help = format!("{what}: the older name of laneway_cluster_{name}.");
            self.gauge(to, &format!("laneway_{name}"), &help, value)?;
        }
        let help = "Paused lanes, in the whole queue.";
        self.gauge(to, "laneway_cluster_paused", help, &|now| Some(now.paused as f64))?;
        to.whole("laneway_cluster_dead_letters", "Dead letters, in the whole queue.", self.dead_letters)
    }

    fn gauge(
        &self,
        to: &mut Writer<'_, '_>,
        name: &str,
        help: &str,
        value: &dyn Fn(&LabelNumbers) -> Option<f64>,
    ) -> fmt::Result {
        let mut family = to.family(name, MetricType::Gauge, help)?;
        for (label, now) in &self.now {
            let Some(value) = value(now) else { continue };
            let labels = [("lane", escape(label))];
            let mut one = family.encode_family(&labels)?;
            if value.fract() == 0.0 { one.encode_gauge(&(value as i64))? } else { one.encode_gauge(&value)? }
        }
        Ok(())
    }
}

impl Exposition {
    fn encode_tasks(&self, to: &mut Writer<'_, '_>) -> fmt::Result {
        let stats = &self.stats;
        let help = "Tasks that this server accepted. A task counts in each of its lanes.";
        to.lane_counter("laneway_tasks_accepted", help, stats, |stats| stats.accepted)?;
        let help = "Tasks whose end this server recorded, by lane and outcome.";
        let mut family = to.family("laneway_tasks", MetricType::Counter, help)?;
        for (label, stats) in stats {
            let outcomes = [
                ("completed", stats.completed),
                ("failed", stats.failed),
                ("cancelled", stats.cancelled),
                ("timed_out_waiting", stats.timed_out_waiting),
                ("lost", stats.lost),
            ];
            for (outcome, count) in outcomes {
                let labels = [("lane", escape(label)), ("outcome", outcome.to_owned())];
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)?;
            }
        }
        let help = "Attempts after which another followed.";
        to.lane_counter("laneway_retries", help, stats, |stats| stats.retried)?;
        let help = "From joining the line to each start.";
        to.histogram("laneway_wait_seconds", help, stats, |stats| &stats.wait)?;
        to.histogram("laneway_run_seconds", "How long attempts took.", stats, |stats| &stats.run)
    }

    fn encode_rejections(&self, to: &mut Writer<'_, '_>) -> fmt::Result {
        let help = "Requests that this server refused, by lane and code.";
        let mut family = to.family("laneway_rejected", MetricType::Counter, help)?;
        let mut stale = 0;
        for ((label, code), count) in &self.rejections {
            let labels = [("lane", escape(label)), ("code", code.as_str().to_owned())];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(count, None)?;
            if *code == Code::StaleLease {
                stale += count;
            }
        }
        to.counter("laneway_stale", "Reports of attempts that had lost their lease.", stale)?;
        let lapsed = self.metrics.leases_lapsed.get();
        to.counter("laneway_leases_lapsed", "Leases that lapsed, as this server noticed.", lapsed)
    }

    fn encode_requests(&self, to: &mut Writer<'_, '_>) -> fmt::Result {
        let help = "From the head of a request to the head of its answer, waits in line included.";
        let requests = &self.metrics.requests;
        requests.encode(to.family("laneway_http_request_seconds", requests.metric_type(), help)?)?;
        to.whole("laneway_http_connections", "Open connections.", self.connections as u64)?;
        let refused = self.metrics.connections_refused.get();
        to.counter("laneway_http_connections_refused", "Connections beyond connections_max.", refused)
    }

    fn encode_store(&self, to: &mut Writer<'_, '_>) -> fmt::Result {
        let metrics = &self.metrics;
        let up = metrics.store_up.get();
        to.whole("laneway_store_up", "1 while this server can use its store.", up.unsigned_abs())?;
        let help = "How often this server lost its store.";
        to.counter("laneway_store_outages", help, metrics.outages.get())?;
        let help = "How long appends to the log took, failed ones included.";
        let buckets = &self.append_times.buckets;
        let count = buckets.iter().map(|(_, count)| count).sum();
        to.family("laneway_store_append_seconds", MetricType::Histogram, help)?
            .encode_histogram::<NoLabelSet>(self.append_times.sum, count, buckets, None)?;
        let help =
            "Batches that this server has in the log, or decided in vain because another replica was first.";
        let mut family = to.family("laneway_store_appends", MetricType::Counter, help)?;
        for (outcome, count) in [("kept", self.appends.kept), ("conflict", self.appends.lost)] {
            let labels = [("outcome", outcome)];
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)?;
        }
        let help = "How often this server waited for the append turn.";
        to.counter("laneway_store_turn_waits", help, self.appends.waits)?;
        let help = "How often the replica with the append turn was silent for too long.";
        to.counter("laneway_store_turns_overdue", help, self.appends.overdue)?;
        let help = "How often the store had lost its last writes.";
        to.counter("laneway_log_losses", help, metrics.log_losses.get())?;
        let help = "Tasks that were gone after such a loss and that this server did not restore.";
        to.counter("laneway_log_tasks_lost", help, metrics.tasks_lost.get())?;
        let help = "Tasks and ends that this server restored after such a loss.";
        to.counter("laneway_log_tasks_restored", help, metrics.tasks_restored.get())
    }

    fn encode_server(&self, to: &mut Writer<'_, '_>) -> fmt::Result {
        let labels = [("version", env!("CARGO_PKG_VERSION")), ("store", self.store)];
        to.family("laneway_build", MetricType::Info, "The version of this server, and its store.")?
            .encode_info(&labels)?;
        to.whole("laneway_ready", "1 while /readyz answers 200.", self.is_ready.into())?;
        if let Some(differences) = self.differences {
            let help = "Settings in force that differ from this server's file.";
            to.whole("laneway_config_differences", help, differences)?;
        }
        let help = "Ended tasks that are in no trace because the collector was slow or away.";
        to.counter("laneway_traces_dropped", help, self.traces_dropped)
    }
}

fn encode_process(process: &Process, to: &mut Writer<'_, '_>) -> fmt::Result {
    let help = "CPU time of this process in seconds.";
    let mut family = to.family("process_cpu_seconds", MetricType::Counter, help)?;
    family.encode_counter::<NoLabelSet, f64, u64>(&process.cpu_seconds, None)?;
    let help = "When this process started, in seconds since 1970.";
    to.gauge("process_start_time_seconds", help, process.start_time)?;
    to.whole("process_resident_memory_bytes", "Resident memory.", process.resident_bytes)?;
    to.whole("process_virtual_memory_bytes", "Virtual memory.", process.virtual_bytes)?;
    to.whole("process_threads", "Threads.", process.threads)?;
    to.whole("process_open_fds", "Open file descriptors.", process.open_fds)?;
    process
        .max_fds
        .map_or(Ok(()), |max| to.whole("process_max_fds", "The limit of open file descriptors.", max))
}

/// The same metrics in the older text form of Prometheus, in which a counter's type stands under its whole name.
pub(super) fn to_classic(text: &str) -> String {
    let mut classic = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            let help = help.strip_prefix(name).unwrap_or_default();
            classic.push_str(&format!("# HELP {name}{suffix}{help}\n# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            // Only the times of requests have exemplars, and no label of theirs contains this.
            let is_request = line.starts_with("laneway_http_");
            let plain = line.split_once(" # {").filter(|_| is_request).map_or(line, |(plain, _)| plain);
            classic.push_str(plain);
            classic.push('\n');
        }
    }
    classic
}
