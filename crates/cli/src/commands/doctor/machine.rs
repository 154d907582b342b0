//! This machine: its programs, its clock, its limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_config::{Config, Runner};
use laneway_store::Store;

use super::findings::{Finding, odd, well, wrong};
use crate::output::format;

/// How far the clocks of the machine and the store may differ before leases suffer.
const APART_MAX_MS: u64 = 1_000;
/// 2025-01-01. A clock before it was never set.
const LONG_AGO_MS: u64 = 1_735_689_600_000;
/// Open files that the server needs in addition to one per connection, for its store and its programs.
const SPARE_FILES: u64 = 128;

/// Finds programs and directories of agents and handlers that do not exist.
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
            findings.push(wrong("programs", detail, "create it, or change cwd"));
        }
        if !is_program(name, dir) {
            let detail = format!("{who}: there is no program {name}");
            findings.push(wrong("programs", detail, "install it, or give its full path"));
        }
    }
    findings
}

/// Whether a program exists, by its path or on `PATH`.
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

/// Checks the clock of this machine against the store's.
pub(super) async fn clock(store: Option<&Arc<dyn Store>>) -> Finding {
    let here = format::now().0;
    if here < LONG_AGO_MS {
        return wrong("clock", "this machine's clock was never set", "set it, and synchronize it with NTP");
    }
    let Some(store) = store else { return well("clock", "the server uses this machine's clock") };
    match store.time().await {
        Ok(None) => well("clock", "the server uses this machine's clock"),
        Err(error) => wrong("clock", error.to_string(), "let the store's server report its time"),
        Ok(Some(there)) => {
            let apart = there.0.abs_diff(here);
            let detail = format!("differs by {} from the store's, which is used", format::duration(apart));
            if apart > APART_MAX_MS {
                odd("clock", detail, "synchronize both with NTP: shown times come from both")
            } else {
                well("clock", detail)
            }
        }
    }
}

/// Checks that the machine allows the configured connections.
pub(super) fn limits(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let needed = u64::from(config.server.connections_max) + SPARE_FILES;
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match files {
        Some(files) if files < needed => {
            let detail = format!(
                "at most {files} open files, but {} connections are allowed",
                config.server.connections_max
            );
            findings.push(odd(
                "limits",
                detail,
                format!("run `ulimit -n {needed}`, or lower server {{ connections_max }}"),
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
    findings
}
