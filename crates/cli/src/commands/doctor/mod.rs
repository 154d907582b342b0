//! `laneway doctor` checks configuration, programs, store, clock, limits and server, and says what to fix.

pub(crate) mod findings;
pub(crate) mod machine;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_config::{Config, StoreLocation};
use laneway_store::{Log, Store, StoreError};

use crate::arguments::Doctor;
use crate::commands::serve;
use crate::connection;
use crate::error::CliError;
use crate::output;
use crate::output::format;
use findings::{Finding, Verdict, odd, print, well, wrong};
pub(crate) use machine::is_program;
use machine::{clock, limits, programs};

/// Runs all checks and prints the findings. A wrong finding is an error.
pub(crate) async fn run(verb: Doctor) -> Result<(), CliError> {
    let findings = match serve::configuration(&verb.place, &[]) {
        Ok((config, file)) => examine(&verb, &config, file).await,
        Err(CliError::Input(why) | CliError::Failure(why)) => {
            vec![wrong(
                "configuration",
                why.trim_end(),
                "correct the file; `laneway config check` checks it again",
            )]
        }
        Err(other) => return Err(other),
    };
    if verb.place.json {
        output::json(&findings)?
    } else {
        print(&findings)?
    }
    if findings.iter().any(|finding| finding.verdict == Verdict::Wrong) {
        Err(CliError::Reported)
    } else {
        Ok(())
    }
}

async fn examine(verb: &Doctor, config: &Config, file: Option<PathBuf>) -> Vec<Finding> {
    let mut findings = vec![match &file {
        Some(file) => {
            let agents = format::counted(config.agents.len() as u64, "agent");
            well("configuration", format!("{}: {agents}", file.display()))
        }
        None => well("configuration", "no file; the server uses defaults and an agent `echo`"),
    }];
    findings.extend(
        config
            .warnings
            .iter()
            .map(|warning| odd("configuration", warning, "see docs/reference/configuration.md")),
    );
    findings.extend(programs(config));
    let server = server(verb, config).await;
    let is_served = server.verdict == Verdict::Ok && server.fix.is_none();
    findings.extend(store(config, is_served).await);
    findings.extend(limits(config));
    findings.push(server);
    findings
}

async fn store(config: &Config, is_served: bool) -> Vec<Finding> {
    let dir = match &config.store {
        StoreLocation::Memory => {
            let fix = "set `store` to a directory, redis://… or postgres://… to keep accepted tasks";
            let detail = "in memory: the server loses all tasks when it stops";
            return vec![odd("store", detail, fix), clock(None).await];
        }
        StoreLocation::Path(dir) => Some(dir),
        _ => None,
    };
    if let Some(dir) = dir.filter(|dir| !dir.join("laneway.db").exists()) {
        let parent = dir.ancestors().find(|dir| dir.is_dir() || dir.as_os_str().is_empty());
        let parent = parent.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = tempfile::tempdir_in(parent).map_err(|error| {
            let detail = format!("cannot create {}: {error}", dir.display());
            wrong("store", detail, format!("let this user write in {}", parent.display()))
        });
        let will_create = || well("store", format!("the server will create {}", dir.display()));
        let finding = made.map_or_else(|finding| finding, |_| will_create());
        return vec![finding, clock(None).await];
    }
    match open(&config.store).await {
        Ok(Some(store)) => {
            let finding = contents(&store).await;
            vec![finding, clock(Some(&store)).await]
        }
        Ok(None) => vec![clock(None).await],
        Err(StoreError::InUse { store, pid }) if is_served => {
            let by = pid.map(|pid| format!(" by process {pid}")).unwrap_or_default();
            vec![well("store", format!("{store} is in use{by}, and the server answers")), clock(None).await]
        }
        Err(error) => vec![wrong("store", error.to_string(), advice(&error)), clock(None).await],
    }
}

async fn open(place: &StoreLocation) -> Result<Option<Arc<dyn Store>>, StoreError> {
    serve::try_open_store(place).await
}

fn advice(error: &StoreError) -> &'static str {
    match error {
        StoreError::InUse { .. } => "stop the other process, or use it if it is a Laneway server",
        StoreError::Unfit { .. } => "change these settings of the store; docs/guide/replicas.md lists them",
        StoreError::Corrupt { .. } => {
            "do not start a server on it: restore a copy, or save the readable part with `laneway export`"
        }
        _ => "start the store's server, or correct `store`",
    }
}

/// Replays the whole log, so that damage shows here and not at the next start.
async fn contents(store: &Arc<dyn Store>) -> Finding {
    match Log::new(Arc::clone(store)).restore(0).await {
        Ok((head, lanes)) => {
            let live = format::counted(lanes.live_tasks() as u64, "live task");
            let detail = format!(
                "{}: version {}, {live}, durability {}",
                store.name(),
                head.version,
                store.durability().as_str()
            );
            match lanes.violation() {
                None => well("store", detail),
                Some(broken) => {
                    wrong("store", format!("{detail}\n{broken}"), "this is a bug; keep a copy and report it")
                }
            }
        }
        Err(error) => wrong("store", error.to_string(), advice(&error)),
    }
}

async fn server(verb: &Doctor, config: &Config) -> Finding {
    let url = verb.url.clone().unwrap_or_else(|| format!("http://{}", config.listen));
    let client = match connection::client(&url, verb.token.as_deref()) {
        Ok(client) => client,
        Err(_) => return wrong("server", "its address is wrong", "write it as http://HOST:PORT"),
    };
    let readiness = match client.readiness().await {
        Ok(readiness) => readiness,
        Err(error) if verb.url.is_none() => {
            return Finding {
                fix: Some("start it with `laneway serve`".to_owned()),
                ..well("server", error.to_string())
            };
        }
        Err(error) => return wrong("server", error.to_string(), "start it, or correct --url"),
    };
    match client.me().await {
        Err(error) => wrong("server", error.to_string(), "set LANEWAY_TOKEN to a token of that server"),
        Ok(me) => {
            let detail = format!("{url} is {} and accepts requests as {}", readiness.status, me.subject);
            if let Some(warning) = readiness.store_warning {
                odd(
                    "server",
                    format!("{detail}\nits store: {warning}"),
                    "repair the store while the server runs",
                )
            } else if readiness.status == "ready" {
                well("server", detail)
            } else {
                odd("server", detail, "`laneway top` shows what blocks it")
            }
        }
    }
}
