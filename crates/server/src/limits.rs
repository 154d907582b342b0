//! Bounds on callers, so that one cannot starve the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_config::Server;
use laneway_core::Timestamp;
use laneway_protocol::Code;

use crate::problem::{Answer, Refusal};

/// What a request may be like.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) body_bytes_max: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) header_timeout: Duration,
    pub(crate) connections_max: usize,
    pub(crate) ready_when_full: bool,
    pub(crate) drain_grace: Duration,
    pub(crate) mcp_answer_within: Duration,
    pub(crate) token_requests_per_minute: Option<u32>,
    pub(crate) token_bytes_per_minute: Option<u64>,
    pub(crate) token_connections: Option<u32>,
    pub(crate) token_waiting: Option<u32>,
}

impl Limits {
    pub(crate) fn of(server: &Server) -> Limits {
        Limits {
            body_bytes_max: server.body_bytes_max as usize,
            body_timeout: Duration::from_millis(server.body_timeout.0),
            header_timeout: Duration::from_millis(server.header_timeout.0),
            connections_max: server.connections_max as usize,
            ready_when_full: server.ready_when_full,
            drain_grace: Duration::from_millis(server.drain_grace.0),
            mcp_answer_within: Duration::from_millis(server.mcp_answer_within.0),
            token_requests_per_minute: server.token_requests_per_minute,
            token_bytes_per_minute: server.token_bytes_per_minute.map(u64::from),
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

/// When the bucket will be full again, in milliseconds: everything about it.
#[derive(Default)]
struct Bucket {
    full_at: f64,
}

const MINUTE_MS: f64 = 60_000.0;

impl Bucket {
    /// Takes `amount` out of a bucket that holds `max` and fills in a minute; else how many milliseconds to wait.
    fn take(&mut self, now: Timestamp, amount: f64, max: f64) -> Result<(), u64> {
        let now = now.0 as f64;
        let full_at = self.full_at.max(now) + amount / max * MINUTE_MS;
        // What is larger than the whole bucket passes when the bucket is full.
        if full_at > now + MINUTE_MS.max(amount / max * MINUTE_MS) {
            return Err((full_at - now - MINUTE_MS).ceil().max(1.0) as u64);
        }
        self.full_at = full_at;
        Ok(())
    }
}

/// One request or stream that is under way. Dropping it makes room for another.
pub(crate) struct Underway {
    callers: Callers,
    token: String,
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request of a token in, or says when to come back.
    pub(crate) fn admit(&self, token: &str, bytes: u64, now: Timestamp, limits: &Limits) -> Answer<Underway> {
        let limited = |what: &str, wait: u64| {
            let refusal = Refusal::new(Code::RateLimited, format!("this token {what}"));
            Refusal(Box::new(refusal.0.retry_after_ms(wait)))
        };
        let mut callers = self.lock();
        let usage = callers.entry(token.to_owned()).or_default();
        if let Some(max) = limits.token_connections
            && usage.connections >= max
        {
            return Err(limited(&format!("has {max} requests under way, and may not have more"), 1000));
        }
        if let Some(max) = limits.token_requests_per_minute {
            let taken = usage.requests.take(now, 1.0, f64::from(max));
            taken.map_err(|wait| limited(&format!("may ask {max} times a minute"), wait))?;
        }
        if let Some(max) = limits.token_bytes_per_minute {
            let taken = usage.bytes.take(now, bytes as f64, max as f64);
            taken.map_err(|wait| limited(&format!("may send {max} bytes a minute"), wait))?;
        }
        usage.connections += 1;
        Ok(Underway { callers: self.clone(), token: token.to_owned() })
    }
}

impl Drop for Underway {
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
            assert_eq!(bucket.take(Timestamp(0), 1.0, 60.0), Ok(()));
        }
        assert_eq!(bucket.take(Timestamp(0), 1.0, 60.0), Err(1000));
        assert_eq!(bucket.take(Timestamp(999), 1.0, 60.0), Err(1));
        assert_eq!(bucket.take(Timestamp(1000), 1.0, 60.0), Ok(()));
        assert!(bucket.take(Timestamp(1000), 1000.0, 60.0).is_err());
        assert_eq!(bucket.take(Timestamp(10_000_000), 1000.0, 60.0), Ok(()));
    }
}
