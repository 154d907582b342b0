//! How an engine is set up.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::Name;
use laneway_store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::{Clock, SteadyClock};
use crate::context::Context;
use crate::error::{Error, Failure};
use crate::handler::{Handlers, typed};

/// How an engine is set up. The defaults suit a program that embeds it.
pub struct Options {
    /// How many calls may wait for the loop; whoever asks beyond that waits for room. Default 1024, at least 1.
    pub calls_max: usize,
    /// After so many events (or as many as there are live tasks, if those are more) the state is saved and the log
    /// trimmed. Default 10 000, at least 1.
    pub snapshot_every: u64,
    /// How many finished tasks of named handlers and workers are remembered, with their results. Default 10 000.
    pub history_max: u64,
    /// How many updates a subscriber may be behind before it misses some. Default 1024, at least 1.
    pub updates_max: usize,
    /// How long a handler that was told to stop may go on before its future is dropped. Default 1 s; the scheduler
    /// gives its slot away after 5 s in any case.
    pub stop_grace: Duration,
    /// What tells the time. Where several engines share a store that has a clock, that one counts instead.
    pub clock: Box<dyn Clock>,
    /// Where several engines share a store: for how long one of them may be silent before what waits for it is
    /// cancelled. What runs has the lease of its lane. Default 10 s, at least 100 ms.
    pub replica_lease: Duration,
    pub(crate) handlers: Arc<Handlers>,
    /// The store, if others share it.
    pub(crate) shares: Option<Arc<dyn Store>>,
}

impl Options {
    /// Says who runs tasks of a kind before anything runs; see [`Handle::handler`](crate::Handle::handler).
    pub fn handler<P, R, F, Fut>(self, kind: impl Into<Arc<str>>, function: F) -> Result<Options, Error>
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.handlers.insert(Name::new(kind)?, typed(function));
        Ok(self)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            calls_max: 1024,
            snapshot_every: 10_000,
            history_max: 10_000,
            updates_max: 1024,
            stop_grace: Duration::from_secs(1),
            clock: Box::new(SteadyClock::start()),
            replica_lease: Duration::from_secs(10),
            shares: None,
            handlers: Arc::default(),
        }
    }
}
