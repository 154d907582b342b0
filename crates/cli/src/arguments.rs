//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Lanes for agent work: what may run now, what waits, and for how long.
#[derive(Debug, Parser)]
#[command(name = "laneway", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plays a script of what the scheduler does; without a file a built-in tour
    Scenario {
        /// The script; - reads it from standard input
        file: Option<String>,
    },
    /// Serves HTTP, SSE and WebSocket in front of agents
    Serve(Serve),
    /// Speaks MCP on standard input and output, for clients that start a program, with a server that runs
    Mcp(Mcp),
    /// Makes, lists and removes tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Checks the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Looks at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// Which configuration is meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct Place {
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
    pub(crate) place: Place,
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
    List(Place),
    /// Takes a token away
    Remove {
        /// The part before the dot
        id: String,
        #[command(flatten)]
        place: Place,
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
    pub(crate) place: Place,
}

fn scope(text: &str) -> Result<laneway_protocol::Scope, String> {
    let known = laneway_protocol::Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
    known.ok_or_else(|| "must be one of read, submit, worker, admin".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Checks that no line was changed, taken out or put in
    Verify {
        /// The log; that of the configuration, if none is given
        file: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Checks the file and prints every value that holds, and where it came from
    Check {
        #[command(flatten)]
        place: Place,
        /// Also what is only a default
        #[arg(long)]
        all: bool,
    },
}
