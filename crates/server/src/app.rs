//! What all requests share. The state of the queue is behind the [`Handle`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use laneway_config::Config;
use laneway_core::{TaskId, Timestamp};
use laneway_engine::{Clock, Handle, SteadyClock};
use tokio_util::task::TaskTracker;

use crate::admin::audit::Audit;
use crate::admin::tokens::Tokens;
use crate::agents::handlers::Runners;
use crate::events::signal::Signal;
use crate::http::error::ApiError;
use crate::http::limits::{Callers, Limits};
use crate::schedules::Schedules;
use crate::telemetry::charts::Charts;

/// What all requests share.
pub(crate) struct App {
    pub(crate) handle: Handle,
    pub(crate) config: Arc<ArcSwap<Config>>,
    pub(crate) runners: Arc<Runners>,
    pub(crate) tokens: Tokens,
    pub(crate) callers: Callers,
    pub(crate) audit: Audit,
    pub(crate) schedules: Schedules,
    pub(crate) charts: Charts,
    pub(crate) traces: crate::telemetry::otlp::Traces,
    pub(crate) rejections: crate::telemetry::metrics::RejectionCounts,
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
        self.config.load_full()
    }

    /// What requests may be like now.
    pub(crate) fn limits(&self) -> Limits {
        Limits::of(&self.config.load().server)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The error of a wait for a task that the engine cannot go on with.
    pub(crate) fn unfinished(&self, task: TaskId, error: laneway_engine::Error) -> ApiError {
        ApiError::unfinished(task, error, self.handle.durability())
    }
}

/// How long the last answers may take when the server stops.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);
