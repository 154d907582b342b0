//! Why a server cannot be opened or reloaded.

use std::io;
use std::path::{Path, PathBuf};

use laneway_config::Listen;

use crate::admin::audit::AuditError;
use crate::admin::token_file::TokenError;
use crate::schedules::cron::CronError;

/// Why a server cannot be opened or reloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A file of the state directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another server uses the state directory.
    #[error(
        "{} is in use by another server: give each a directory of its own, with `state` in its server block",
        .0.display()
    )]
    InUse(PathBuf),
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The audit log cannot be used.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A schedule of the configuration is invalid.
    #[error("{place}: schedule \"{schedule}\": {source}")]
    Schedule {
        /// The place in the configuration.
        place: String,
        /// The name of the schedule.
        schedule: String,
        /// The error.
        source: CronError,
    },
    /// Other machines could use the server without a token.
    #[error(
        "other machines can reach {0}, and there is no token; create one with `laneway token create`, or listen on \
         127.0.0.1"
    )]
    NoToken(Listen),
    /// The address of the trace collector is invalid.
    #[error(
        "the address of the collector (server.otlp or OTEL_EXPORTER_OTLP_ENDPOINT) must be like http://127.0.0.1:4318, not \
         {0}"
    )]
    TracesAddress(String),
    /// A variable of OpenTelemetry that cannot be read.
    #[error("{name} must be {expected}")]
    TelemetryVariable {
        /// Its name.
        name: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The system has no usable TLS or resolver.
    #[error("cannot make an HTTP client: {0}")]
    HttpClient(#[from] reqwest::Error),
    /// There is no configuration file to reload.
    #[error("the server was started without a configuration file")]
    NoConfigFile,
    /// The configuration file is invalid.
    #[error(transparent)]
    Config(#[from] laneway_config::Errors),
    /// The configuration file changes a setting that needs a restart.
    #[error("listen and store take effect with a restart only; nothing was changed")]
    NeedsRestart,
    /// The reload took effect, but the audit log could not record it.
    #[error("{0}")]
    Unrecorded(String),
    /// The engine refused or failed.
    #[error(transparent)]
    Engine(#[from] laneway_engine::Error),
}

/// A file of the state directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// The error of one operation on a file, for `map_err`.
    pub(crate) fn of(action: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError { action, path: path.clone(), source }
    }
}
