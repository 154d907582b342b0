//! Lanes, status, charts, health, configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;

/// How a lane stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LaneNumbers {
    /// Its name.
    pub lane: String,
    /// The block or pattern that speaks for it, under which it is counted.
    pub label: String,
    /// How many of its slots are taken.
    pub running: u32,
    /// How many tasks wait.
    pub waiting: u32,
    /// How many wait for their next attempt's time.
    pub retrying: u32,
    /// How many slots it has.
    pub max_concurrency: Option<u32>,
    /// How many may wait.
    pub max_queued: u32,
    /// Nothing starts.
    pub paused: bool,
    /// Nothing new is accepted.
    pub draining: bool,
    /// The worst alert about its line that is not over: `warning` or `critical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert: Option<String>,
    /// Everything that is set, by name.
    pub settings: BTreeMap<String, Value>,
    /// What the lanes of its block have seen together.
    pub counters: LaneCounters,
    /// From joining the line to each start.
    pub wait: Percentiles,
    /// Of each attempt.
    pub run: Percentiles,
}

/// What lanes have seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LaneCounters {
    /// Tasks accepted.
    pub accepted: u64,
    /// Attempts started.
    pub started: u64,
    /// Attempts that were followed by another.
    pub retried: u64,
    /// Tasks that ended well.
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
    /// How many were measured.
    pub count: u64,
    /// Half are not longer.
    pub p50_ms: Option<u64>,
    /// 90 % are not longer.
    pub p90_ms: Option<u64>,
    /// 99 % are not longer.
    pub p99_ms: Option<u64>,
}

/// How everything stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// How many tasks run.
    pub running: u32,
    /// How many wait.
    pub waiting: u32,
    /// How many may run at once; `null`: any number.
    pub max_concurrent: Option<u32>,
    /// `Agent: 2/3`, or `Agent: 3/3 (2 queued)`.
    pub line: String,
    /// How many tasks could not be done and are kept.
    #[serde(default)]
    pub dead_letters: u64,
}

/// Points of a chart.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryPoints {
    /// What was measured.
    pub metric: String,
    /// Of which lane.
    pub lane: String,
    /// How far back: `5m`, `1h` or `24h`.
    pub range: String,
    /// How far points are apart; the newest may be nearer.
    pub step_ms: u64,
    /// The points, the oldest first.
    pub points: Vec<HistoryPoint>,
    /// Of `refused`: the points of each code by itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_code: BTreeMap<String, Vec<HistoryPoint>>,
}

/// One point of a chart.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistoryPoint {
    /// When.
    pub at: At,
    /// How much.
    pub value: f64,
}

/// Whether the server is alive.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// How many tasks run.
    pub running: u32,
    /// How many wait.
    pub waiting: u32,
    /// How many may run at once; `null`: any number.
    pub limit: Option<u32>,
}

/// Whether the server takes work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ready`, `draining`, `full` or `store_unavailable`.
    pub status: String,
}

/// What holds, and where each value comes from.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfigView {
    /// Every value.
    pub values: Vec<ConfigValue>,
}

/// One value that holds.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfigValue {
    /// The block, as people write it; empty at the top.
    pub block: String,
    /// The key.
    pub key: String,
    /// The value, without secrets.
    pub value: String,
    /// Where it came from: a file and line, a variable, `api`, `default`, or `replica (… says …)`.
    pub source: String,
}
