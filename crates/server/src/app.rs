//! The state that all requests share. The queue is behind the [`Handle`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::extract::State;
use laneway_config::Config;
use laneway_core::{TaskId, Timestamp};
use laneway_engine::{Clock, Handle, SteadyClock};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::admin::audit::Audit;
use crate::admin::tokens::Tokens;
use crate::agents::directory::Directory;
use crate::agents::handlers::AgentHandlers;
use crate::events::signal::Signal;
use crate::http::error::ApiError;
use crate::http::limits::Callers;
use crate::mcp::sessions::McpSessions;
use crate::schedules::Schedules;
use crate::telemetry::charts::Charts;

pub(crate) struct App {
    pub(crate) handle: Handle,
    pub(crate) config: Arc<ArcSwap<Config>>,
    pub(crate) agents: Arc<Directory>,
    pub(crate) handlers: Arc<AgentHandlers>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) callers: Callers,
    pub(crate) audit: Audit,
    pub(crate) schedules: Schedules,
    pub(crate) charts: Charts,
    pub(crate) traces: crate::telemetry::otlp::Traces,
    pub(crate) rejections: crate::telemetry::metrics::RejectionCounts,
    pub(crate) metrics: Arc<crate::telemetry::metrics::Metrics>,
    /// The open connections, with WebSockets.
    pub(crate) connections: TaskTracker,
    /// Sessions of older MCP clients.
    pub(crate) mcp: McpSessions,
    /// Other replicas share the store.
    pub(crate) is_shared: bool,
    pub(crate) clock: SteadyClock,
    /// Only this machine can reach the server. Another address needs a restart.
    pub(crate) is_loopback: bool,
    /// Given when the server takes no new work.
    pub(crate) draining: Signal,
    /// Given when streams and WebSockets must end.
    pub(crate) closing: Signal,
    /// What to repair in the store.
    pub(crate) store_warnings: Option<watch::Receiver<Option<Arc<str>>>>,
    /// The configuration file, for a reload.
    pub(crate) config_file: Option<PathBuf>,
    /// The options of the command line, which override the environment at a reload.
    pub(crate) options: Vec<(String, String)>,
}

/// The extractor of the shared state.
pub(crate) type Shared = State<Arc<App>>;

impl App {
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What to repair in the store before it loses something.
    pub(crate) fn store_warning(&self) -> Option<String> {
        self.store_warnings.as_ref()?.borrow().as_deref().map(str::to_owned)
    }

    /// Reads what the server keeps in the log, in case an event was missed.
    pub(crate) async fn refresh(self: &Arc<App>) -> Result<(), laneway_engine::Error> {
        let app = Arc::clone(self);
        let look = move |lanes: &laneway_core::Scheduler| {
            app.agents.load(lanes);
            app.tokens.load(lanes);
            app.mcp.load(lanes);
        };
        self.handle.read(look).await?;
        self.handlers.register(&self.handle)
    }

    /// The error of a wait that the engine cannot finish.
    pub(crate) fn unfinished(&self, task: TaskId, error: laneway_engine::Error) -> ApiError {
        ApiError::unfinished(task, error, self.handle.durability())
    }
}

/// How long a client may take to read the last answer when the server stops.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(2);
