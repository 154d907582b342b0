//! Lanes: list, change, pause, resume, drain, clear.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use laneway_core::{Histogram, LaneName, LaneStats, LaneView, Pattern, Scheduler, Settings};
use laneway_protocol::{CancelManyAnswer, LaneCounters, LaneNumbers, Page, Percentiles, ReleasedLane};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::app::Shared;
use crate::events::encode::alert_word;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson};
use crate::http::extract::{Body, Path, Query};
use crate::http::paging::page_size;
use crate::service::{agent_queue, change_lanes, parse};

fn counters(stats: &LaneStats) -> LaneCounters {
    LaneCounters {
        accepted: stats.accepted,
        started: stats.started,
        retried: stats.retried,
        completed: stats.completed,
        failed: stats.failed,
        cancelled: stats.cancelled,
        timed_out_waiting: stats.timed_out_waiting,
        lost: stats.lost,
    }
}

pub(crate) fn percentiles(histogram: &Histogram) -> Percentiles {
    let at = |percent| histogram.percentile(percent).map(|length| length.0);
    Percentiles { count: histogram.samples(), p50_ms: at(50), p90_ms: at(90), p95_ms: at(95), p99_ms: at(99) }
}

/// Every setting by name, in the form that `PATCH` takes.
fn settings(settings: &Settings) -> BTreeMap<String, Value> {
    let texts = laneway_config::setting_texts(settings).into_iter();
    texts.map(|(key, text)| (key.to_owned(), plain(text))).collect()
}

/// Numbers and booleans as such, durations and words as text.
fn plain(text: String) -> Value {
    match text.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) => match text.as_str() {
            "true" => true.into(),
            "false" => false.into(),
            _ => text.into(),
        },
    }
}

fn numbers(view: &LaneView<'_>) -> LaneNumbers {
    LaneNumbers {
        label: view.label.to_owned(),
        running: view.running,
        waiting: view.waiting,
        retrying: view.retrying,
        paused: view.gate.paused,
        draining: view.gate.draining,
        alert: view.alert.map(|level| alert_word(level).to_owned()),
        ..idle(view.name.to_string(), view.settings, view.stats)
    }
}

/// A lane in which nothing runs or waits.
fn idle(lane: String, settings: &Settings, stats: &LaneStats) -> LaneNumbers {
    LaneNumbers {
        label: lane.clone(),
        lane,
        running: 0,
        waiting: 0,
        retrying: 0,
        max_concurrency: settings.max_concurrency,
        max_queued: settings.max_queued,
        paused: false,
        draining: false,
        alert: None,
        settings: self::settings(settings),
        counters: counters(stats),
        wait: percentiles(&stats.wait),
        run: percentiles(&stats.run),
    }
}

/// A lane that does not exist, as it would be.
fn absent(lanes: &Scheduler, name: &LaneName) -> LaneNumbers {
    let nothing = LaneStats::default();
    idle(name.to_string(), &lanes.settings_for(name), lanes.stats_for(name).unwrap_or(&nothing))
}

/// The patterns under which lanes were used, each with the sums of its lanes.
fn patterns(lanes: &Scheduler, is_counted: impl Fn(&str) -> bool) -> BTreeMap<String, LaneNumbers> {
    let mut seen: BTreeMap<&str, (Settings, LaneStats)> = BTreeMap::new();
    for (pattern, settings, stats) in lanes.used_patterns().filter(|(pattern, ..)| is_counted(pattern)) {
        let (_, sum) = seen.entry(pattern).or_insert_with(|| (settings.clone(), LaneStats::default()));
        sum.add(stats);
    }
    let sum = |(pattern, (settings, stats)): (&str, (Settings, LaneStats))| {
        (pattern.to_owned(), idle(pattern.to_owned(), &settings, &stats))
    };
    let mut found: BTreeMap<String, LaneNumbers> = seen.into_iter().map(sum).collect();
    for view in lanes.lanes() {
        if let Some(numbers) = found.get_mut(view.label) {
            numbers.running += view.running;
            numbers.waiting += view.waiting;
            numbers.retrying += view.retrying;
        }
    }
    found
}

/// Which lanes to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct LanesQuery {
    /// Whether the list also has the patterns under which lanes were used, such as `session:*/query`, with the sums of their
    /// lanes. `enable_metrics = false` then leaves out the tool lanes.
    patterns: bool,
    /// The largest number of items on the page. Default 50, at most 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    #[param(ignore)]
    #[serde(rename = "access_token")]
    _access_token: Option<String>,
}

