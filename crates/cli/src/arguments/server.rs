//! Verbs that use the configuration or the store: serving, tokens, the audit log, copies, checks, manual pages.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Asking;

/// The configuration file, and the form of the output.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigFile {
    /// The configuration file [default: laneway.hcl, if it exists]
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
    /// The address to listen on; overrides the file
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// The store: a directory, memory, redis://… or postgres://…; overrides the file
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// The log level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: tracing::Level,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// The server's address [default: $LANEWAY_URL or http://127.0.0.1:7717]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The token; prefer $LANEWAY_TOKEN, because other users of the machine can see a command line
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The agent that the MCP client is, if it is one [default: $LANEWAY_AGENT]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The running task that waits for the answers, if there is one [default: $LANEWAY_TASK_ID]
    #[arg(long, value_name = "TASK")]
    pub(crate) parent: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Creates a token and prints it; it is never shown again
    Create(NewToken),
    /// Lists tokens, without their secrets
    List(ConfigFile),
    /// Removes a token
    Remove {
        /// The token's id: the part before the dot
        id: String,
        #[command(flatten)]
        place: ConfigFile,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// The name of the person or program that uses the token
    #[arg(long)]
    pub(crate) subject: String,
    /// What the token may do: read, submit, worker or admin; repeat it for several
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
    pub(crate) scopes: Vec<laneway_protocol::Scope>,
    /// The token may send requests on behalf of other people
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
    /// The maximum number of entries; older ones are left out
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Checks that no line was changed, removed or added; needs no server
    Verify {
        /// The audit log [default: the configured one]
        file: Option<PathBuf>,
        /// The configuration file [default: laneway.hcl, if it exists]
        #[arg(long, short, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Checks the file, and prints each setting with the place that sets it
    Check(Checked),
    /// Lists the settings in force that differ from a server's file, each with its origin
    Drift(Asking),
}

#[derive(Debug, Args)]
pub(crate) struct Checked {
    #[command(flatten)]
    pub(crate) place: ConfigFile,
    /// Also prints defaults
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The directory to create; it must not exist, or must be empty
    pub(crate) dir: PathBuf,
    /// The store: a directory, redis://… or postgres://…; overrides the configuration
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) place: ConfigFile,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A directory from `laneway export`, or an embedded store that no server uses
    pub(crate) dir: PathBuf,
    /// The store: a directory, redis://… or postgres://…; overrides the configuration
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) place: ConfigFile,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) place: ConfigFile,
    /// The server to check [default: the configured address]
    #[arg(long, value_name = "URL", env = "LANEWAY_URL")]
    pub(crate) url: Option<String>,
    /// The token for the server
    #[arg(long, env = "LANEWAY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    pub(crate) shell: String,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Writes one page per verb into this directory, instead of one page to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
