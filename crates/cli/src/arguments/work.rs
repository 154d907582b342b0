//! Verbs about tasks.

use clap::{Args, Subcommand};

use super::{Asking, Sure};

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// One line for a status bar, `Agent: 2/3` or `Agent: 3/3 (2 queued)`; nothing when idle
    #[arg(long)]
    pub(crate) line: bool,
    /// Goes on, and prints again whenever something changes
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The server's address
    #[arg(long, value_name = "URL", env = "LANEWAY_URL", default_value = "http://127.0.0.1:7717")]
    pub(crate) url: String,
    /// The token to ask with
    #[arg(long, env = "LANEWAY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Prints what the screen would show, once, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tasks that fit everything that is given.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    /// Those that name this lane
    #[arg(long)]
    pub(crate) lane: Option<String>,
    /// Turns of this conversation
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Those of this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Those with this label
    #[arg(long)]
    pub(crate) group: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Tasks {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// queued, running, retrying, or an end: completed, failed, timed_out, cancelled, expired, wait_timeout, lost
    #[arg(long)]
    pub(crate) status: Option<String>,
    #[command(flatten)]
    pub(crate) which: Selection,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<TasksCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Shows one task, live or over
    Show {
        /// Which
        id: String,
    },
    /// Changes the priority of a waiting task
    Priority {
        /// Which
        id: String,
        /// 0 to 9, or user, schedule, agent, background
        priority: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Which tasks, waiting or running
    #[arg(value_name = "TASK", conflicts_with_all = ["all", "lane", "session", "kind", "group"])]
    pub(crate) ids: Vec<String>,
    /// Everything that waits; what runs goes on
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
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<DlqCommand>,
}

/// Dead letters: those that are named, or those that fit.
#[derive(Clone, Debug, Args)]
pub(crate) struct Letters {
    /// Which
    #[arg(value_name = "TASK", conflicts_with_all = ["all", "lane", "kind"])]
    pub(crate) ids: Vec<String>,
    /// All there are
    #[arg(long, conflicts_with_all = ["lane", "kind"])]
    pub(crate) all: bool,
    /// Those of tasks with this home lane
    #[arg(long)]
    pub(crate) lane: Option<String>,
    /// Those of this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    pub(crate) sure: Sure,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// Shows one with its payload
    Show {
        /// Which
        id: String,
    },
    /// Runs them again, as new tasks
    Redrive(Letters),
    /// Throws them away
    Discard(Letters),
}

#[derive(Debug, Args)]
pub(crate) struct Workers {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Shows what waits for a worker instead
    #[arg(long)]
    pub(crate) pending: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The task
    #[arg(value_name = "TASK")]
    pub(crate) id: String,
}

/// How urgent it is, and how long it may take.
#[derive(Clone, Debug, Args)]
pub(crate) struct Timing {
    /// 0 to 9, or user, schedule, agent, background
    #[arg(long)]
    pub(crate) priority: Option<String>,
    /// How long it may wait: 90s, 5m, or milliseconds; 0: it starts now or is refused
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait_timeout: Option<u64>,
    /// How long an attempt may take
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<u64>,
    /// When it is too late to start, from now
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) deadline: Option<u64>,
    /// Asking twice under one key is asking once
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// What sort of work it is
    pub(crate) kind: String,
    /// What whoever runs it gets: JSON, or a text; - reads it from standard input
    #[arg(default_value = "null")]
    pub(crate) payload: String,
    /// A lane that it needs, the home lane first; may be given several times
    #[arg(long = "lane", value_name = "LANE")]
    pub(crate) lanes: Vec<String>,
    /// A label that tasks which belong together share
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// It does not start before
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) run_after: Option<u64>,
    /// How many attempts may follow a failed one
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    #[command(flatten)]
    pub(crate) timing: Timing,
    /// Waits for the end, and shows the place in line and then the run
    #[arg(long)]
    pub(crate) wait: bool,
    /// Prints the task's id and nothing else
    #[arg(long, short, conflicts_with_all = ["wait", "json"])]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Who is asked
    pub(crate) agent: String,
    /// What; without it a conversation on the terminal, or all of standard input where that is no terminal
    pub(crate) message: Option<String>,
    /// The conversation; by default the agent's own
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// A stateless task, beside others, in place of a turn of a conversation
    #[arg(long, conflicts_with = "session")]
    pub(crate) parallel: bool,
    /// Does not wait for the answer; prints the task's id
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) timing: Timing,
}

#[derive(Debug, thiserror::Error)]
#[error("must be a number with ms, s, m, h or d, or a whole number of milliseconds")]
pub(crate) struct NotADuration;

/// A duration as people write it, in milliseconds.
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
