//! Verbs about tasks.

use clap::{Args, Subcommand};

use super::{Asking, Sure};

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Prints one line for a status bar, `Agent: 2/3` or `Agent: 3/3 (2 queued)`; nothing when idle
    #[arg(long)]
    pub(crate) line: bool,
    /// With --line: the line of this lane [default: global, which all tasks need]
    #[arg(long, requires = "line")]
    pub(crate) lane: Option<String>,
    /// Keeps running, and prints again at each change
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The server's address
    #[arg(long, value_name = "URL", env = "LANEWAY_URL", default_value = "http://127.0.0.1:7717")]
    pub(crate) url: String,
    /// The token; prefer LANEWAY_TOKEN, because other users of the machine can see a command line
    #[arg(long, env = "LANEWAY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Prints the screen's data once, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A filter: a task must match every given option.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    /// Only tasks that name this lane
    #[arg(long)]
    pub(crate) lane: Option<String>,
    /// Only turns of this session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Only tasks of this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Only tasks of this group
    #[arg(long)]
    pub(crate) group: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Tasks {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// queued, running, retrying, completed, failed, timed_out, cancelled, expired, wait_timeout or lost
    #[arg(long)]
    pub(crate) status: Option<String>,
    #[command(flatten)]
    pub(crate) which: Selection,
    /// The maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<TasksCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Shows one task, also one that has ended
    Show {
        /// The task's id
        id: String,
    },
    /// Changes the priority of a waiting task
    Priority {
        /// The task's id
        id: String,
        /// 0 to 9, or user, schedule, agent, background
        priority: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The tasks, waiting or running
    #[arg(value_name = "TASK", conflicts_with_all = ["all", "lane", "session", "kind", "group"])]
    pub(crate) ids: Vec<String>,
    /// Cancels all waiting tasks; running tasks continue
    #[arg(long, conflicts_with_all = ["lane", "session", "kind", "group"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) which: Selection,
    #[command(flatten)]
    pub(crate) sure: Sure,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Dlq {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The maximum number of dead letters
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<DlqCommand>,
}

/// The dead letters to act on: by id, all, or all that match.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadLetters {
    /// The ids of the tasks
    #[arg(value_name = "TASK", conflicts_with_all = ["all", "lane", "kind"])]
    pub(crate) ids: Vec<String>,
    /// All dead letters
    #[arg(long, conflicts_with_all = ["lane", "kind"])]
    pub(crate) all: bool,
    /// Only tasks with this home lane
    #[arg(long)]
    pub(crate) lane: Option<String>,
    /// Only tasks of this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    pub(crate) sure: Sure,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// Shows one dead letter with its payload
    Show {
        /// The task's id
        id: String,
    },
    /// Submits the work of dead letters again, as new tasks
    Redrive(DeadLetters),
    /// Deletes dead letters
    Discard(DeadLetters),
}

#[derive(Debug, Args)]
pub(crate) struct Workers {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Lists the tasks that wait for a worker
    #[arg(long)]
    pub(crate) pending: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The task's id
    #[arg(value_name = "TASK")]
    pub(crate) id: String,
}

/// How urgent a task is, and how long it may take.
#[derive(Clone, Debug, Args)]
pub(crate) struct Timing {
    /// 0 to 9, or user, schedule, agent, background
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// How long the task may wait: 90s, 5m, or milliseconds; 0 means start now or refuse
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait_timeout: Option<u64>,
    /// How long an attempt may take
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<u64>,
    /// From now, the time after which no attempt starts
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) deadline: Option<u64>,
    /// The idempotency key: a second request with the same key submits nothing
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The kind of the task
    pub(crate) kind: String,
    /// The payload for the handler: JSON or text; - reads it from standard input
    #[arg(default_value = "null")]
    pub(crate) payload: String,
    /// A lane that the task needs, the home lane first; repeat it for several
    #[arg(long = "lane", value_name = "LANE")]
    pub(crate) lanes: Vec<String>,
    /// A label that related tasks share
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// How long to wait before the task may start
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) run_after: Option<u64>,
    /// The maximum number of retries after a failed attempt
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    #[command(flatten)]
    pub(crate) timing: Timing,
    /// Waits for the task to end, and shows its position and its progress
    #[arg(long)]
    pub(crate) wait: bool,
    /// Prints only the task's id
    #[arg(long, short, conflicts_with_all = ["wait", "json"])]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The agent
    pub(crate) agent: String,
    /// The message; without it, a conversation on a terminal, or all of standard input elsewhere
    pub(crate) message: Option<String>,
    /// The session [default: the agent's own]
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Starts a task without a session, which may run in parallel with others
    #[arg(long, conflicts_with = "session")]
    pub(crate) parallel: bool,
    /// Prints the task's id and does not wait for the answer
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) timing: Timing,
}

#[derive(Debug, thiserror::Error)]
#[error("must be a number with ms, s, m, h or d, or a whole number of milliseconds")]
pub(crate) struct NotADuration;

/// Parses a duration such as `90s` into milliseconds.
pub(crate) fn duration(text: &str) -> Result<u64, NotADuration> {
    let digits = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| NotADuration)?;
    let unit: u64 = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(NotADuration),
    };
    number.checked_mul(unit).ok_or(NotADuration)
}
