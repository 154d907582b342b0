//! Status, health, readiness, configuration.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use laneway_config::ValueSource;
use laneway_core::LaneName;
use laneway_protocol::{ConfigValue, ConfigView, Health, Readiness, StatusView};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::{App, Shared};
use crate::http::error::{ApiJson, ApiResult};
use crate::http::extract::Query;
use crate::service::parse;

/// A lane: running tasks, waiting tasks, and the limit.
async fn numbers(app: &App, lane: LaneName) -> ApiResult<(u32, u32, Option<u32>)> {
    let look = move |lanes: &laneway_core::Scheduler| match lanes.lane(&lane) {
        Some(lane) => (lane.running, lane.waiting + lane.retrying, lane.settings.max_concurrency),
        None => (0, 0, lanes.settings_for(&lane).max_concurrency),
    };
    Ok(app.handle.read(look).await?)
}

async fn global_lane(app: &App) -> ApiResult<(u32, u32, Option<u32>)> {
    numbers(app, LaneName::global()).await
}

impl App {
    /// Whether the server takes work, in one word: `ready` if it does.
    pub(crate) async fn readiness(&self) -> &'static str {
        if self.draining.is_given() {
            return "draining";
        }
        match global_lane(self).await {
            Ok((running, _, Some(limit)))
                if running >= limit && !self.config.load().server.ready_when_full =>
            {
                "full"
            }
            Ok(_) => "ready",
            Err(_) => "store_unavailable",
        }
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// The lane of the numbers and the line. Default: `global`, which all tasks need.
    lane: Option<String>,
}

/// The state of the server or of one lane, in numbers and in one line.
#[utoipa::path(
    get, path = "/api/status", tag = "lanes", params(StatusQuery), responses((status = 200, body = StatusView))
)]
pub(crate) async fn status(State(app): Shared, Query(query): Query<StatusQuery>) -> ApiJson<StatusView> {
    let lane = query.lane.map(parse::lane).transpose()?.unwrap_or_else(LaneName::global);
    let (running, waiting, max_concurrent) = numbers(&app, lane).await?;
    let dead_letters = app.handle.read(|lanes| lanes.dead_letters().count() as u64).await?;
    let limit = max_concurrent.map_or("∞".to_owned(), |limit| limit.to_string());
    let line = match waiting {
        0 => format!("Agent: {running}/{limit}"),
        _ => format!("Agent: {running}/{limit} ({waiting} queued)"),
    };
    Ok(Json(StatusView {
        running,
        waiting,
        max_concurrent,
        line,
        dead_letters,
        store_warning: app.store_warning(),
    }))
}

/// How long a health check waits for the state. Most checks time out after a second.
const STATE_WITHIN: Duration = Duration::from_millis(500);

/// Whether the server is alive. A full server is alive.
#[utoipa::path(get, path = "/healthz", tag = "around", responses((status = 200, body = Health)))]
pub(crate) async fn health(State(app): Shared) -> ApiJson<Health> {
    // The server is healthy without its store, because the store may come back.
    let looked = tokio::time::timeout(STATE_WITHIN, global_lane(&app)).await;
    let (running, waiting, limit) = looked.ok().and_then(Result::ok).unwrap_or((0, 0, None));
    Ok(Json(Health { status: "ok".to_owned(), running, waiting, limit }))
}

/// Whether the server takes work.
#[utoipa::path(
    get, path = "/readyz", tag = "around",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness))
)]
pub(crate) async fn readiness(State(app): Shared) -> Response {
    let status = app.readiness().await;
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Readiness { status: status.to_owned(), store_warning: app.store_warning() })).into_response()
}

/// Every value in force, and its origin.
#[utoipa::path(get, path = "/api/config", tag = "operations", responses((status = 200, body = ConfigView)))]
pub(crate) async fn config(State(app): Shared) -> ApiJson<ConfigView> {
    let differences = app.differences().await?;
    let values = app.config().effective().0.into_iter().map(|value| {
        let differs = differences.iter().find(|found| found.block == value.block && found.key == value.key);
        if let Some(found) = differs {
            // Another replica has set the value that is in force.
            let source = format!("replica ({} says {})", value.source, found.file);
            let holds = found.holds.clone();
            return ConfigValue {
                source,
                block: value.block,
                key: value.key,
                value: holds,
                configured: None,
            };
        }
        let configured = match &value.source {
            ValueSource::Api { configured } => Some(configured.to_string()),
            _ => None,
        };
        ConfigValue {
            configured,
            source: value.source.to_string(),
            block: value.block,
            key: value.key,
            value: value.value,
        }
    });
    Ok(Json(ConfigView { values: values.collect() }))
}
