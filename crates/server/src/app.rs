//! What all requests share. The state of the queue is not here: it is behind the [`Handle`].

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use laneway_config::Config;
use laneway_core::{TaskId, Timestamp};
use laneway_engine::{Clock, Handle, SteadyClock};
use tokio_util::task::TaskTracker;

use crate::admin::audit::Audit;
use crate::admin::tokens::Tokens;
use crate::agents::handlers::Runners;
use crate::events::hub::Bus;
use crate::events::signal::Signal;
use crate::http::error::ApiError;
use crate::http::limits::{Callers, Limits};
use crate::schedules::Schedules;
use crate::service::slots::Slots;
use crate::telemetry::charts::Charts;

/// What all requests share.
pub(crate) struct App {
    pub(crate) handle: Handle,
    pub(crate) config: RwLock<Arc<Config>>,
    pub(crate) runners: Arc<Runners>,
    pub(crate) bus: Bus,
    pub(crate) tokens: Tokens,
    pub(crate) callers: Callers,
    pub(crate) audit: Audit,
    pub(crate) schedules: Schedules,
    pub(crate) slots: Arc<Slots>,
    pub(crate) charts: Charts,
    pub(crate) traces: crate::telemetry::otlp::Traces,
    pub(crate) refusals: crate::telemetry::metrics::Refusals,
    /// Those that are open, sockets too.
    pub(crate) connections: TaskTracker,
    pub(crate) overrides: crate::http::routes::lanes::Overrides,
    pub(crate) clock: SteadyClock,
    /// Only this machine can reach the server. To listen elsewhere takes a restart.
    pub(crate) is_loopback: bool,
    /// No new work is taken.
    pub(crate) draining: Signal,
    /// Streams end and sockets close.
    pub(crate) closing: Signal,
    /// The configuration file, to be read again.
    pub(crate) config_file: Option<PathBuf>,
    /// The options of the command line, which stand above the environment when it is.
    pub(crate) variables: Vec<(String, String)>,
}

impl App {
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What requests may be like now.
    pub(crate) fn limits(&self) -> Limits {
        Limits::of(&self.config.read().unwrap_or_else(PoisonError::into_inner).server)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Why nobody can wait for the end of a task any more.
    pub(crate) fn unfinished(&self, task: TaskId, error: laneway_engine::Error) -> ApiError {
        ApiError::unfinished(task, error, self.handle.durability())
    }

    /// Waits for the end of a task and tells how it went, for whoever has no handle of it.
    pub(crate) async fn word_of_end(&self, task: TaskId) -> Option<laneway_engine::Ending> {
        self.handle.wait_for(task).await.ok()
    }
}

/// How long the last answers may take when the server stops.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);
