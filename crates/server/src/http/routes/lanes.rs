//! Lanes: look at them, set them, pause, resume, drain, clear.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use laneway_core::{Histogram, LaneName, LaneStats, LaneView, Pattern, Settings};
use laneway_protocol::{CancelManyAnswer, LaneCounters, LaneNumbers, Page, Percentiles};
use serde_json::{Value, json};

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::events::encode::alert_word;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, Path, Query};
use crate::http::routes::tasks::{PageQuery, page_size};
use crate::service::parse;

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

fn percentiles(histogram: &Histogram) -> Percentiles {
    let at = |percent| histogram.percentile(percent).map(|length| length.0);
    Percentiles { count: histogram.samples(), p50_ms: at(50), p90_ms: at(90), p99_ms: at(99) }
}

/// Every setting by name, as `PATCH` takes them.
fn settings(settings: &Settings) -> BTreeMap<String, Value> {
    let texts = laneway_config::setting_texts(settings).into_iter();
    texts.map(|(key, text)| (key.to_owned(), plain(text))).collect()
}

/// A number as a number, a truth as a truth, durations and words as text.
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
        lane: view.name.to_string(),
        label: view.label.to_owned(),
        running: view.running,
        waiting: view.waiting,
        retrying: view.retrying,
        max_concurrency: view.settings.max_concurrency,
        max_queued: view.settings.max_queued,
        paused: view.gate.paused,
        draining: view.gate.draining,
        alert: view.alert.map(|level| alert_word(level).to_owned()),
        settings: settings(view.settings),
        counters: counters(view.stats),
        wait: percentiles(&view.stats.wait),
        run: percentiles(&view.stats.run),
    }
}

/// A lane that does not exist now, as it would be.
fn empty(lanes: &laneway_core::Scheduler, name: &LaneName) -> LaneNumbers {
    let settled = lanes.settings_for(name);
    let stats = lanes.stats().find(|(label, _)| *label == name.as_str()).map(|(_, stats)| stats.clone());
    let stats = stats.unwrap_or_default();
    LaneNumbers {
        lane: name.to_string(),
        label: name.to_string(),
        running: 0,
        waiting: 0,
        retrying: 0,
        max_concurrency: settled.max_concurrency,
        max_queued: settled.max_queued,
        paused: false,
        draining: false,
        alert: None,
        settings: settings(&settled),
        counters: counters(&stats),
        wait: percentiles(&stats.wait),
        run: percentiles(&stats.run),
    }
}

