//! What is done beside a running server: serving, tokens, the audit log, the configuration, stores.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Asking;

/// Which configuration is meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigFile {
    /// The configuration file; laneway.hcl, if there is one
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) place: ConfigFile,
    /// Where to listen, in place of what the file says
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Where to keep the state, in place of what the file says: a directory, memory, redis://… or postgres://…
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// How much to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: tracing::Level,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// The server; $LANEWAY_URL, or http://127.0.0.1:7717
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The token; better in $LANEWAY_TOKEN, where other users of the machine cannot read it
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The agent that asks, if it is one; $LANEWAY_AGENT
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The running task that asks and waits, if it is one; $LANEWAY_TASK_ID
    #[arg(long, value_name = "TASK")]
    pub(crate) parent: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints it, once
    Create(NewToken),
    /// Lists tokens, without their secrets
    List(ConfigFile),
    /// Takes a token away
    Remove {
        /// The part before the dot
        id: String,
        #[command(flatten)]
        place: ConfigFile,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// Who uses it
    #[arg(long)]
    pub(crate) subject: String,
    /// What it may do: read, submit, worker, admin; may be given several times
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
    pub(crate) scopes: Vec<laneway_protocol::Scope>,
    /// It may say for whom it asks
    #[arg(long)]
    pub(crate) speaks_for_others: bool,
    #[command(flatten)]
    pub(crate) place: ConfigFile,
}

#[derive(Debug, thiserror::Error)]
#[error("must be one of read, submit, worker, admin")]
struct UnknownScope;

fn scope(text: &str) -> Result<laneway_protocol::Scope, UnknownScope> {
    let known = laneway_protocol::Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
    known.ok_or(UnknownScope)
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// How many lines at most, the newest
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Checks that no line was changed, taken out or put in; needs no server
    Verify {
        /// The log; that of the configuration, if none is given
        file: Option<PathBuf>,
        /// The configuration file; laneway.hcl, if there is one
        #[arg(long, short, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Checks the file and prints every value that holds, and where it came from
    Check(Checked),
}

#[derive(Debug, Args)]
pub(crate) struct Checked {
    #[command(flatten)]
    pub(crate) place: ConfigFile,
    /// Also what is only a default
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The directory to make, which must not exist or be empty
    pub(crate) dir: PathBuf,
    /// The store, in place of what the configuration says: a directory, redis://… or postgres://…
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) place: ConfigFile,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The directory that `laneway export` made, or an embedded store that no server uses
    pub(crate) dir: PathBuf,
    /// The store, in place of what the configuration says: a directory, redis://… or postgres://…
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) place: ConfigFile,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) place: ConfigFile,
    /// The server to look at as well; without it the address of the configuration
    #[arg(long, value_name = "URL", env = "LANEWAY_URL")]
    pub(crate) url: Option<String>,
    /// The token to ask with
    #[arg(long, env = "LANEWAY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// Which shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    pub(crate) shell: String,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Writes a page for each verb into this directory, in place of one to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
