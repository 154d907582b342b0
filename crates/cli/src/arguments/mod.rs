//! The verbs and options of the command line.

pub(crate) mod lanes;
pub(crate) mod server;
pub(crate) mod work;

use clap::{Args, Parser, Subcommand};

pub(crate) use lanes::{
    Agents, AgentsCommand, Lanes, LanesCommand, Schedules, SchedulesCommand, Sessions, SessionsCommand,
};
pub(crate) use server::{
    Audit, AuditCommand, ConfigCommand, ConfigFile, Doctor, Export, Import, Man, Mcp, NewToken, Serve, Shell,
    TokenCommand,
};
pub(crate) use work::{
    Cancel, Chat, DeadLetters, Dlq, DlqCommand, Explain, Status, Submit, Tasks, TasksCommand, Top, Workers,
};

const AFTER: &str =
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused (no room now), 4 cannot reach the server.";

/// Lanes for agent work: they decide which tasks run and which wait.
#[derive(Debug, Parser)]
#[command(name = "laneway", version, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The server to ask, and the form of the output.
#[derive(Clone, Debug, Args)]
pub(crate) struct Asking {
    /// The server's address
    #[arg(
        long,
        value_name = "URL",
        env = "LANEWAY_URL",
        default_value = crate::connection::DEFAULT_URL,
        global = true
    )]
    pub(crate) url: String,
    /// The token; prefer LANEWAY_TOKEN, because other users of the machine can see a command line
    #[arg(long, env = "LANEWAY_TOKEN", hide_env_values = true, global = true)]
    pub(crate) token: Option<String>,
    /// Prints JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Whether to ask the user before an action that cannot be undone.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Sure {
    /// Does not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves HTTP, SSE and WebSocket in front of agents
    Serve(Serve),
    /// Starts a demo server with three agents and simulated traffic
    Demo(Demo),
    /// Shows running and waiting tasks
    Status(Status),
    /// Shows a live screen of the lanes
    Top(Top),
    /// Lists agents; adds, changes or removes one
    Agents(Agents),
    /// Lists lanes; shows, pauses, resumes, drains, clears, releases or changes one
    Lanes(Lanes),
    /// Lists tasks; shows one, or changes its priority
    Tasks(Tasks),
    /// Cancels tasks
    Cancel(Cancel),
    /// Lists sessions; shows one, sends messages to it, or changes it
    Sessions(Sessions),
    /// Lists dead letters (tasks that failed for good); redrives or discards them
    Dlq(Dlq),
    /// Lists schedules; adds, enables, disables, fires or removes one
    Schedules(Schedules),
    /// Lists workers, or the tasks that wait for one
    Workers(Workers),
    /// Runs a worker: claims tasks of external lanes and runs them
    Worker(crate::worker::WorkerArguments),
    /// Connects an MCP client, over standard input and output, to a running server
    Mcp(Mcp),
    /// Submits a task
    Submit(Submit),
    /// Sends a message to an agent, and shows the position and the answer as they come
    Chat(Chat),
    /// Explains why a task waits
    Explain(Explain),
    /// Creates, lists and removes tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Shows the audit log, or verifies it
    Audit(Audit),
    /// Copies a store into a directory
    Export(Export),
    /// Fills an empty store from a directory that `export` wrote
    Import(Import),
    /// Exports when tasks arrived and how long they ran
    #[command(subcommand)]
    Trace(crate::commands::whatif::TraceCommand),
    /// Replays a trace under another configuration, and compares the waits
    Simulate(crate::commands::whatif::Simulate),
    /// Checks configuration, store, clock and limits, and says what to fix
    Doctor(Doctor),
    /// Checks the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Prints completions for a shell
    Completions(Shell),
    /// Prints the manual page
    Man(Man),
    /// Plays a script of commands to the scheduler; without a file, a built-in tour
    Scenario {
        /// The script; - reads it from standard input
        file: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The address to listen on; port 0 takes a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// Prints the address as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Command {
    /// Whether errors also go to standard output as JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Command::Status(verb) => verb.asking.json,
            Command::Top(verb) => verb.json,
            Command::Agents(verb) => verb.asking.json,
            Command::Lanes(verb) => verb.asking.json,
            Command::Tasks(verb) => verb.asking.json,
            Command::Cancel(verb) => verb.asking.json,
            Command::Sessions(verb) => verb.asking.json,
            Command::Dlq(verb) => verb.asking.json,
            Command::Schedules(verb) => verb.asking.json,
            Command::Workers(verb) => verb.asking.json,
            Command::Submit(verb) => verb.asking.json,
            Command::Chat(verb) => verb.asking.json,
            Command::Explain(verb) => verb.asking.json,
            Command::Audit(verb) => verb.asking.json,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
