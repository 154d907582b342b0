//! Lanes, status, charts, health, configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;

/// The state of a lane.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LaneNumbers {
    /// Its name.
    pub lane: String,
    /// The block or pattern with its settings. Metrics count the lane under this label.
    pub label: String,
    /// The number of taken slots.
    pub running: u32,
    /// The number of waiting tasks.
    pub waiting: u32,
    /// The number of tasks that wait for the time of their next attempt.
    pub retrying: u32,
    /// The number of slots.
    pub max_concurrency: Option<u32>,
    /// The largest number of waiting tasks.
    pub max_queued: u32,
    /// Whether the lane starts no tasks.
    pub paused: bool,
    /// Whether the lane accepts no tasks.
    pub draining: bool,
    /// The alert in force: `warning` or `critical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert: Option<String>,
    /// All settings, by name.
    pub settings: BTreeMap<String, Value>,
    /// The counters of all lanes with this label.
    pub counters: LaneCounters,
    /// The waiting times before each start.
    pub wait: Percentiles,
    /// The durations of attempts.
    pub run: Percentiles,
}

/// The counters of lanes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LaneCounters {
    /// Tasks accepted.
    pub accepted: u64,
    /// Attempts started.
    pub started: u64,
    /// Attempts that were followed by another attempt.
    pub retried: u64,
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed or took too long.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Tasks that waited too long.
    pub timed_out_waiting: u64,
    /// Tasks whose lease lapsed and that did not run again.
    pub lost: u64,
}

/// Durations, in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Percentiles {
    /// The number of measurements.
    pub count: u64,
    /// The median.
    pub p50_ms: Option<u64>,
    /// The 90th percentile.
    pub p90_ms: Option<u64>,
    /// 95 %.
    #[serde(default)]
    pub p95_ms: Option<u64>,
    /// The 99th percentile.
    pub p99_ms: Option<u64>,
}

/// The state of the server.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// The number of running tasks.
    pub running: u32,
    /// The number of waiting tasks.
    pub waiting: u32,
    /// The largest number of tasks that run at once; `null` if there is no limit.
    pub max_concurrent: Option<u32>,
    /// `Agent: 2/3`, or `Agent: 3/3 (2 queued)`.
    pub line: String,
    /// The number of dead letters.
    #[serde(default)]
    pub dead_letters: u64,
    /// What to repair in the store before it loses something; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_warning: Option<String>,
}

/// Points of a chart.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryPoints {
    /// The metric.
    pub metric: String,
    /// The lane.
    pub lane: String,
    /// The range: `5m`, `1h` or `24h`.
    pub range: String,
    /// The time between two points. The newest point may come sooner.
    pub step_ms: u64,
    /// The points, the oldest first.
    pub points: Vec<HistoryPoint>,
    /// For the metric `refused`: the points of each code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_code: BTreeMap<String, Vec<HistoryPoint>>,
}

/// One point of a chart.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryPoint {
    /// When.
    pub at: At,
    /// The value.
    pub value: f64,
}

/// Whether the server is alive.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// The number of running tasks.
    pub running: u32,
    /// The number of waiting tasks.
    pub waiting: u32,
    /// The largest number of tasks that run at once; `null` if there is no limit.
    pub limit: Option<u32>,
}

/// Whether the server takes work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ready`, `draining`, `full` or `store_unavailable`.
    pub status: String,
    /// What to repair in the store before it loses something; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_warning: Option<String>,
}

/// The configuration in force, and where each value comes from.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfigView {
    /// Every value.
    pub values: Vec<ConfigValue>,
}

/// A value in force.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfigValue {
    /// The block, as in the file; empty at the top level.
    pub block: String,
    /// The key.
    pub key: String,
    /// The value, without secrets.
    pub value: String,
    /// The origin: a file and line, a variable, `api`, `default`, or `replica (… says …)`.
    pub source: String,
    /// What the configuration says, for a value that a caller has changed: `laneway.hcl:3 says 4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<String>,
}
