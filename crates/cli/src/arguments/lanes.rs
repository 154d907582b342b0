//! Verbs about lanes, conversations and schedules.

use clap::{Args, Subcommand};

use super::work::duration;
use super::{Asking, Sure};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Lanes {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Also lanes in which nothing is
    #[arg(long)]
    pub(crate) all: bool,
    #[command(subcommand)]
    pub(crate) command: Option<LanesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LanesCommand {
    /// Shows one lane with all its settings
    Show {
        /// Which
        lane: String,
    },
    /// Nothing starts in the lane any more
    Pause {
        /// Which
        lane: String,
    },
    /// Ends a pause or a drain
    Resume {
        /// Which
        lane: String,
    },
    /// Nothing new is accepted in the lane any more
    Drain {
        /// Which
        lane: String,
    },
    /// Cancels everything that waits in the lane
    Clear {
        /// Which
        lane: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Changes settings of a lane, or of all lanes that fit a pattern
    Set {
        /// Which
        lane: String,
        /// As in the configuration: max_concurrency=4 timeout=20m retry.max_retries=3
        #[arg(value_name = "SETTING=VALUE", required = true)]
        settings: Vec<String>,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sessions {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Shows one with its settings, its waiting messages and those that were set aside
    Show {
        /// Which
        key: String,
    },
    /// Sends a message, also a directive such as /queue
    Send {
        /// To which
        key: String,
        /// What
        text: String,
        /// Who answers
        #[arg(long)]
        agent: String,
    },
    /// Changes how messages are queued
    Set(SessionSet),
    /// Withdraws a message that waits, or throws away one that was set aside
    Withdraw {
        /// From which
        key: String,
        /// Which message
        message: String,
    },
    /// Sends a message again that was set aside
    Resend {
        /// To which
        key: String,
        /// Which message
        message: String,
    },
    /// Stops the turn that is under way
    Interrupt {
        /// Which
        key: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Drops all messages that wait
    Clear {
        /// Which
        key: String,
        #[command(flatten)]
        sure: Sure,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SessionSet {
    /// Which
    pub(crate) key: String,
    /// collect, followup, steer, steer-backlog, interrupt, reject or latest
    #[arg(long, required_unless_present_any = ["debounce", "max_wait", "cap", "drop"])]
    pub(crate) mode: Option<String>,
    /// How long it must have been quiet
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) debounce: Option<u64>,
    /// After how long a turn starts although it is not quiet
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) max_wait: Option<u64>,
    /// How many messages may wait
    #[arg(long)]
    pub(crate) cap: Option<u32>,
    /// Which go when there are more: old, new or summarize
    #[arg(long)]
    pub(crate) drop: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Schedules {
    #[command(flatten)]
    pub(crate) asking: Asking,
    #[command(subcommand)]
    pub(crate) command: Option<SchedulesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// Makes one
    Add(NewSchedule),
    /// Lets one fire again
    Enable {
        /// Which
        name: String,
    },
    /// Keeps one from firing
    Disable {
        /// Which
        name: String,
    },
    /// Fires one now
    Run {
        /// Which
        name: String,
    },
    /// Shows the last firings of one
    Runs {
        /// Which
        name: String,
    },
    /// Takes one away
    Remove {
        /// Which
        name: String,
        #[command(flatten)]
        sure: Sure,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewSchedule {
    /// Its name
    pub(crate) name: String,
    /// When: five or six fields of cron, or @daily and the like
    #[arg(long)]
    pub(crate) cron: String,
    /// In which time zone; UTC by default
    #[arg(long)]
    pub(crate) timezone: Option<String>,
    /// Who is asked
    #[arg(long)]
    pub(crate) agent: String,
    /// What
    #[arg(long)]
    pub(crate) message: String,
    /// In which conversation
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// About firings that were missed: skip or one
    #[arg(long)]
    pub(crate) catch_up: Option<String>,
}
