//! Opens, serves and stops a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use laneway_config::{Config, StoreLocation};
use laneway_core::{Block, LaneSettings, Pattern};
use laneway_engine::{Handle, Options, SettingsOf, SteadyClock, ToolCalls, UnknownKinds};
use laneway_store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::admin::audit::Audit;
use crate::admin::config_drift::{differences, in_words};
use crate::admin::tokens::Tokens;
use crate::agents::directory::Directory;
use crate::agents::handlers::AgentHandlers;
use crate::app::{App, LAST_ANSWERS};
use crate::error::ServerError;
use crate::events::observer::ServerObserver;
use crate::events::signal::Signal;
use crate::http::error::ApiError;
use crate::http::limits::Callers;
use crate::mcp::sessions::McpSessions;
use crate::net::connections;
use crate::reload::Reloader;
use crate::schedules::{Schedules, check_schedules};
use crate::service::change_lanes::drop_outdated;
use crate::telemetry::charts::Charts;
use crate::telemetry::collector::{Collector, Collectors};
use crate::telemetry::otlp::Traces;
use crate::telemetry::otlp_metrics;

/// How many events a client may lag behind before it misses some.
const BEHIND_MAX: usize = 512;
/// The longest payload that the history keeps.
const PAYLOADS_KEPT_MAX: usize = 16 * 1024;
/// How long an attempt may take to stop: a little longer than the grace of a program.
const STOP_GRACE: Duration = Duration::from_millis(4_800);

/// The parts of a server.
pub struct Parts {
    /// The configuration.
    pub config: Config,
    /// The file of the configuration, for a reload.
    pub config_file: Option<PathBuf>,
    /// Options of the command line (`--store`), which override the environment, also at a reload.
    pub overrides: Vec<(String, String)>,
    /// The store of the queue. `None` keeps it in memory.
    pub store: Option<Arc<dyn Store>>,
    /// The directory of tokens and the audit log. `None` keeps them in memory.
    pub state_dir: Option<PathBuf>,
}

/// A server that is ready to serve.
pub struct Server {
    app: Arc<App>,
    /// Send traces and metrics until the server has stopped.
    exporting: Vec<JoinHandle<()>>,
    /// The lock on the state directory.
    lock: Option<std::fs::File>,
}

/// The number of threads for requests: one per core, and one less for a store on a local disk. All requests wait for the
/// thread that writes to the disk, so it has a core of its own.
pub fn threads(store: &StoreLocation) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match store {
        StoreLocation::Path(_) => cores.saturating_sub(1).max(1),
        StoreLocation::Memory | StoreLocation::Redis(_) | StoreLocation::Postgres(_) => cores,
    }
}

/// The directory of tokens and the audit log; `None` if they are kept in memory.
pub fn state_dir(config: &Config) -> Option<PathBuf> {
    match (&config.server.state, &config.store) {
        (Some(dir), _) => Some(dir.clone()),
        (None, StoreLocation::Memory) => None,
        (None, StoreLocation::Path(dir)) => Some(dir.join("server")),
        (None, _) => Some(PathBuf::from("./laneway-server")),
    }
}

/// The file that holds the tokens.
pub fn tokens_file(state_dir: &std::path::Path) -> PathBuf {
    state_dir.join("tokens.json")
}

/// The file that holds the audit log.
pub fn audit_file(state_dir: &std::path::Path) -> PathBuf {
    state_dir.join("audit.jsonl")
}

/// The settings of all lanes, with those that the server adds: the lane `external` and the bound of tokens.
pub(crate) fn lane_blocks(config: &Config) -> Vec<Block> {
    let mut blocks = config.lane_blocks();
    let mut add = |pattern: &str, set: &dyn Fn(&mut LaneSettings)| {
        let configured = blocks.iter_mut().find(|block| block.lanes.as_str() == pattern);
        match (configured, Pattern::new(pattern)) {
            (Some(block), _) => set(block.settings.get_or_insert_default()),
            (None, Ok(lanes)) => {
                let mut settings = LaneSettings::default();
                set(&mut settings);
                blocks.push(Block { lanes, settings: Some(settings) });
            }
            (None, Err(_)) => {}
        }
    };
    // Lists show this lane also when it is empty.
    add("external", &|_| {});
    if let Some(waiting) = config.server.token_waiting {
        add("token:*", &|_| {});
        for block in blocks.iter_mut().filter(|block| block.lanes.as_str().starts_with("token:")) {
            block.settings.get_or_insert_default().max_queued.get_or_insert(waiting);
        }
    }
    blocks
}

