//! Limits per token, so that one caller cannot starve the others.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use laneway_config::ServerConfig;
use laneway_core::{Bucket, Period, RateLimit, Timestamp};
use laneway_protocol::Code;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// What a request may be like, as the configuration that holds says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) body_bytes_max: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) header_timeout: Duration,
    pub(crate) connections_max: usize,
    pub(crate) ready_when_full: bool,
    pub(crate) drain_grace: Duration,
    pub(crate) mcp_answer_within: Duration,
    pub(crate) token_requests_per_minute: Option<u32>,
    pub(crate) token_bytes_per_minute: Option<u32>,
    pub(crate) token_connections: Option<u32>,
    pub(crate) token_waiting: Option<u32>,
}

impl Limits {
    pub(crate) fn of(server: &ServerConfig) -> Limits {
        Limits {
            body_bytes_max: server.body_bytes_max as usize,
            body_timeout: Duration::from_millis(server.body_timeout.0),
            header_timeout: Duration::from_millis(server.header_timeout.0),
            connections_max: server.connections_max as usize,
            ready_when_full: server.ready_when_full,
            drain_grace: Duration::from_millis(server.drain_grace.0),
            mcp_answer_within: Duration::from_millis(server.mcp_answer_within.0),
            token_requests_per_minute: server.token_requests_per_minute,
            token_bytes_per_minute: server.token_bytes_per_minute,
            token_connections: server.token_connections,
            token_waiting: server.token_waiting,
        }
    }
}

/// What each token uses now.
#[derive(Clone, Default)]
pub(crate) struct Callers(Arc<Mutex<HashMap<String, Usage>>>);

#[derive(Default)]
struct Usage {
    connections: u32,
    requests: Bucket,
    bytes: Bucket,
}

/// Takes so much out of a bucket that holds `max` and fills in a minute; else how many milliseconds to wait.
fn take(bucket: &mut Bucket, now: Timestamp, amount: u64, max: u32) -> Result<(), u64> {
    let rate = RateLimit { per: Period::Minute, max };
    let amount = u32::try_from(amount).unwrap_or(u32::MAX);
    bucket.take(now, rate, amount).map_err(|at| at.since(now).0.max(1))
}

/// One request, stream or socket that is under way. Dropping the last of its clones makes room for another.
#[derive(Clone)]
pub(crate) struct InFlight(Option<Arc<Place>>);

/// A place among those that a token may have at once.
struct Place {
    callers: Callers,
    token: String,
}

impl InFlight {
    /// Who has no token has as many places as there are connections.
    pub(crate) const WITHOUT_TOKEN: InFlight = InFlight(None);

    /// The id of the token that it counts for.
    pub(crate) fn token(&self) -> Option<&str> {
        self.0.as_ref().map(|place| place.token.as_str())
    }
}

/// For a route whose connection outlives its answer: there if the request asks for another protocol.
impl FromRequestParts<Arc<App>> for InFlight {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<InFlight, Infallible> {
        Ok(parts.extensions.remove::<InFlight>().unwrap_or(InFlight::WITHOUT_TOKEN))
    }
}

fn limited(what: &str, wait: u64) -> ApiError {
    let refusal = ApiError::new(Code::RateLimited, format!("this token {what}"));
    refusal.retry_after_ms(wait)
}

impl Usage {
    /// Counts something that is asked, with its bytes, or says when to come back.
    fn count(&mut self, bytes: u64, now: Timestamp, limits: &Limits) -> ApiResult<()> {
        if let Some(max) = limits.token_requests_per_minute {
            let taken = take(&mut self.requests, now, 1, max);
            taken.map_err(|wait| limited(&format!("may ask {max} times a minute"), wait))?;
        }
        if let Some(max) = limits.token_bytes_per_minute {
            let taken = take(&mut self.bytes, now, bytes, max);
            taken.map_err(|wait| limited(&format!("may send {max} bytes a minute"), wait))?;
        }
        Ok(())
    }
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request of a token in, or says when to come back.
    pub(crate) fn admit(
        &self,
        token: &str,
        bytes: u64,
        now: Timestamp,
        limits: &Limits,
    ) -> ApiResult<InFlight> {
        let mut callers = self.lock();
        let usage = callers.entry(token.to_owned()).or_default();
        if let Some(max) = limits.token_connections
            && usage.connections >= max
        {
            return Err(limited(&format!("has {max} requests under way, and may not have more"), 1000));
        }
        usage.count(bytes, now, limits)?;
        usage.connections += 1;
        Ok(InFlight(Some(Arc::new(Place { callers: self.clone(), token: token.to_owned() }))))
    }

    /// The same for what is asked over a connection that counts already.
    pub(crate) fn count(&self, token: &str, bytes: u64, now: Timestamp, limits: &Limits) -> ApiResult<()> {
        self.lock().entry(token.to_owned()).or_default().count(bytes, now, limits)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(usage) = self.callers.lock().get_mut(&self.token) {
            usage.connections = usage.connections.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_says_exactly_when_to_come_back() {
        let mut bucket = Bucket::default();
        for _ in 0..60 {
            assert_eq!(take(&mut bucket, Timestamp(0), 1, 60), Ok(()));
        }
        assert_eq!(take(&mut bucket, Timestamp(0), 1, 60), Err(1000));
        assert_eq!(take(&mut bucket, Timestamp(999), 1, 60), Err(1));
        assert_eq!(take(&mut bucket, Timestamp(1000), 1, 60), Ok(()));
        assert!(take(&mut bucket, Timestamp(1000), 1000, 60).is_err());
        assert_eq!(take(&mut bucket, Timestamp(10_000_000), 1000, 60), Ok(()));
    }
}
