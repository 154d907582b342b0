//! Starts a program with less than this process may use.
//!
//! Limits can only be set from within a process without a moment in which they do not hold. So this program is started
//! in the other's place, limits itself, and becomes it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use clap::Parser;
use laneway_config::ProcessLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::CliError;

/// The verb under which this program is started.
const VERB: &str = "limited";
/// So many seconds after the first warning (`SIGXCPU`) a process that goes on is killed.
const CPU_GRACE: u64 = 2;

/// Why this program cannot be started once more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnProgramError {
    #[error("cannot find this program: {0}")]
    NotFound(#[source] std::io::Error),
    #[error("this program's path is no text")]
    NotText,
}

/// What this program is told when it starts another. No verb for people, so it is in no help and no completion.
#[derive(Debug, Parser)]
pub(crate) struct Limited {
    #[arg(long)]
    cpu_seconds: Option<u64>,
    #[arg(long)]
    memory_bytes: Option<u64>,
    #[arg(long)]
    open_files: Option<u64>,
    #[arg(long)]
    file_bytes: Option<u64>,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// What is asked, if this process is one that a worker started in the place of another.
pub(crate) fn asked() -> Option<Limited> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    (words.first()? == VERB).then(|| Limited::parse_from(words))
}

/// The words that start `command` under limits.
pub(crate) fn under(limits: &ProcessLimits, command: Vec<String>) -> Result<Vec<String>, OwnProgramError> {
    let mut words = vec![own_program()?, VERB.to_owned()];
    let given = [
        ("cpu-seconds", limits.cpu_seconds),
        ("memory-bytes", limits.memory_bytes),
        ("open-files", limits.open_files),
        ("file-bytes", limits.file_bytes),
    ];
    words.extend(given.iter().filter_map(|(name, value)| value.map(|value| format!("--{name}={value}"))));
    words.push("--".to_owned());
    words.extend(command);
    Ok(words)
}

/// This very program, also after its file was replaced by a newer one.
fn own_program() -> Result<String, OwnProgramError> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".to_owned());
    }
    let path = std::env::current_exe().map_err(OwnProgramError::NotFound)?;
    path.into_os_string().into_string().map_err(|_| OwnProgramError::NotText)
}

/// Limits this process and becomes the command; comes back only if that fails.
pub(crate) fn limited(asked: Limited) -> Result<(), CliError> {
    let limits = [
        (Resource::Cpu, asked.cpu_seconds, CPU_GRACE),
        (Resource::As, asked.memory_bytes, 0),
        (Resource::Nofile, asked.open_files, 0),
        (Resource::Fsize, asked.file_bytes, 0),
        // A program that dies of a limit leaves no picture of what it was given.
        (Resource::Core, Some(0), 0),
    ];
    for (resource, most, grace) in limits {
        let Some(most) = most else { continue };
        // Nobody can have more than the worker has.
        let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit {
            current: Some(most.min(ceiling)),
            maximum: Some(most.saturating_add(grace).min(ceiling)),
        };
        let cannot = |error| CliError::Failure(format!("cannot limit {resource:?}: {error}"));
        setrlimit(resource, limit).map_err(cannot)?;
    }
    let Some((program, arguments)) = asked.command.split_first() else {
        return Err(CliError::Input("there is no command".to_owned()));
    };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(CliError::Failure(format!("cannot start {}: {error}", program.display())))
}
