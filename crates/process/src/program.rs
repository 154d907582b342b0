//! What to run, and with what around it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use thiserror::Error;

use crate::running::RunningProgram;

/// The variables that a program gets by default: where to find programs and files, and the language. None could hold a
/// secret.
pub const ALLOWED: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM"];

/// A program with its arguments and surroundings, to be started any number of times.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Program {
    argv: Vec<String>,
    allowed: Vec<String>,
    variables: Vec<(String, String)>,
    dir: Option<PathBuf>,
    pub(crate) grace: Duration,
    pub(crate) output_max: usize,
}

/// Why a program was not started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no first word.
    #[error("a command needs a program as its first word")]
    NoProgram,
    /// A word, a variable or a value holds a NUL, or the name of a variable is empty or holds a `=`.
    #[error("{0}")]
    Unusable(&'static str),
    /// There is no such directory to run in.
    #[error("there is no directory {} to run in", .0.display())]
    NoDirectory(PathBuf),
    /// The operating system did not start it.
    #[error("cannot start {program}: {reason}")]
    Refused {
        /// The first word.
        program: String,
        /// Why.
        reason: String,
    },
}

impl Program {
    /// The first word is the program, looked for in `PATH` if it has no slash; the others are its arguments.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Result<Program, StartError> {
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        if argv.first().is_none_or(String::is_empty) {
            return Err(StartError::NoProgram);
        }
        if argv.iter().any(|word| word.contains('\0')) {
            return Err(StartError::Unusable("a word of a command must not hold a NUL"));
        }
        Ok(Program {
            argv,
            allowed: ALLOWED.iter().map(|name| (*name).to_owned()).collect(),
            variables: Vec::new(),
            dir: None,
            grace: Duration::from_secs(4),
            output_max: 16 * 1024 * 1024,
        })
    }

    /// It gets these variables of this process's environment, where they are set, and no others. Default:
    /// [`ALLOWED`].
    pub fn allow(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Program {
        self.allowed = names.into_iter().map(Into::into).collect();
        self
    }

    /// It gets this variable, whatever this process's environment says.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Program {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// It runs in this directory. Default: that of this process.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Program {
        self.dir = Some(dir.into());
        self
    }

    /// How long it may go on after it was asked to stop. Default 4 s.
    pub fn grace(mut self, grace: Duration) -> Program {
        self.grace = grace;
        self
    }

    /// How long it may go on after it was asked to stop.
    pub fn grace_len(&self) -> Duration {
        self.grace
    }

    /// How many bytes of what it writes [`run`](Program::run) keeps; a program that writes more is stopped. Default
    /// 16 MiB.
    pub fn output_max(mut self, bytes: usize) -> Program {
        self.output_max = bytes;
        self
    }

    /// The first word.
    pub fn name(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// Starts it. Needs a tokio runtime with I/O and time.
    pub fn start(&self) -> Result<RunningProgram, StartError> {
        RunningProgram::start(self)
    }

    /// The command, in a group of its own, with pipes.
    pub(crate) fn command(&self) -> Result<std::process::Command, StartError> {
        let (program, arguments) = self.argv.split_first().ok_or(StartError::NoProgram)?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).env_clear();
        for name in &self.allowed {
            if let Some(value) = std::env::var_os(checked_name(name)?) {
                command.env(name, value);
            }
        }
        for (name, value) in &self.variables {
            if value.contains('\0') {
                return Err(StartError::Unusable("the value of a variable must not hold a NUL"));
            }
            command.env(checked_name(name)?, value);
        }
        if let Some(dir) = &self.dir {
            command.current_dir(existing(dir)?);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(command)
    }

    pub(crate) fn refused(&self, error: &std::io::Error) -> StartError {
        let reason = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
            std::io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
            _ => error.to_string(),
        };
        StartError::Refused { program: self.name().to_owned(), reason }
    }
}

fn checked_name(name: &str) -> Result<&str, StartError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(StartError::Unusable("the name of a variable must not be empty nor hold '=' or a NUL"));
    }
    Ok(name)
}

/// Looked at before, because the error of a start does not say which of the two was not found.
fn existing(dir: &Path) -> Result<&Path, StartError> {
    if dir.is_dir() { Ok(dir) } else { Err(StartError::NoDirectory(dir.to_owned())) }
}
