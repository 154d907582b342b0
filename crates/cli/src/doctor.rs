//! `laneway doctor`: configuration, store, clock, limits, server; what is wrong and what to do about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_config::{Config, Runner, Store as StorePlace};
use laneway_core::Switch;
use laneway_store::{Log, Store, StoreError};
use serde::Serialize;

use crate::arguments::Doctor;
use crate::connection;
use crate::output::{self, Rows};
use crate::serve;
use crate::shown;
use crate::trouble::Trouble;

/// How far two clocks may be apart before leases suffer.
const APART_MAX_MS: u64 = 1_000;
/// A clock before this was never set: 2025-01-01.
const LONG_AGO_MS: u64 = 1_735_689_600_000;
/// What a connection takes beside its own descriptor, and what the store needs.
const SPARE_FILES: u64 = 128;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Wrong,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

fn well(check: &'static str, detail: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Ok, detail: detail.into(), fix: None }
}

fn odd(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Warning, detail: detail.into(), fix: Some(fix.into()) }
}

fn wrong(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Wrong, detail: detail.into(), fix: Some(fix.into()) }
}

/// Looks at everything and prints what it found; an error if something is wrong.
pub(crate) async fn run(verb: Doctor) -> Result<(), Trouble> {
    let findings = match serve::configuration(&verb.place, &[]) {
        Ok((config, file)) => examine(&verb, &config, file).await,
        Err(Trouble::Input(why) | Trouble::Failure(why)) => {
            vec![wrong(
                "configuration",
                why.trim_end(),
                "correct the file; `laneway config check` reads it again",
            )]
        }
        Err(other) => return Err(other),
    };
    match verb.place.json {
        true => output::json(&findings)?,
        false => print(&findings)?,
    }
    match findings.iter().any(|finding| finding.verdict == Verdict::Wrong) {
        true => Err(Trouble::Told),
        false => Ok(()),
    }
}

fn print(findings: &[Finding]) -> Result<(), Trouble> {
    let mut rows = Rows::under(&["CHECK", "", "FOUND"]);
    for finding in findings {
        let word = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Wrong => "WRONG",
        };
        for (number, line) in finding.detail.lines().enumerate() {
            let (check, word) = if number == 0 { (finding.check, word) } else { ("", "") };
            rows.add([check.to_owned(), word.to_owned(), line.to_owned()]);
        }
        rows.add_all(finding.fix.iter().map(|fix| [String::new(), String::new(), format!("→ {fix}")]));
    }
    rows.print("")?;
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (warnings, wrongs) = (count(Verdict::Warning), count(Verdict::Wrong));
    output::line("")?;
    match (wrongs, warnings) {
        (0, 0) => output::line("All is well."),
        (0, _) => output::line(&format!("It will work; {} to look at.", shown::counted(warnings, "thing"))),
        _ => output::line(&format!("{} must be fixed.", shown::counted(wrongs, "thing"))),
    }
}

async fn examine(verb: &Doctor, config: &Config, file: Option<PathBuf>) -> Vec<Finding> {
    let mut findings = vec![match &file {
        Some(file) => {
            let agents = shown::counted(config.agents.len() as u64, "agent");
            well("configuration", format!("{}: {agents}", file.display()))
        }
        None => well("configuration", "no file, so defaults and an agent `echo`"),
    }];
    findings.extend(
        config.warnings.iter().map(|warning| odd("configuration", warning, "see docs/configuration.md")),
    );
    findings.extend(programs(config));
    let server = server(verb, config).await;
    let is_served = server.verdict == Verdict::Ok && server.fix.is_none();
    findings.extend(store(config, is_served).await);
    findings.extend(limits(config));
    findings.push(server);
    findings
}

/// Programs of agents and handlers that are not there.
fn programs(config: &Config) -> Vec<Finding> {
    let agents = config.agents.iter().map(|agent| (format!("agent {}", agent.name), &agent.runner));
    let handlers =
        config.handlers.iter().map(|handler| (format!("handler {}", handler.kind), &handler.runner));
    let mut findings = Vec::new();
    for (who, runner) in agents.chain(handlers) {
        let Runner::Program(program) = runner else { continue };
        let Some(name) = program.command.first() else { continue };
        let dir = program.cwd.as_deref().unwrap_or(Path::new("."));
        if !dir.is_dir() {
            let detail = format!("{who}: there is no directory {}", dir.display());
            findings.push(wrong("programs", detail, "make it, or change cwd"));
        }
        if !is_program(name, dir) {
            let detail = format!("{who}: there is no program {name}");
            findings.push(wrong("programs", detail, "install it, or name it by its whole path"));
        }
    }
    findings
}

fn is_program(name: &str, dir: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_one = |path: PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    match name.contains('/') {
        true => is_one(dir.join(name)),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| is_one(dir.join(name)))
        }
    }
}

