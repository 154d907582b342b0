//! This machine: its programs, its clock, its limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_config::{Config, Runner};
use laneway_core::Switch;
use laneway_store::Store;

use super::findings::{Finding, odd, well, wrong};
use crate::output::format;

/// How far two clocks may be apart before leases suffer.
const APART_MAX_MS: u64 = 1_000;
/// A clock before this was never set: 2025-01-01.
const LONG_AGO_MS: u64 = 1_735_689_600_000;
/// What a connection takes beside its own descriptor, and what the store needs.
const SPARE_FILES: u64 = 128;

/// Programs of agents and handlers that are not there.
pub(super) fn programs(config: &Config) -> Vec<Finding> {
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

/// Whether there is such a program, by its path or on `PATH`.
pub(crate) fn is_program(name: &str, dir: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_one = |path: PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        is_one(dir.join(name))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| is_one(dir.join(name)))
    }
}

/// Whether the clock can be right.
pub(super) async fn clock(store: Option<&Arc<dyn Store>>) -> Finding {
    let here = format::now().0;
    if here < LONG_AGO_MS {
        return wrong("clock", "this machine's clock was never set", "set it, and keep it right with NTP");
    }
    let Some(store) = store else { return well("clock", "this machine's own") };
    match store.time().await {
        Ok(None) => well("clock", "this machine's own"),
        Err(error) => wrong("clock", error.to_string(), "let the engine tell its time"),
        Ok(Some(there)) => {
            let apart = there.0.abs_diff(here);
            let detail = format!("{} from that of the store, which counts", format::duration(apart));
            if apart > APART_MAX_MS {
                odd("clock", detail, "keep both right with NTP: times that people see come from either")
            } else {
                well("clock", detail)
            }
        }
    }
}

/// Whether limits fit each other.
pub(super) fn limits(config: &Config) -> Vec<Finding> {
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
