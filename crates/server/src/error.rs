//! Why a server cannot be opened or reloaded.

use std::io;
use std::path::{Path, PathBuf};

use laneway_config::Listen;

use crate::admin::audit::AuditError;
use crate::admin::tokens::TokenError;
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
    /// A schedule of the configuration makes no sense.
    #[error("{place}: schedule \"{schedule}\": {source}")]
    Schedule {
        /// Where the configuration says so.
        place: String,
        /// Which schedule.
        schedule: String,
        /// What is wrong with it.
        source: CronError,
    },
    /// Anybody could use the server.
    #[error(
        "{0} can be reached from elsewhere, and there is no token; make one with `laneway token create`, or listen on \
         127.0.0.1"
    )]
    NoToken(Listen),
    /// The address of the collector of traces makes no sense.
    #[error(
        "the address for traces (server.otlp or OTEL_EXPORTER_OTLP_ENDPOINT) must be like http://127.0.0.1:4318, not \
         {0}"
    )]
    TracesAddress(String),
    /// TLS or the resolver of the system cannot be set up.
    #[error("cannot make an HTTP client: {0}")]
    HttpClient(#[from] reqwest::Error),
    /// There is no configuration file to read again.
    #[error("the server was started without a configuration file")]
    NoConfigFile,
    /// The configuration file makes no sense.
    #[error(transparent)]
    Config(#[from] laneway_config::Errors),
    /// The configuration file changes what only a restart can change.
    #[error("listen and store take effect with a restart only; nothing was changed")]
    NeedsRestart,
    /// The reload took effect, and the audit log could not record it.
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
