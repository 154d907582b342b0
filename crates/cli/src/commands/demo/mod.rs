//! `laneway demo`: a server with agents, simulated traffic and failures. It keeps its state in a temporary directory.

pub(crate) mod traffic;

use std::path::Path;

use laneway_config::{Profile, StoreLocation};
use laneway_server::{Parts, Server, state_dir};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments;
use crate::commands::serve;
use crate::error::CliError;
use crate::output;

const CONFIG: &str = include_str!("demo.hcl");

/// Runs the server and its traffic until a signal ends it.
pub(crate) fn run(verb: arguments::Demo) -> Result<(), CliError> {
    crate::logs::start(tracing::Level::ERROR);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failure(format!("no runtime: {error}")))?;
    // The directory is removed when this function returns.
    let dir = tempfile::Builder::new().prefix("laneway-demo-").tempdir();
    let dir = dir.map_err(|error| CliError::Failure(format!("cannot create a temporary store: {error}")))?;
    let done = runtime.block_on(serve(&verb, dir.path()));
    // The store closes its files before they are removed.
    drop(runtime);
    done
}

async fn serve(verb: &arguments::Demo, dir: &Path) -> Result<(), CliError> {
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot serve the demo: {error}"));
    let file = dir.join("demo.hcl");
    std::fs::write(&file, CONFIG).map_err(cannot)?;
    let environment = [("LANEWAY_LISTEN", verb.listen.as_str())];
    let config = laneway_config::load(&file, Profile::SERVER, environment);
    let mut config = config.map_err(|errors| CliError::Input(errors.to_string()))?;
    config.store = StoreLocation::Path(dir.join("store"));
    let store = serve::open_store(&config.store).await?;
    let listen = config.listen.to_string();
    let parts =
        Parts { state_dir: state_dir(&config), config_file: None, overrides: Vec::new(), store, config };
    let server = Server::open(parts).await.map_err(|error| CliError::Failure(error.to_string()))?;
    let listener = TcpListener::bind(&listen).await;
    let listener =
        listener.map_err(|error| CliError::Failure(format!("cannot listen on {listen}: {error}")))?;
    let url = format!("http://{}", listener.local_addr().map_err(cannot)?);
    let mut signals = Vec::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        signals.push(signal(kind).map_err(cannot)?);
    }
    if verb.json {
        output::json_line(&serde_json::json!({ "url": url }))?
    } else {
        output::text(&greeting(&url))?
    }
    let traffic = traffic::start(crate::connection::client(&url, None)?);
    let stop = async move {
        let [interrupt, terminate, hangup] = &mut signals[..] else { return };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        // The traffic stops before the server drains.
        drop(traffic);
    };
    server.serve(listener, stop).await.map_err(cannot)?;
    if verb.json { Ok(()) } else { output::line("Stopped; the demo has removed its files.") }
}

/// The command that starts this program here: its path, if `PATH` has no `laneway`.
fn own_name() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    match std::env::current_exe() {
        Ok(path) if !crate::commands::doctor::is_program("laneway", &here) => {
            path.strip_prefix(&here).unwrap_or(&path).display().to_string()
        }
        _ => "laneway".to_owned(),
    }
}

fn greeting(url: &str) -> String {
    let laneway = own_name();
    format!(
        "Laneway demo: three agents, a slow provider, a schedule, workers whose attempts sometimes fail\n\
         \x20 browser:   {url}/\n\
         \x20 terminal:  {laneway} top --url {url}\n\
         \x20 ask:       {laneway} chat writer \"hello\" --url {url}\n\
         Ctrl-C ends it.\n"
    )
}