/// All lanes that have tasks, a memory or settings, by name.
#[utoipa::path(
    get, path = "/api/lanes", tag = "lanes", params(LanesQuery),
    responses((status = 200, body = Page<LaneNumbers>))
)]
pub(crate) async fn list(State(app): Shared, Query(query): Query<LanesQuery>) -> ApiJson<Page<LaneNumbers>> {
    let max = page_size(query.limit)?;
    let (after, with_patterns, tool_calls) = (query.cursor, query.patterns, app.handle.tool_calls());
    let config = app.config();
    let declared: Vec<LaneName> = config
        .lanes
        .iter()
        .filter(|lane| lane.lanes.is_exact())
        .filter_map(|lane| LaneName::new(lane.lanes.as_str()).ok())
        .collect();
    let look = move |lanes: &Scheduler| {
        let is_after = |name: &str| after.as_deref().is_none_or(|after| name > after);
        let mut found: BTreeMap<String, LaneNumbers> = BTreeMap::new();
        let is_listed = |view: &&LaneView<'_>| {
            is_after(view.name.as_str()) && (!with_patterns || tool_calls.counts(view.label))
        };
        for view in lanes.lanes().iter().filter(is_listed).take(max + 1) {
            found.insert(view.name.to_string(), numbers(view));
        }
        for name in declared.iter().filter(|name| is_after(name.as_str())) {
            if !found.contains_key(name.as_str()) && lanes.lane(name).is_none() {
                found.insert(name.to_string(), absent(lanes, name));
            }
        }
        if with_patterns {
            let patterns = patterns(lanes, |label| tool_calls.counts(label)).into_iter();
            found.extend(patterns.filter(|(name, _)| is_after(name)));
        }
        found
    };
    let mut items: Vec<LaneNumbers> = app.handle.read(look).await?.into_values().collect();
    let more = items.len() > max;
    items.truncate(max);
    let next_cursor = items.last().filter(|_| more).map(|lane| lane.lane.clone());
    Ok(Json(Page { items, next_cursor }))
}

/// A lane. A lane without tasks is answered as well.
#[utoipa::path(
    get, path = "/api/lanes/{lane}", tag = "lanes", params(("lane" = String, Path)),
    responses((status = 200, body = LaneNumbers))
)]
pub(crate) async fn get(State(app): Shared, Path(name): Path<String>) -> ApiJson<LaneNumbers> {
    let name = LaneName::new(name).map_err(|_| ApiError::not_found("lane"))?;
    let look = move |lanes: &Scheduler| match lanes.lane(&name) {
        Some(view) => numbers(&view),
        None => absent(lanes, &name),
    };
    Ok(Json(app.handle.read(look).await?))
}

/// Changes settings of a lane or of a pattern of lanes. Settings that the body leaves out stay.
///
/// A changed setting holds over the configuration file, at all replicas and after restarts, until the file changes the same
/// setting. `null` withdraws a change.
#[utoipa::path(
    patch, path = "/api/lanes/{lane}", tag = "lanes", params(("lane" = String, Path)),
    request_body = std::collections::HashMap<String, Value>,
    responses((status = 200, body = LaneNumbers))
)]
pub(crate) async fn change(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
    Body(changes): Body<BTreeMap<String, Value>>,
) -> ApiJson<LaneNumbers> {
    let pattern = Pattern::new(&name).map_err(|error| ApiError::invalid(format!("lane: {error}")))?;
    change_lanes::change(&app, &caller, &pattern, &changes).await?;
    match LaneName::new(name.replace('*', "x")) {
        Ok(sample) if !pattern.is_exact() => {
            let look = move |lanes: &Scheduler| {
                let mut numbers = absent(lanes, &sample);
                (numbers.lane, numbers.label) = (pattern.to_string(), pattern.to_string());
                numbers
            };
            Ok(Json(app.handle.read(look).await?))
        }
        _ => get(State(app), Path(name)).await,
    }
}

macro_rules! gate {
    ($(#[$doc:meta])* $name:ident, $path:literal) => {
        $(#[$doc])*
        #[utoipa::path(
            post, path = $path, tag = "lanes", params(("lane" = String, Path)),
            responses((status = 200, body = LaneNumbers))
        )]
        pub(crate) async fn $name(
            State(app): Shared,
            caller: Caller,
            Path(name): Path<String>,
        ) -> ApiJson<LaneNumbers> {
            let lane = parse::lane(&name)?;
            app.handle.$name(lane.clone()).await?;
            app.record(&caller, ("lane", stringify!($name)), lane.as_str(), json!({})).await?;
            get(State(app), Path(name)).await
        }
    };
}

gate!(
    /// Starts no task in a lane until it is resumed.
    pause, "/api/lanes/{lane}/pause"
);
gate!(
    /// Ends a pause and a drain.
    resume, "/api/lanes/{lane}/resume"
);
gate!(
    /// Refuses new tasks in a lane. Accepted tasks still run.
    drain, "/api/lanes/{lane}/drain"
);

/// Takes the slots of the running tasks of a lane at once.
#[utoipa::path(
    post, path = "/api/lanes/{lane}/release", tag = "lanes", params(("lane" = String, Path)),
    responses((status = 200, body = ReleasedLane))
)]
pub(crate) async fn release(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiJson<ReleasedLane> {
    Ok(Json(agent_queue::release_lane(&app, &caller, parse::lane(&name)?).await?))
}

/// Cancels the tasks that wait in a lane. Running tasks continue.
#[utoipa::path(
    post, path = "/api/lanes/{lane}/clear", tag = "lanes", params(("lane" = String, Path)),
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn clear(
    State(app): Shared,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiJson<CancelManyAnswer> {
    let lane = parse::lane(&name)?;
    let cancelled = app.handle.clear(lane.clone()).await? as u64;
    app.record(&caller, ("lane", "clear"), lane.as_str(), json!({ "cancelled": cancelled })).await?;
    Ok(Json(CancelManyAnswer { cancelled }))
}
