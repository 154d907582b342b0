//! `laneway worker`: claims tasks of external lanes and runs them, on any machine.

pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod program;
pub(crate) mod template;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use laneway_client::{Attempt, Client, Tally, Worker};
use laneway_config::{WorkerConfig, WorkerRunner};
use tokio::signal::unix::{SignalKind, signal};

use crate::CliError;
use crate::worker::http::Service;

/// The default file.
const USUAL_FILE: &str = "worker.hcl";
const USUAL_URL: &str = "http://127.0.0.1:7717";
/// The default grace of a program.
const PROGRAM_GRACE: Duration = Duration::from_secs(4);
/// How much longer than its program's grace an attempt may take to stop.
const GRACE_MARGIN: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// The worker's file, with a handler block for each kind [default: worker.hcl]
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The lanes to claim tasks from: names or patterns, separated by commas
    #[arg(long, value_name = "LANES", value_delimiter = ',')]
    lanes: Vec<String>,
    /// The server's address [default: LANEWAY_URL, the file's url, or http://127.0.0.1:7717]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The token; prefer LANEWAY_TOKEN or token_file, because other users of the machine can see a command line
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// The worker's name [default: the file's name, or host and process]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The maximum number of tasks at once [default: the file's concurrency, or 1]
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Ends when no task runs or waits
    #[arg(long)]
    until_idle: bool,
    /// Checks the file and the handlers' programs, and ends
    #[arg(long)]
    check: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// The log level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: tracing::Level,
}

/// Runs the worker until a signal stops it.
pub(crate) fn worker(asked: WorkerArguments) -> Result<(), CliError> {
    crate::logs::start(asked.log);
    let file = asked.config.clone().unwrap_or_else(|| USUAL_FILE.into());
    let config = laneway_config::load_worker(&file).map_err(|errors| CliError::Input(errors.to_string()))?;
    if asked.check {
        return check(&config, &file);
    }
    let url = asked.url.clone().or_else(|| variable("LANEWAY_URL")).or_else(|| config.url.clone());
    let url = url.unwrap_or_else(|| USUAL_URL.to_owned());
    let token = token(&asked, &config)?;
    let client = Client::new(&url, token.as_deref()).map_err(|error| CliError::Input(error.to_string()))?;
    let worker = assemble(&asked, &config, client)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failure(format!("no runtime: {error}")))?;
    let tally = runtime.block_on(run(worker, &config, &url))?;
    let summary = if asked.json {
        serde_json::json!({
            "claimed": tally.claimed, "completed": tally.completed, "failed": tally.failed, "stale": tally.stale,
            "left": tally.left,
        })
        .to_string()
    } else {
        tally.to_string()
    };
    // Standard output may be closed.
    drop(writeln!(std::io::stdout(), "{summary}"));
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn token(asked: &WorkerArguments, config: &WorkerConfig) -> Result<Option<String>, CliError> {
    if let Some(token) = asked.token.clone().or_else(|| variable("LANEWAY_TOKEN")) {
        return Ok(Some(token));
    }
    let Some(file) = &config.token_file else { return Ok(None) };
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| CliError::Input(format!("token_file {}: {error}", file.display())))?;
    match text.trim() {
        "" => Err(CliError::Input(format!("token_file {} is empty", file.display()))),
        token => Ok(Some(token.to_owned())),
    }
}

fn assemble(asked: &WorkerArguments, config: &WorkerConfig, client: Client) -> Result<Worker, CliError> {
    let lanes = if asked.lanes.is_empty() { &config.lanes } else { &asked.lanes };
    // An empty name would mean `main`; here it is more likely an unset variable.
    if lanes.is_empty() || lanes.iter().any(|lane| lane.trim().is_empty()) {
        let why = "name the lanes to claim from: --lanes, or lanes = [\"external\"] in the file";
        return Err(CliError::Input(why.to_owned()));
    }
    let name = asked.name.clone().or_else(|| config.name.clone()).unwrap_or_else(own_name);
    let concurrency = asked.concurrency.or(config.concurrency).unwrap_or(1);
    if concurrency == 0 {
        return Err(CliError::Input("--concurrency must be at least 1".to_owned()));
    }
    let url: Arc<str> = client.url().into();
    let mut worker =
        Worker::new(client, name).lanes(lanes).concurrency(concurrency as usize).until_idle(asked.until_idle);
    if let Some(lease) = config.lease {
        worker = worker.lease(lease);
    }
    if let Some(grace) = config.drain_grace {
        worker = worker.drain_grace(grace);
    }
    let mut stop_grace = PROGRAM_GRACE;
    for handler in &config.handlers {
        let kind = handler.kind.as_str();
        worker = match &handler.runner {
            WorkerRunner::Program(program) => {
                stop_grace = stop_grace.max(program.grace.unwrap_or(PROGRAM_GRACE));
                let (program, url) = (Arc::new(program.as_ref().clone()), Arc::clone(&url));
                worker.handler(kind, move |attempt: Attempt| {
                    let (program, url) = (Arc::clone(&program), Arc::clone(&url));
                    async move { program::run(&program, &attempt, &url).await }
                })
            }
            WorkerRunner::Url(address) => {
                let service = Service::new(address).map_err(CliError::input)?;
                worker.handler(kind, move |attempt: Attempt| {
                    let service = service.clone();
                    async move { service.ask(&attempt).await }
                })
            }
            other => return Err(CliError::Input(format!("a worker cannot run {other:?}"))),
        };
    }
    Ok(worker.stop_grace(stop_grace + GRACE_MARGIN))
}

/// Host and process id, which differ for each worker.
fn own_name() -> String {
    let system = rustix::system::uname();
    let host: String = system.nodename().to_string_lossy().chars().take(100).collect();
    format!("{host}-{}", std::process::id())
}

async fn run(worker: Worker, config: &WorkerConfig, url: &str) -> Result<Tally, CliError> {
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot handle signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let (drain, drained) = tokio::sync::oneshot::channel();
    let kinds: Vec<&str> = config.handlers.iter().map(|handler| handler.kind.as_str()).collect();
    tracing::info!(url, ?kinds, "worker started");
    let working = worker.run(async move { drop(drained.await) });
    let signals = async move {
        let mut drain = Some(drain);
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            match drain.take() {
                Some(drain) => drop(drain.send(())),
                None => break,
            }
        }
    };
    tokio::select! {
        worked = working => worked.map_err(|error| CliError::Failure(error.to_string())),
        () = signals => Err(CliError::Failure(
            "a second signal stopped the attempts; other workers get the tasks when the leases lapse".to_owned(),
        )),
    }
}

/// Checks that the programs of the file exist.
fn check(config: &WorkerConfig, file: &Path) -> Result<(), CliError> {
    for handler in &config.handlers {
        let WorkerRunner::Program(program) = &handler.runner else { continue };
        program::check(program).map_err(|why| {
            CliError::Input(format!("{}: handler \"{}\": {why}", file.display(), handler.kind))
        })?;
    }
    let kinds: Vec<&str> = config.handlers.iter().map(|handler| handler.kind.as_str()).collect();
    drop(writeln!(std::io::stdout(), "{} is valid: handlers for {}", file.display(), kinds.join(", ")));
    Ok(())
}
