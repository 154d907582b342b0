//! Checks single values of a request and converts them to the core's types.

use laneway_core::{LaneName, LaneSettings, Millis, Name, NameError, Retry, RetryStrategy, Source};
use laneway_protocol::{PriorityRequest, RetryRequest, source_from};

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// The prefix of the lanes that bound the waiting tasks of each token.
pub(crate) const TOKEN_LANE: &str = "token:";

pub(crate) fn lane(name: impl AsRef<str>) -> ApiResult<LaneName> {
    checked(LaneName::new(name))
}

/// A lane, or lanes, if all names were valid.
pub(crate) fn checked<T>(lanes: Result<T, NameError>) -> ApiResult<T> {
    lanes.map_err(|error| ApiError::invalid(format!("lane: {error}")))
}

/// A lane that a caller may name: any but those of tokens.
pub(super) fn task_lane(name: impl AsRef<str>) -> ApiResult<LaneName> {
    let lane = lane(name)?;
    if lane.as_str().starts_with(TOKEN_LANE) {
        return Err(ApiError::invalid(format!(
            "lanes that begin with {TOKEN_LANE} are the server's own; name another lane"
        )));
    }
    Ok(lane)
}

pub(crate) fn session_lane(key: &str) -> ApiResult<LaneName> {
    LaneName::session(key).map_err(|error| ApiError::invalid(format!("session: {error}")))
}

pub(crate) fn name(what: &str, text: String) -> ApiResult<Name> {
    Name::new(text).map_err(|error| ApiError::invalid(format!("{what}: {error}")))
}

pub(crate) fn kind(text: String) -> ApiResult<Name> {
    name("kind", text)
}

/// The number of a priority. The name of a source stands for the priority of that source.
pub(crate) async fn level(app: &App, request: Option<&PriorityRequest>) -> ApiResult<Option<u8>> {
    let Some(request) = request else { return Ok(None) };
    let bad = "priority must be 0 to 9, or one of user, schedule, agent, background";
    let Some(word) = request.word() else {
        return request.level().map(Some).ok_or_else(|| ApiError::invalid(bad));
    };
    let source = source_from(word).ok_or_else(|| ApiError::invalid(bad))?;
    Ok(Some(app.handle.read(move |lanes| lanes.source_priority(source)).await?))
}

pub(super) fn source(word: &str) -> ApiResult<Source> {
    let expected = "source must be one of user, schedule, agent, background";
    source_from(word).ok_or_else(|| ApiError::invalid(expected))
}

pub(super) fn millis(length: Option<u64>) -> Option<Millis> {
    length.map(Millis)
}

pub(super) fn retry(request: RetryRequest) -> ApiResult<Retry> {
    let default = Retry::STANDARD;
    let strategy = match request.strategy.as_deref() {
        None | Some("exponential") => RetryStrategy::Exponential,
        Some("fixed") => RetryStrategy::Fixed,
        Some("none") => return Ok(Retry::NONE),
        Some(_) => return Err(ApiError::invalid("retry.strategy must be one of none, fixed, exponential")),
    };
    let retry = Retry {
        strategy,
        max_retries: request.max_retries.unwrap_or(default.max_retries),
        initial_delay: millis(request.initial_delay_ms).unwrap_or(default.initial_delay),
        fixed_delay: millis(request.fixed_delay_ms).unwrap_or(default.fixed_delay),
        max_delay: millis(request.max_delay_ms).unwrap_or(default.max_delay),
        jitter: request.jitter.unwrap_or(default.jitter),
    };
    let settings = LaneSettings { retry: Some(retry), ..Default::default() };
    settings.check().map_err(|error| ApiError::invalid(error.to_string()))?;
    Ok(retry)
}
