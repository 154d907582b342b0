//! Limits per token, so that one caller cannot starve the others.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use laneway_config::ServerConfig;
use laneway_core::{Bucket, Period, RateLimit, Timestamp};
use laneway_protocol::Code;

use crate::app::App;
use crate::http::error::{ApiError, ApiResult};

/// The usage of each token.
#[derive(Clone, Default)]
pub(crate) struct Callers(Arc<Mutex<HashMap<String, Usage>>>);

#[derive(Default)]
struct Usage {
    connections: u32,
    requests: Bucket,
    bytes: Bucket,
}

/// Takes an amount out of a bucket that fills with `max` in a minute. The error is the milliseconds to wait.
fn take(bucket: &mut Bucket, now: Timestamp, amount: u64, max: u32) -> Result<(), u64> {
    let rate = RateLimit { per: Period::Minute, max };
    let amount = u32::try_from(amount).unwrap_or(u32::MAX);
    bucket.take(now, rate, amount).map_err(|at| at.since(now).0.max(1))
}

/// A request, stream or socket in flight. It ends when its last clone is dropped.
#[derive(Clone)]
pub(crate) struct InFlight(Option<Arc<Counted>>);

/// One of the connections that a token has.
struct Counted {
    callers: Callers,
    token: String,
}

impl InFlight {
    /// A caller without a token has no limit of its own.
    pub(super) const WITHOUT_TOKEN: InFlight = InFlight(None);

    /// The id of the token.
    pub(crate) fn token(&self) -> Option<&str> {
        self.0.as_ref().map(|counted| counted.token.as_str())
    }
}

/// For a route whose connection outlives its answer: set if the request asks for an upgrade.
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
    /// Counts a request and its bytes, or refuses it.
    fn count(&mut self, bytes: u64, now: Timestamp, limits: &ServerConfig) -> ApiResult<()> {
        if let Some(max) = limits.token_requests_per_minute {
            let taken = take(&mut self.requests, now, 1, max);
            taken.map_err(|wait| limited(&format!("may send {max} requests a minute"), wait))?;
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

    /// Admits a request of a token, or refuses it.
    pub(super) fn admit(
        &self,
        token: &str,
        bytes: u64,
        now: Timestamp,
        limits: &ServerConfig,
    ) -> ApiResult<InFlight> {
        let mut callers = self.lock();
        let usage = callers.entry(token.to_owned()).or_default();
        if let Some(max) = limits.token_connections
            && usage.connections >= max
        {
            return Err(limited(&format!("may have {max} requests at once"), 1000));
        }
        usage.count(bytes, now, limits)?;
        usage.connections += 1;
        Ok(InFlight(Some(Arc::new(Counted { callers: self.clone(), token: token.to_owned() }))))
    }

    /// Counts a request on a connection that counts already.
    pub(crate) fn count(
        &self,
        token: &str,
        bytes: u64,
        now: Timestamp,
        limits: &ServerConfig,
    ) -> ApiResult<()> {
        self.lock().entry(token.to_owned()).or_default().count(bytes, now, limits)
    }
}

impl Drop for Counted {
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