/// The lanes in which something is or of which something is to be remembered, and those that are configured, by name.
#[utoipa::path(
    get, path = "/api/lanes", tag = "lanes", params(PageQuery),
    responses((status = 200, body = Page<LaneNumbers>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Json<Page<LaneNumbers>>> {
    let max = page_size(query.limit)?;
    let after = query.cursor;
    let config = app.config();
    let declared: Vec<LaneName> = config
        .lanes
        .iter()
        .filter(|lane| lane.lanes.is_exact())
        .filter_map(|lane| LaneName::new(lane.lanes.as_str()).ok())
        .collect();
    let look = move |lanes: &laneway_core::Scheduler| {
        let is_after = |name: &str| after.as_deref().is_none_or(|after| name > after);
        let mut found: BTreeMap<String, LaneNumbers> = BTreeMap::new();
        for view in lanes.lanes().iter().filter(|view| is_after(view.name.as_str())).take(max + 1) {
            found.insert(view.name.to_string(), numbers(view));
        }
        for name in declared.iter().filter(|name| is_after(name.as_str())) {
            if !found.contains_key(name.as_str()) && lanes.lane(name).is_none() {
                found.insert(name.to_string(), empty(lanes, name));
            }
        }
        found
    };
    let mut items: Vec<LaneNumbers> = app.handle.read(look).await?.into_values().collect();
    let more = items.len() > max;
    items.truncate(max);
    let next_cursor = items.last().filter(|_| more).map(|lane| lane.lane.clone());
    Ok(Json(Page { items, next_cursor }))
}

/// A lane, whether it exists now or not.
#[utoipa::path(
    get, path = "/api/lanes/{lane}", tag = "lanes", params(("lane" = String, Path)),
    responses((status = 200, body = LaneNumbers))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> ApiResult<Json<LaneNumbers>> {
    let name = LaneName::new(name).map_err(|_| ApiError::not_found("lane"))?;
    let look = move |lanes: &laneway_core::Scheduler| match lanes.lane(&name) {
        Some(view) => numbers(&view),
        None => empty(lanes, &name),
    };
    Ok(Json(app.handle.read(look).await?))
}

/// Changes settings of a lane or of a pattern of lanes. What is left out stays.
#[utoipa::path(
    patch, path = "/api/lanes/{lane}", tag = "lanes", params(("lane" = String, Path)),
    request_body = std::collections::HashMap<String, Value>,
    responses((status = 200, body = LaneNumbers))
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    Body(changes): Body<BTreeMap<String, Value>>,
) -> ApiResult<Json<LaneNumbers>> {
    if changes.is_empty() {
        return Err(ApiError::invalid("say what to change, by the names of settings"));
    }
    let pattern = Pattern::new(&name).map_err(|error| ApiError::invalid(format!("lane: {error}")))?;
    let key_of = |key: &str| Arc::from(key.strip_suffix("_ms").unwrap_or(key));
    let settings = flatten(&changes)?.into_iter().map(|(key, value)| (key_of(&key), value.into())).collect();
    app.handle.change_settings(pattern.clone(), settings).await?;
    app.overrides.add(pattern.clone());
    let keys: Vec<&String> = changes.keys().collect();
    app.record(&caller, AuditRecord::new("lane", "configure", pattern.as_str(), json!({ "settings": keys })))
        .await?;
    match LaneName::new(name.replace('*', "x")) {
        Ok(sample) if !pattern.is_exact() => {
            let look = move |lanes: &laneway_core::Scheduler| {
                let mut numbers = empty(lanes, &sample);
                (numbers.lane, numbers.label) = (pattern.to_string(), pattern.to_string());
                numbers
            };
            Ok(Json(app.handle.read(look).await?))
        }
        _ => get(State(app), Path(name)).await,
    }
}

/// `{"retry": {"max_retries": 2}}` is `retry.max_retries`.
fn flatten(changes: &BTreeMap<String, Value>) -> ApiResult<Vec<(String, String)>> {
    let mut flat = Vec::new();
    for (key, value) in changes {
        match value {
            Value::Object(inner) => {
                for (part, value) in inner {
                    flat.push((format!("{key}.{part}"), text(value)?));
                }
            }
            value => flat.push((key.clone(), text(value)?)),
        }
    }
    Ok(flat)
}

fn text(value: &Value) -> ApiResult<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(ApiError::invalid("a setting is a text, a number or a truth")),
    }
}

/// Which patterns were set over the API here since the configuration was read.
#[derive(Default)]
pub(crate) struct Overrides(std::sync::Mutex<BTreeSet<Pattern>>);

impl Overrides {
    fn add(&self, pattern: Pattern) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(pattern);
    }

    /// The patterns that were set over the API.
    pub(crate) fn patterns(&self) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.iter().map(|pattern| pattern.to_string()).collect()
    }

    /// A new configuration takes their place.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
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
            State(app): State<Arc<App>>,
            caller: Caller,
            Path(name): Path<String>,
        ) -> ApiResult<Json<LaneNumbers>> {
            let lane = parse::lane(&name)?;
            app.handle.$name(lane.clone()).await?;
            app.record(&caller, AuditRecord::new("lane", stringify!($name), lane.as_str(), json!({}))).await?;
            get(State(app), Path(name)).await
        }
    };
}

gate!(
    /// Grants nothing in a lane until it is resumed.
    pause, "/api/lanes/{lane}/pause"
);
gate!(
    /// Ends a pause and a drain.
    resume, "/api/lanes/{lane}/resume"
);
gate!(
    /// Refuses new work in a lane; what was accepted still runs.
    drain, "/api/lanes/{lane}/drain"
);

/// Empties the line of a lane, touching nothing that runs.
#[utoipa::path(
    post, path = "/api/lanes/{lane}/clear", tag = "lanes", params(("lane" = String, Path)),
    responses((status = 200, body = CancelManyAnswer))
)]
pub(crate) async fn clear(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<Json<CancelManyAnswer>> {
    let lane = parse::lane(&name)?;
    let cancelled = app.handle.clear(lane.clone()).await? as u64;
    app.record(&caller, AuditRecord::new("lane", "clear", lane.as_str(), json!({ "cancelled": cancelled })))
        .await?;
    Ok(Json(CancelManyAnswer { cancelled }))
}