async fn store(config: &Config, is_served: bool) -> Vec<Finding> {
    let dir = match &config.store {
        StorePlace::Memory => {
            let fix = "name a directory, redis://… or postgres://… as `store` to keep what was accepted";
            return vec![odd("store", "in memory: all is lost with the process", fix), clock(None).await];
        }
        StorePlace::Path(dir) => Some(dir),
        _ => None,
    };
    if let Some(dir) = dir.filter(|dir| !dir.join("laneway.db").exists()) {
        let parent = dir.ancestors().find(|dir| dir.is_dir() || dir.as_os_str().is_empty());
        let parent = parent.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = tempfile::tempdir_in(parent).map_err(|error| {
            let detail = format!("{} cannot be made: {error}", dir.display());
            wrong("store", detail, format!("let this user write in {}", parent.display()))
        });
        let finding =
            made.map_or_else(|finding| finding, |_| well("store", format!("{} will be made", dir.display())));
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

async fn open(place: &StorePlace) -> Result<Option<Arc<dyn Store>>, StoreError> {
    serve::try_open_store(place).await
}

fn advice(error: &StoreError) -> &'static str {
    match error {
        StoreError::InUse { .. } => "stop the other process, or ask the server that it is",
        StoreError::Unfit { .. } => "set up the engine as it says; docs/replicas.md has the settings",
        StoreError::Corrupt { .. } => {
            "do not start on it: restore a copy, or `laneway export` what can be read"
        }
        _ => "start the engine, or correct `store`",
    }
}

/// Reads all of the log: what cannot be replayed is noticed here and not at the next start.
async fn contents(store: &Arc<dyn Store>) -> Finding {
    match Log::new(Arc::clone(store)).restore(0).await {
        Ok((head, lanes)) => {
            let live = shown::counted(lanes.live_tasks() as u64, "live task");
            let detail = format!(
                "{}: version {}, {live}, keeps to {}",
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

async fn clock(store: Option<&Arc<dyn Store>>) -> Finding {
    let here = shown::now().0;
    if here < LONG_AGO_MS {
        return wrong("clock", "this machine's clock was never set", "set it, and keep it right with NTP");
    }
    let Some(store) = store else { return well("clock", "this machine's own") };
    match store.time().await {
        Ok(None) => well("clock", "this machine's own"),
        Err(error) => wrong("clock", error.to_string(), "let the engine tell its time"),
        Ok(Some(there)) => {
            let apart = there.0.abs_diff(here);
            let detail = format!("{} from that of the store, which counts", shown::duration(apart));
            match apart > APART_MAX_MS {
                true => {
                    odd("clock", detail, "keep both right with NTP: times that people see come from either")
                }
                false => well("clock", detail),
            }
        }
    }
}

fn limits(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let needed = u64::from(config.server.connections_max) + SPARE_FILES;
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match files {
        Some(files) if files < needed => {
            let detail = format!(
                "{files} open files at most, and {} connections are allowed",
                config.server.connections_max
            );
            findings.push(odd(
                "limits",
                detail,
                format!("ulimit -n {needed}, or a smaller server {{ connections_max }}"),
            ));
        }
        files => {
            let files = files.map_or_else(|| "any number of".to_owned(), |files| files.to_string());
            findings.push(well(
                "limits",
                format!("{files} open files, {} connections", config.server.connections_max),
            ));
        }
    }
    let limit_of = |lane: &laneway_config::Lane| match lane.settings.max_concurrency {
        Some(Switch::On(limit)) => Some(limit),
        _ => None,
    };
    let global = config.lanes.iter().find(|lane| lane.lanes.as_str() == "global").and_then(limit_of);
    if let Some(global) = global {
        for lane in &config.lanes {
            if let Some(limit) = limit_of(lane).filter(|limit| *limit > global) {
                let detail =
                    format!("lane {} lets {limit} run, and global only {global} of everything", lane.lanes);
                findings.push(odd(
                    "limits",
                    detail,
                    "raise global (or LANEWAY_MAX_CONCURRENT_TASKS), or lower the lane",
                ));
            }
        }
    }
    findings
}

async fn server(verb: &Doctor, config: &Config) -> Finding {
    let url = verb.url.clone().unwrap_or_else(|| format!("http://{}", config.listen));
    let client = match connection::client(&url, verb.token.as_deref()) {
        Ok(client) => client,
        Err(_) => return wrong("server", "its address makes no sense", "write it as http://HOST:PORT"),
    };
    let readiness = match client.readiness().await {
        Ok(readiness) => readiness,
        Err(error) if verb.url.is_none() => {
            return Finding {
                fix: Some("`laneway serve` starts it".to_owned()),
                ..well("server", error.to_string())
            };
        }
        Err(error) => return wrong("server", error.to_string(), "start it, or correct --url"),
    };
    match client.me().await {
        Err(error) => wrong("server", error.to_string(), "set LANEWAY_TOKEN to a token of that server"),
        Ok(me) => {
            let detail = format!("{url} is {}, and knows us as {}", readiness.status, me.subject);
            match readiness.status == "ready" {
                true => well("server", detail),
                false => odd("server", detail, "`laneway top` shows what holds it up"),
            }
        }
    }
}
