//! How everything stands: status, health, readiness, configuration.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use laneway_core::LaneName;
use laneway_protocol::{ConfigValue, ConfigView, Health, Readiness, StatusView};

use crate::app::App;
use crate::http::error::ApiResult;

/// The lane of everything: how many run, how many wait, how many may run.
async fn everything(app: &App) -> ApiResult<(u32, u32, Option<u32>)> {
    let look = |lanes: &laneway_core::Scheduler| {
        let global = LaneName::global();
        match lanes.lane(&global) {
            Some(lane) => (lane.running, lane.waiting + lane.retrying, lane.settings.max_concurrency),
            None => (0, 0, lanes.settings_for(&global).max_concurrency),
        }
    };
    Ok(app.handle.read(look).await?)
}

/// How everything stands, in numbers and in one line.
#[utoipa::path(get, path = "/api/status", tag = "lanes", responses((status = 200, body = StatusView)))]
pub(crate) async fn status(State(app): State<Arc<App>>) -> ApiResult<Json<StatusView>> {
    let (running, waiting, max_concurrent) = everything(&app).await?;
    let dead_letters = app.handle.read(|lanes| lanes.dead_letters().count() as u64).await?;
    let limit = max_concurrent.map_or("∞".to_owned(), |limit| limit.to_string());
    let line = match waiting {
        0 => format!("Agent: {running}/{limit}"),
        _ => format!("Agent: {running}/{limit} ({waiting} queued)"),
    };
    Ok(Json(StatusView { running, waiting, max_concurrent, line, dead_letters }))
}

/// How long a health check waits for the state: most checks time out after a second.
const LOOK_WITHIN: Duration = Duration::from_millis(500);

/// Whether the server is alive. A full server is.
#[utoipa::path(get, path = "/healthz", tag = "around", responses((status = 200, body = Health)))]
pub(crate) async fn health(State(app): State<Arc<App>>) -> ApiResult<Json<Health>> {
    // A store that is away, or does not answer, does not make the server sick: it will come back by itself.
    let looked = tokio::time::timeout(LOOK_WITHIN, everything(&app)).await;
    let (running, waiting, limit) = looked.ok().and_then(Result::ok).unwrap_or((0, 0, None));
    Ok(Json(Health { status: "ok".to_owned(), running, waiting, limit }))
}

/// Whether the server takes work.
#[utoipa::path(
    get, path = "/readyz", tag = "around",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness))
)]
pub(crate) async fn readiness(State(app): State<Arc<App>>) -> Response {
    let status = if app.draining.is_given() {
        "draining"
    } else {
        match everything(&app).await {
            Ok((running, _, Some(limit))) if running >= limit && !app.limits().ready_when_full => "full",
            Ok(_) => "ready",
            Err(_) => "store_unavailable",
        }
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Readiness { status: status.to_owned() })).into_response()
}

/// Every value that holds, and where it comes from.
#[utoipa::path(get, path = "/api/config", tag = "operations", responses((status = 200, body = ConfigView)))]
pub(crate) async fn config(State(app): State<Arc<App>>) -> ApiResult<Json<ConfigView>> {
    let changed = app.overrides.patterns();
    let differences = app.differences().await?;
    let values = app.config().effective().0.into_iter().map(|value| {
        let lane = value.block.strip_prefix("lane \"").and_then(|rest| rest.strip_suffix('"'));
        let is_changed = lane.is_some_and(|lane| changed.iter().any(|pattern| pattern == lane));
        let differs = differences.iter().find(|found| found.block == value.block && found.key == value.key);
        if let (Some(found), false) = (differs, is_changed) {
            // Another server has said so, and that is what all of them keep to.
            let source = format!("replica ({} says {})", value.source, found.file);
            return ConfigValue { source, block: value.block, key: value.key, value: found.holds.clone() };
        }
        ConfigValue {
            source: if is_changed { "api".to_owned() } else { value.source.to_string() },
            block: value.block,
            key: value.key,
            value: value.value,
        }
    });
    Ok(Json(ConfigView { values: values.collect() }))
}
