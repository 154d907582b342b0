//! How a store is opened.

use std::time::Duration;

/// How to open a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which of the logs in this Redis: each namespace is a log of its own. 1 to 128 bytes, any characters. Default
    /// `default`.
    pub namespace: String,
    /// How long finished tasks are remembered at most, whatever the engine's retention says. `None`: for ever.
    /// Default 7 days. Payloads of tasks that are not finished never go by themselves.
    pub history_ttl: Option<Duration>,
    /// How long to wait for an answer before Redis counts as away. Default 2 s.
    pub patience: Duration,
    /// An append is done when so many replicas of Redis have it; the answer is then as durable as that. Default 0:
    /// when Redis itself has it.
    pub replicas: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            namespace: "default".to_owned(),
            history_ttl: Some(Duration::from_secs(7 * 24 * 3600)),
            patience: Duration::from_secs(2),
            replicas: 0,
        }
    }
}
