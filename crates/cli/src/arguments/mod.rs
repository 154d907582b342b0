//! What can be typed.

pub(crate) mod beside;
pub(crate) mod lanes;
pub(crate) mod work;

use clap::{Args, Parser, Subcommand};

pub(crate) use beside::{
    Audit, AuditCommand, ConfigCommand, ConfigFile, Doctor, Export, Import, Man, Mcp, NewToken, Serve, Shell,
    TokenCommand,
};
pub(crate) use lanes::{Lanes, LanesCommand, Schedules, SchedulesCommand, Sessions, SessionsCommand};
pub(crate) use work::{
    Cancel, Chat, Dlq, DlqCommand, Explain, Letters, Status, Submit, Tasks, TasksCommand, Top, Workers,
};

const AFTER: &str =
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused (no room now), 4 cannot reach the server.";

/// Lanes for agent work: what may run now, what waits, and for how long.
#[derive(Debug, Parser)]
#[command(name = "laneway", version, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Which server is asked, and how the answer is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct Asking {
    /// The server's address
    #[arg(
        long,
        value_name = "URL",
        env = "LANEWAY_URL",
        default_value = "http://127.0.0.1:7717",
        global = true
    )]
    pub(crate) url: String,
    /// The token to ask with; the variable is the better place for it, because others may see a command line
    #[arg(long, env = "LANEWAY_TOKEN", hide_env_values = true, global = true)]
    pub(crate) token: Option<String>,
    /// Prints JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Whether to ask before something that cannot be undone.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Sure {
    /// Does it without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves HTTP, SSE and WebSocket in front of agents
    Serve(Serve),
    /// Starts a server with three agents and lifelike traffic, to look at
    Demo(Demo),
    /// Shows what runs and what waits
    Status(Status),
    /// A live screen of the lanes
    Top(Top),
    /// Shows lanes; pauses, resumes, drains, clears and changes them
    Lanes(Lanes),
    /// Lists tasks; shows one, or changes its priority
    Tasks(Tasks),
    /// Cancels tasks
    Cancel(Cancel),
    /// Shows conversations and their waiting messages, sends to them, changes them
    Sessions(Sessions),
    /// Dead letters: tasks that could not be done
    Dlq(Dlq),
    /// Shows, makes, changes and fires schedules
    Schedules(Schedules),
    /// Shows workers, and what waits for one
    Workers(Workers),
    /// Does tasks that wait for workers
    Worker(crate::worker::WorkerArguments),
    /// Speaks MCP on standard input and output, for clients that start a program, with a server that runs
    Mcp(Mcp),
    /// Submits a task
    Submit(Submit),
    /// Asks an agent, and shows its place in line and its answer as they come
    Chat(Chat),
    /// Says why a task waits
    Explain(Explain),
    /// Makes, lists and removes tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Shows who did what; checks the log
    Audit(Audit),
    /// Copies a store into a directory
    Export(Export),
    /// Fills an empty store from such a directory
    Import(Import),
    /// Writes down when work arrived and how long it ran
    #[command(subcommand)]
    Trace(crate::commands::whatif::TraceCommand),
    /// Says what another configuration would have done with the work of a trace
    Simulate(crate::commands::whatif::Simulate),
    /// Checks configuration, store, clock and limits, and says what to fix
    Doctor(Doctor),
    /// Looks at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Prints completions for a shell
    Completions(Shell),
    /// Prints the manual page
    Man(Man),
    /// Plays a script of what the scheduler does; without a file a built-in tour
    Scenario {
        /// The script; - reads it from standard input
        file: Option<String>,
    },
}

/// What the demo is to do.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where to listen; by default on a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// Prints the address as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Command {
    /// Whether programs read what is printed.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Command::Status(verb) => verb.asking.json,
            Command::Top(verb) => verb.json,
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
    fn the_tree_of_arguments_holds_together() {
        Arguments::command().debug_assert();
    }
}
