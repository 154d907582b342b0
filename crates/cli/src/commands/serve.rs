//! `laneway serve`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_config::{Config, Profile, StoreLocation};
use laneway_server::{Parts, Server, state_dir, with_echo};
use laneway_store::{Store, StoreError};
use laneway_store_postgres::PostgresStore;
use laneway_store_redis::RedisStore;
use laneway_store_sqlite::SqliteStore;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{ConfigFile, Serve};
use crate::error::CliError;

/// The default configuration file.
const USUAL_FILE: &str = "laneway.hcl";

/// Reads the configuration. `overrides` take precedence over the environment.
pub(crate) fn configuration(
    place: &ConfigFile,
    overrides: &[(&str, &str)],
) -> Result<(Config, Option<PathBuf>), CliError> {
    let environment = laneway_config::with_options(std::env::vars(), overrides.iter().copied());
    let file = place.config.clone().or_else(|| Path::new(USUAL_FILE).exists().then(|| USUAL_FILE.into()));
    let config = match &file {
        Some(file) => laneway_config::load(file, Profile::SERVER, environment),
        None => laneway_config::without_file(Profile::SERVER, environment),
    };
    let mut config = config.map_err(|errors| CliError::Input(errors.to_string()))?;
    with_echo(&mut config);
    laneway_server::check_schedules(&config).map_err(|error| CliError::Input(error.to_string()))?;
    Ok((config, file))
}

/// Runs the server until a signal stops it.
pub(crate) fn serve(asked: Serve) -> Result<(), CliError> {
    crate::logs::start(asked.log);
    let mut overrides = Vec::new();
    overrides.extend(asked.listen.as_deref().map(|listen| ("--listen", listen)));
    overrides.extend(asked.store.as_deref().map(|store| ("--store", store)));
    let (config, file) = configuration(&asked.place, &overrides)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(laneway_server::threads(&config.store)).enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failure(format!("no runtime: {error}")))?;
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    runtime.block_on(run(config, file, overrides.iter().map(owned).collect(), asked.place.json))
}

async fn run(
    config: Config,
    file: Option<PathBuf>,
    overrides: Vec<(String, String)>,
    is_json: bool,
) -> Result<(), CliError> {
    let store = open_store(&config.store).await?;
    let (listen, to_try) = (config.listen.clone(), agent_to_try(&config));
    let parts = Parts { state_dir: state_dir(&config), config_file: file, overrides, store, config };
    let server = Server::open(parts).await.map_err(|error| CliError::Failure(error.to_string()))?;
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot listen on {listen}: {error}"));
    let listener = TcpListener::bind(listen.to_string()).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let reloader = server.reloader();
    let mut hangup = signal(SignalKind::hangup()).map_err(cannot)?;
    let reloading = tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match reloader.reload().await {
                Ok(()) => tracing::info!("reloaded the configuration"),
                Err(error) => tracing::error!(%error, "kept the old configuration"),
            }
        }
    });
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate()).map_err(cannot)?, signal(SignalKind::interrupt()).map_err(cannot)?);
    if is_json {
        crate::output::json_line(&serde_json::json!({ "url": format!("http://{address}") }))?
    } else {
        greet(&address.to_string(), to_try.as_deref(), server.is_open())
    }
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let served = server.serve(listener, stop).await.map_err(cannot);
    reloading.abort();
    served
}

/// Opens a store. A store in memory is `None`.
pub(crate) async fn open_store(place: &StoreLocation) -> Result<Option<Arc<dyn Store>>, CliError> {
    try_open_store(place).await.map_err(|error| CliError::Failure(error.to_string()))
}

/// Like [`open_store`], with the store's own error.
pub(crate) async fn try_open_store(place: &StoreLocation) -> Result<Option<Arc<dyn Store>>, StoreError> {
    Ok(match place {
        StoreLocation::Memory => None,
        StoreLocation::Path(dir) => {
            let (dir, name) = (dir.clone(), dir.display().to_string());
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(dir)).await;
            let lost = |error: tokio::task::JoinError| StoreError::Unavailable {
                store: name.into(),
                reason: error.to_string().into(),
            };
            Some(Arc::new(opened.map_err(lost)??))
        }
        StoreLocation::Redis(url) => Some(Arc::new(RedisStore::open(url).await?)),
        StoreLocation::Postgres(url) => Some(Arc::new(PostgresStore::open(url).await?)),
    })
}

/// An agent for the greeting's example: one that needs no worker, and whose name needs no quotes.
fn agent_to_try(config: &Config) -> Option<String> {
    let is_plain =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let mut here = config.agents.iter().filter(|agent| agent.runner != laneway_config::Runner::External);
    let found = here.find(|agent| is_plain(agent.name.as_str()));
    found.map(|agent| agent.name.to_string())
}

/// Prints what to do next. If standard output is closed, logs the address instead.
fn greet(address: &str, to_try: Option<&str>, is_open: bool) {
    let token = if is_open { "" } else { " -H \"Authorization: Bearer $LANEWAY_TOKEN\"" };
    let to_try = match to_try {
        Some(agent) => {
            format!("http://{address}/api/agents/{agent}/chat{token} --json '{{\"message\": \"hello\"}}'")
        }
        None => format!("http://{address}/api/status{token}"),
    };
    let text = format!(
        "Laneway listens on http://{address}\n\
         \x20 try:       curl {to_try}\n\
         \x20 dashboard: http://{address}/\n\
         \x20 API:       http://{address}/docs\n"
    );
    let mut out = std::io::stdout();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        tracing::info!(address, "listening");
    }
}
