//! Starts a program under limits.
//!
//! A process can only limit itself without a gap. So the worker starts this program, which limits itself and then
//! becomes the other program (`exec`).

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use clap::Parser;
use laneway_config::ProcessLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::CliError;

/// The first argument of this program when a worker starts it for a limited program.
const VERB: &str = "limited";
/// How many seconds after the first warning (`SIGXCPU`) the kernel kills the process.
const CPU_GRACE: u64 = 2;

/// Why the worker cannot start this program again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnProgramError {
    #[error("cannot find this program: {0}")]
    NotFound(#[source] std::io::Error),
    #[error("this program's path must be UTF-8")]
    NotText,
}

/// The arguments for a limited program. They are internal, so no help and no completion shows them.
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

/// The arguments, if a worker started this process for a limited program.
pub(crate) fn asked() -> Option<Limited> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    (words.first()? == VERB).then(|| Limited::parse_from(words))
}

/// The command line that starts `command` under limits.
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

/// The path of this program, also after an upgrade has replaced its file.
fn own_program() -> Result<String, OwnProgramError> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".to_owned());
    }
    let path = std::env::current_exe().map_err(OwnProgramError::NotFound)?;
    path.into_os_string().into_string().map_err(|_| OwnProgramError::NotText)
}

/// Limits this process and becomes the command. Returns only on failure.
pub(crate) fn limited(asked: Limited) -> Result<(), CliError> {
    let limits = [
        (Resource::Cpu, asked.cpu_seconds, CPU_GRACE),
        (Resource::As, asked.memory_bytes, 0),
        (Resource::Nofile, asked.open_files, 0),
        (Resource::Fsize, asked.file_bytes, 0),
        // A core dump would store the payload.
        (Resource::Core, Some(0), 0),
    ];
    for (resource, most, grace) in limits {
        let Some(most) = most else { continue };
        // A program cannot have more than its worker.
        let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let limit = Rlimit {
            current: Some(most.min(ceiling)),
            maximum: Some(most.saturating_add(grace).min(ceiling)),
        };
        let cannot = |error| CliError::Failure(format!("cannot limit {resource:?}: {error}"));
        setrlimit(resource, limit).map_err(cannot)?;
    }
    let Some((program, arguments)) = asked.command.split_first() else {
        return Err(CliError::Input("a command is missing".to_owned()));
    };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(CliError::Failure(format!("cannot start {}: {error}", program.display())))
}