/// The settings of all lanes for a loaded store. The agents that it holds get their handlers before anything is granted.
fn settings_of(
    config: &Arc<ArcSwap<Config>>,
    agents: &Arc<Directory>,
    handlers: &Arc<AgentHandlers>,
    tokens: &Arc<Tokens>,
) -> SettingsOf {
    let (config, agents, handlers) = (Arc::clone(config), Arc::clone(agents), Arc::clone(handlers));
    let tokens = Arc::clone(tokens);
    Box::new(move |lanes, handle| {
        tokens.load(lanes);
        if lacks_token(&config.load(), &tokens) {
            // The server does not start, so nothing changes.
            let own = |(lanes, settings): (&Pattern, &LaneSettings)| Block {
                lanes: lanes.clone(),
                settings: Some(settings.clone()),
            };
            return lanes.blocks().map(own).collect();
        }
        agents.load(lanes);
        if let Err(error) = handlers.register(handle) {
            tracing::warn!(%error, "the agents of the API cannot be registered");
        }
        lane_blocks(&config.load())
    })
}

/// Whether other machines could use the server without a token.
fn lacks_token(config: &Config, tokens: &Tokens) -> bool {
    !config.listen.is_loopback() && tokens.is_empty()
}

/// Logs which settings of the store this server replaces: the replica that starts last wins.
fn log_replaced(config: &Config, handle: &Handle) {
    let Some(found) = handle.blocks_found() else { return };
    let replaced = differences(&lane_blocks(config), found);
    if !replaced.is_empty() {
        tracing::warn!(
            held = in_words(&replaced),
            "this server's configuration replaces the settings in the store; all replicas follow it from now on"
        );
    }
}

/// Without a `queue` block, tool calls run directly, one after another.
pub(crate) fn tool_calls(config: &Config) -> ToolCalls {
    match &config.tools {
        None => ToolCalls::Direct,
        Some(lanes) => ToolCalls::Lanes { metrics: lanes.metrics, tools: lanes.tools.clone() },
    }
}

/// The traces, and the task that sends them if a collector is configured.
fn start_traces(
    collector: Option<Collector>,
    handle: &Handle,
    is_shared: bool,
    closing: &Signal,
) -> (Traces, Option<JoinHandle<()>>) {
    let Some(collector) = collector else { return (Traces::default(), None) };
    let (traces, exporter) = Traces::to(collector, handle.clone(), is_shared);
    (traces, Some(tokio::spawn(exporter.run(closing.token()))))
}

/// Starts the background tasks: events, configuration drift, warnings of the store, tokens, charts.
fn start_background(app: &Arc<App>, is_shared: bool) {
    let reconfigured = Arc::new(tokio::sync::Notify::new());
    app.handle.hub().observe(Arc::new(ServerObserver {
        traces: app.traces.clone(),
        metrics: Arc::clone(&app.metrics),
        reconfigured: Arc::clone(&reconfigured),
        rescheduled: Arc::clone(&app.schedules.changed),
        app: Arc::downgrade(app),
    }));
    let handle = app.handle.clone();
    tokio::spawn(async move {
        if let Err(error) = handle.restore_groups().await {
            tracing::warn!(%error, "the counts of groups could not be read");
        }
    });
    if is_shared {
        tokio::spawn(crate::admin::config_drift::watch(Arc::clone(app), reconfigured));
    }
    if let Some(warnings) = app.store_warnings.clone() {
        tokio::spawn(crate::admin::store_watch::watch(warnings));
    }
    tokio::spawn(crate::admin::tokens::keep(Arc::clone(app)));
    tokio::spawn(app.charts.clone().sample(app.handle.clone(), app.rejections.clone()));
}

