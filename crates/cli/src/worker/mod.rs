//! `laneway worker`: does tasks that wait in external lanes, on any machine.

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

/// The file that is read where none is named.
const USUAL_FILE: &str = "worker.hcl";
const USUAL_URL: &str = "http://127.0.0.1:7717";
/// What a program's own grace is, where nothing is said.
const PROGRAM_GRACE: Duration = Duration::from_secs(4);
/// How much longer than the programs' grace an attempt that was told to stop may take.
const GRACE_MARGIN: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// The worker's file, with a handler block for each kind; worker.hcl, if none is named
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// From which lanes to take work: names or patterns, with commas between them
    #[arg(long, value_name = "LANES", value_delimiter = ',')]
    lanes: Vec<String>,
    /// The server's address; else LANEWAY_URL, the file's url, or http://127.0.0.1:7717
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The token; better LANEWAY_TOKEN or the file's token_file, which other users of the machine cannot see
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// The worker's name; else the file's, or host and process
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How many tasks to do at once; else the file's, or 1
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// Ends when nothing runs and nothing waits, rather than working for ever
    #[arg(long)]
    until_idle: bool,
    /// Checks the file and the handlers' programs, and ends
    #[arg(long)]
    check: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    /// How much to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: tracing::Level,
}

/// Works until it is told to stop.
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
    let told = if asked.json {
        serde_json::json!({
            "claimed": tally.claimed, "completed": tally.completed, "failed": tally.failed, "stale": tally.stale,
            "left": tally.left,
        })
        .to_string()
    } else {
        tally.to_string()
    };
    // Nobody may be there to read it.
    drop(writeln!(std::io::stdout(), "{told}"));
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
    // An empty name would mean `main`; here it is more likely a variable that was not set.
    if lanes.is_empty() || lanes.iter().any(|lane| lane.trim().is_empty()) {
        let why = "from which lanes? Give --lanes, or lanes = [\"external\"] in the file";
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

/// Host and process: another for each worker of a fleet.
fn own_name() -> String {
    let system = rustix::system::uname();
    let host: String = system.nodename().to_string_lossy().chars().take(100).collect();
    format!("{host}-{}", std::process::id())
}

async fn run(worker: Worker, config: &WorkerConfig, url: &str) -> Result<Tally, CliError> {
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot hear signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let (drain, drained) = tokio::sync::oneshot::channel();
    let kinds: Vec<&str> = config.handlers.iter().map(|handler| handler.kind.as_str()).collect();
    tracing::info!(url, ?kinds, "works");
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
            "told twice to stop: what ran was ended, and goes to others when its lease lapses".to_owned(),
        )),
    }
}

/// Says whether the worker could do what its file says.
fn check(config: &WorkerConfig, file: &Path) -> Result<(), CliError> {
    for handler in &config.handlers {
        let WorkerRunner::Program(program) = &handler.runner else { continue };
        program::check(program).map_err(|why| {
            CliError::Input(format!("{}: handler \"{}\": {why}", file.display(), handler.kind))
        })?;
    }
    let kinds: Vec<&str> = config.handlers.iter().map(|handler| handler.kind.as_str()).collect();
    drop(writeln!(std::io::stdout(), "{} is right: handlers for {}", file.display(), kinds.join(", ")));
    Ok(())
}
