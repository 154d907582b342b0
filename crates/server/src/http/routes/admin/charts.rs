//! Points for charts.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use laneway_core::Timestamp;
use laneway_protocol::{At, HistoryPoint, HistoryPoints};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::Query;
use crate::telemetry::charts::{Numbers, Range};

/// Which points.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChartQuery {
    /// `running` (the default) and `waiting`: the largest number since the previous point. `started`, `completed`, `failed`
    /// and `refused`: the total count. `wait_p50`, `wait_p95` and `wait_p99`: the waiting time in milliseconds of tasks
    /// that started since the previous point; without such tasks there is no point.
    metric: Option<String>,
    /// The lane. Default `global`, which counts everything.
    lane: Option<String>,
    /// The range: `5m`, `1h` or `24h`. Longer ranges have coarser points. Default: the shortest range that holds `since`,
    /// else `1h`.
    range: Option<String>,
    /// Milliseconds since 1970, or an RFC 3339 time. Default: the whole range.
    since: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

type Measure = fn(&Numbers) -> Option<f64>;

const METRICS: [(&str, Measure); 9] = [
    ("running", |numbers| Some(f64::from(numbers.running))),
    ("waiting", |numbers| Some(f64::from(numbers.waiting))),
    ("started", |numbers| Some(numbers.started as f64)),
    ("completed", |numbers| Some(numbers.completed as f64)),
    ("failed", |numbers| Some(numbers.failed as f64)),
    ("wait_p50", |numbers| numbers.wait.map(|[p50, ..]| p50 as f64)),
    ("wait_p95", |numbers| numbers.wait.map(|[_, p95, _]| p95 as f64)),
    ("wait_p99", |numbers| numbers.wait.map(|[.., p99]| p99 as f64)),
    ("refused", |numbers| Some(numbers.refused.values().sum::<u64>() as f64)),
];

/// Points for charts of the last day.
#[utoipa::path(
    get, path = "/api/history", tag = "lanes", params(ChartQuery),
    responses((status = 200, body = HistoryPoints))
)]
pub(crate) async fn history(State(app): Shared, Query(query): Query<ChartQuery>) -> ApiJson<HistoryPoints> {
    let wanted = query.metric.as_deref().unwrap_or("running");
    let found = METRICS.into_iter().find(|(name, _)| *name == wanted);
    let (metric, measure) = found.ok_or_else(|| {
        let names = METRICS.map(|(name, _)| name).join(", ");
        ApiError::invalid(format!("metric must be one of {names}"))
    })?;
    let lane = crate::service::parse::lane(query.lane.as_deref().unwrap_or("global"))?;
    let since = query.since.as_deref().map(moment).transpose()?;
    let range = match query.range.as_deref() {
        Some(word) => range_named(word)?,
        None => since.map_or(Range::Hour, |since| shortest_range(app.now().since(since).0)),
    };
    let mut points = app.charts.points(&lane, range);
    points.retain(|(at, _)| since.is_none_or(|since| *at >= since));
    let is_gauge = ["running", "waiting"].contains(&metric);
    let value = |numbers: &Option<Numbers>| match numbers {
        Some(numbers) => measure(numbers),
        // A lane that does not exist is empty, with unknown counters.
        None => is_gauge.then_some(0.0),
    };
    let by_code = if metric == "refused" { by_code(&points) } else { BTreeMap::new() };
    let points = points.iter().filter_map(|(at, numbers)| Some(point(*at, value(numbers)?))).collect();
    let (range, step_ms) = (range.as_str().to_owned(), range.step());
    Ok(Json(HistoryPoints {
        metric: metric.to_owned(),
        lane: lane.to_string(),
        range,
        step_ms,
        points,
        by_code,
    }))
}

fn point(at: Timestamp, value: f64) -> HistoryPoint {
    HistoryPoint { at: At(at), value }
}

/// The refusals of each code, at every point.
fn by_code(points: &[(Timestamp, Option<Numbers>)]) -> BTreeMap<String, Vec<HistoryPoint>> {
    let known = || points.iter().filter_map(|(at, numbers)| Some((*at, numbers.as_ref()?)));
    let mut codes: Vec<_> = known().flat_map(|(_, numbers)| numbers.refused.keys().copied()).collect();
    codes.sort_unstable();
    codes.dedup();
    let counted = |code| {
        let count = move |numbers: &Numbers| numbers.refused.get(&code).copied().unwrap_or(0) as f64;
        known().map(|(at, numbers)| point(at, count(numbers))).collect()
    };
    codes.into_iter().map(|code| (code.as_str().to_owned(), counted(code))).collect()
}

fn range_named(word: &str) -> ApiResult<Range> {
    let range = Range::ALL.into_iter().find(|range| range.as_str() == word);
    range.ok_or_else(|| ApiError::invalid("range must be 5m, 1h or 24h"))
}

/// The shortest range of at least this many milliseconds.
fn shortest_range(back: u64) -> Range {
    Range::ALL.into_iter().find(|range| range.length() >= back).unwrap_or(Range::Day)
}

fn moment(text: &str) -> ApiResult<Timestamp> {
    if let Ok(millis) = text.parse::<u64>() {
        return Ok(Timestamp(millis));
    }
    let parsed: Option<jiff::Timestamp> = text.parse().ok();
    let millis = parsed.and_then(|at| u64::try_from(at.as_millisecond()).ok());
    millis
        .map(Timestamp)
        .ok_or_else(|| ApiError::invalid("since must be an RFC 3339 time or milliseconds since 1970"))
}