impl Server {
    /// Opens the store, the tokens and the audit log. Nothing is served yet.
    pub async fn open(parts: Parts) -> Result<Server, ServerError> {
        let Parts { config, config_file, overrides, store, state_dir } = parts;
        check_schedules(&config)?;
        let variable = |name: &str| std::env::var(name).ok();
        let collectors = Collectors::read(config.server.otlp.as_deref(), variable)?;
        let lock = match &state_dir {
            Some(dir) => Some(crate::admin::files::lock(dir).await?),
            None => None,
        };
        let tokens = Arc::new(Tokens::open(state_dir.as_deref().map(tokens_file))?);
        let audit = Audit::open(state_dir.as_deref().map(audit_file))?;
        if store.is_none() && lacks_token(&config, &tokens) {
            return Err(ServerError::NoToken(config.listen));
        }
        let is_loopback = config.listen.is_loopback();
        let live_config = Arc::new(ArcSwap::from_pointee(config));
        let config = live_config.load_full();
        let clock = SteadyClock::start();
        let handlers = Arc::new(AgentHandlers::new(Arc::clone(&live_config))?);
        let mut options = Options::default();
        options.history_max = u64::from(config.server.history_max);
        options.replica_lease = Duration::from_millis(config.server.replica_lease.0);
        options.payloads_kept_max = PAYLOADS_KEPT_MAX;
        options.updates_max = BEHIND_MAX;
        options.stop_grace = STOP_GRACE;
        // A task whose agent was removed from the configuration fails, and its dead letter can be redriven.
        options.unknown_kinds = UnknownKinds::Fail;
        let agents = Arc::new(Directory::new(Arc::clone(&live_config)));
        options.settings = Some(settings_of(&live_config, &agents, &handlers, &tokens));
        let options = handlers.into_options(options)?;
        let is_shared = store.as_ref().is_some_and(|store| store.is_shared());
        let store_warnings = store.as_ref().and_then(|store| store.warnings());
        let handle = match store {
            None => Handle::in_memory(options),
            Some(store) => Handle::open(store, options).await?,
        };
        let config = live_config.load_full();
        if lacks_token(&config, &tokens) {
            handle.shutdown(Duration::ZERO).await;
            return Err(ServerError::NoToken(config.listen.clone()));
        }
        log_replaced(&config, &handle);
        handle.configure(lane_blocks(&config)).await?;
        handle.set_tool_calls(tool_calls(&config));
        handle.configure_messages(config.messages.settings()).await?;
        let closing = Signal::default();
        let (traces, exporting_traces) = start_traces(collectors.traces, &handle, is_shared, &closing);
        let app = Arc::new(App {
            handle,
            config: live_config,
            agents,
            handlers,
            tokens,
            callers: Callers::default(),
            audit,
            schedules: Schedules::new(is_shared),
            charts: Charts::default(),
            traces,
            rejections: crate::telemetry::metrics::RejectionCounts::default(),
            metrics: Arc::default(),
            connections: TaskTracker::new(),
            clock,
            is_loopback,
            mcp: McpSessions::default(),
            is_shared,
            draining: Signal::default(),
            closing,
            store_warnings,
            config_file,
            options: overrides,
        });
        start_background(&app, is_shared);
        let exporting_metrics = collectors.metrics.map(|collector| {
            let (app, stop) = (Arc::downgrade(&app), app.closing.token());
            tokio::spawn(otlp_metrics::run(app, collector, collectors.metrics_every, stop))
        });
        let exporting = exporting_traces.into_iter().chain(exporting_metrics).collect();
        app.refresh().await?;
        if let Err(ApiError { problem, .. }) = drop_outdated(&app).await {
            tracing::warn!(
                error = problem.detail,
                "changes of settings that the file replaces are still in the log"
            );
        }
        Ok(Server { app, exporting, lock })
    }

    /// Whether requests need no token.
    pub fn is_open(&self) -> bool {
        self.app.is_open()
    }

    /// Reloads the configuration file.
    pub fn reloader(&self) -> Reloader {
        Reloader::new(Arc::clone(&self.app))
    }

    /// Serves until `stop` completes, then drains: readiness fails, the server refuses new work, running attempts may end,
    /// and streams and WebSockets close last. The store keeps waiting tasks.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> std::io::Result<()> {
        let address = listener.local_addr()?;
        let Server { app, exporting, lock } = self;
        app.handlers.set_url(format!("http://{address}"));
        tokio::spawn(crate::schedules::run(Arc::clone(&app)));
        let router = crate::http::router::router(Arc::clone(&app));
        let accepting = connections::accept(listener, Arc::clone(&app), router);
        let accepting = tokio::spawn(accepting);
        stop.await;
        tracing::info!("draining: the server takes no new work");
        app.draining.give();
        app.handle.shutdown(Duration::from_millis(app.config().server.drain_grace.0)).await;
        app.closing.give();
        accepting.abort();
        app.connections.close();
        // A client that does not read the last answer in time is disconnected.
        drop(tokio::time::timeout(LAST_ANSWERS, app.connections.wait()).await);
        drop(tokio::time::timeout(LAST_ANSWERS, futures_util::future::join_all(exporting)).await);
        drop(lock);
        tracing::info!("stopped");
        Ok(())
    }
}

/// Adds the agent `echo` to a configuration without agents.
pub fn with_echo(config: &mut Config) {
    if config.agents.is_empty()
        && let Ok(name) = laneway_core::Name::new("echo")
    {
        config.agents.push(laneway_config::AgentConfig {
            name,
            runner: laneway_config::Runner::Echo,
            lanes: None,
            urls: laneway_config::AgentUrls::default(),
        });
    }
}
