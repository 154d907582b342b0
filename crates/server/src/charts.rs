//! Points for charts: the numbers of lanes, sampled, in bounded memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use laneway_core::{LaneName, Timestamp};
use laneway_engine::Handle;
use laneway_protocol::{At, HistoryPoint, HistoryPoints};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::extract::Query;
use crate::problem::{Answer, Refusal};

/// How often the numbers are taken.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// How many samples are kept: an hour.
const SAMPLES_MAX: usize = 360;
/// How many lanes are in a sample; those with most in them.
const LANES_MAX: usize = 64;

/// What was measured lately. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Charts(Arc<Mutex<VecDeque<Sample>>>);

struct Sample {
    at: Timestamp,
    lanes: BTreeMap<LaneName, Numbers>,
}

#[derive(Clone, Copy, Default)]
struct Numbers {
    running: u32,
    waiting: u32,
    started: u64,
    completed: u64,
    failed: u64,
}

impl Charts {
    /// Takes the numbers again and again.
    pub(crate) async fn sample(self, handle: Handle) {
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            match handle.read(sample).await {
                Ok(sample) => self.keep(sample),
                Err(laneway_engine::Error::Closed) => return,
                // The chart has a hole where the store was away.
                Err(_) => {}
            }
        }
    }

    fn keep(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    fn points(&self, lane: &LaneName, since: Timestamp, measure: fn(&Numbers) -> f64) -> Vec<HistoryPoint> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = samples.iter().filter(|sample| sample.at >= since);
        let point = |sample: &Sample| HistoryPoint {
            at: At(sample.at),
            value: measure(&sample.lanes.get(lane).copied().unwrap_or_default()),
        };
        recent.map(point).collect()
    }
}

fn sample(lanes: &laneway_core::Scheduler) -> Sample {
    let mut views = lanes.lanes();
    views.sort_by_key(|view| {
        std::cmp::Reverse((view.name == LaneName::global(), view.running + view.waiting))
    });
    let numbers = views.iter().take(LANES_MAX).map(|view| {
        let numbers = Numbers {
            running: view.running,
            waiting: view.waiting,
            started: view.stats.started,
            completed: view.stats.completed,
            failed: view.stats.failed,
        };
        (view.name.clone(), numbers)
    });
    Sample { at: lanes.now(), lanes: numbers.collect() }
}

/// Which points.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChartQuery {
    /// `running` (the default), `waiting`, `started`, `completed` or `failed`; the last three count from the beginning.
    metric: Option<String>,
    /// Of which lane. Default `global`.
    lane: Option<String>,
    /// Milliseconds since 1970, or an RFC 3339 time. Default: all that there are.
    since: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

/// Points for charts, of the last hour.
#[utoipa::path(
    get, path = "/api/history", tag = "lanes", params(ChartQuery),
    responses((status = 200, body = HistoryPoints))
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    Query(query): Query<ChartQuery>,
) -> Answer<Json<HistoryPoints>> {
    let metric = query.metric.unwrap_or_else(|| "running".to_owned());
    let measure: fn(&Numbers) -> f64 = match metric.as_str() {
        "running" => |numbers| f64::from(numbers.running),
        "waiting" => |numbers| f64::from(numbers.waiting),
        "started" => |numbers| numbers.started as f64,
        "completed" => |numbers| numbers.completed as f64,
        "failed" => |numbers| numbers.failed as f64,
        _ => {
            return Err(Refusal::invalid("metric must be running, waiting, started, completed or failed"));
        }
    };
    let lane = crate::asks::lane(query.lane.as_deref().unwrap_or("global"))?;
    let since = query.since.as_deref().map(moment).transpose()?.unwrap_or_default();
    let points = app.charts.points(&lane, since, measure);
    Ok(Json(HistoryPoints { metric, lane: lane.to_string(), points }))
}

fn moment(text: &str) -> Answer<Timestamp> {
    if let Ok(millis) = text.parse::<u64>() {
        return Ok(Timestamp(millis));
    }
    let parsed: Option<jiff::Timestamp> = text.parse().ok();
    let millis = parsed.and_then(|at| u64::try_from(at.as_millisecond()).ok());
    millis
        .map(Timestamp)
        .ok_or_else(|| Refusal::invalid("since must be an RFC 3339 time or milliseconds since 1970"))
}
