//! How a store is opened.

use std::time::Duration;

/// How to open a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which of the logs in this Redis: each namespace is a log of its own. 1 to 128 bytes, any characters. Default
    /// `default`.
    pub namespace: String,
    /// How long finished tasks are kept at most, whatever the engine's retention says. `None`: for ever. Default 7 days.
    /// Payloads of tasks that are not finished never expire.
    pub history_ttl: Option<Duration>,
    /// How long to wait for an answer before Redis counts as unavailable. Default 2 s.
    pub timeout: Duration,
    /// How many replicas of Redis must have an append before it is acknowledged; it is then as durable as that. Default
    /// 0: Redis itself.
    pub replicas: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            namespace: "default".to_owned(),
            history_ttl: Some(Duration::from_secs(7 * 24 * 3600)),
            timeout: Duration::from_secs(2),
            replicas: 0,
        }
    }
}
