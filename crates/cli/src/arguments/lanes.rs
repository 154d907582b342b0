//! Verbs about lanes, agents, sessions and schedules.

use clap::{Args, Subcommand};

use super::work::duration;
use super::{Asking, Sure};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Lanes {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// Also lists idle lanes
    #[arg(long)]
    pub(crate) all: bool,
    #[command(subcommand)]
    pub(crate) command: Option<LanesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LanesCommand {
    /// Shows one lane with all its settings
    Show {
        /// The lane
        lane: String,
    },
    /// Starts no further tasks of the lane
    Pause {
        /// The lane
        lane: String,
    },
    /// Ends a pause or a drain
    Resume {
        /// The lane
        lane: String,
    },
    /// Accepts no further tasks for the lane
    Drain {
        /// The lane
        lane: String,
    },
    /// Cancels all waiting tasks of the lane
    Clear {
        /// The lane
        lane: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Takes the slots of the running tasks of the lane at once
    Release {
        /// The lane
        lane: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Changes settings of a lane, or of all lanes that match a pattern
    Set {
        /// The lane, or a pattern
        lane: String,
        /// Settings as in the configuration: max_concurrency=4 timeout=20m retry.max_retries=3
        #[arg(value_name = "SETTING=VALUE", required = true)]
        settings: Vec<String>,
    },
    /// Withdraws changes of settings: the configuration file decides again
    Reset {
        /// The lane, or a pattern
        lane: String,
        /// Settings, or groups of settings such as retry
        #[arg(value_name = "SETTING", required = true)]
        settings: Vec<String>,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Agents {
    #[command(flatten)]
    pub(crate) asking: Asking,
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Creates an agent, which all replicas know
    Add {
        /// The agent's name
        name: String,
        /// Settings as in the configuration: url=http://127.0.0.1:9000/chat max_concurrency=2 lanes=main,gpu
        #[arg(value_name = "SETTING=VALUE", required = true)]
        settings: Vec<String>,
    },
    /// Changes settings of an agent that was created here; SETTING=null removes one
    Set {
        /// The agent
        name: String,
        /// Settings as in the configuration
        #[arg(value_name = "SETTING=VALUE", required = true)]
        settings: Vec<String>,
    },
    /// Removes an agent that was created here, and cancels its waiting tasks
    Remove {
        /// The agent
        name: String,
        #[command(flatten)]
        sure: Sure,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sessions {
    #[command(flatten)]
    pub(crate) asking: Asking,
    /// The maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Shows one session with its settings, its waiting messages and its parked messages
    Show {
        /// The session
        key: String,
    },
    /// Sends a message, or a directive such as /queue
    Send {
        /// The session
        key: String,
        /// The message
        text: String,
        /// The agent that answers
        #[arg(long)]
        agent: String,
    },
    /// Changes how the session queues messages
    Set(SessionSet),
    /// Withdraws a waiting message, or deletes a parked message
    Withdraw {
        /// The session
        key: String,
        /// The message's id
        message: String,
    },
    /// Passes a waiting message into the running turn
    Promote {
        /// The session
        key: String,
        /// The message's id
        message: String,
    },
    /// Sends a parked message again
    Resend {
        /// The session
        key: String,
        /// The message's id
        message: String,
    },
    /// Stops the running turn
    Interrupt {
        /// The session
        key: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Drops all waiting messages
    Clear {
        /// The session
        key: String,
        #[command(flatten)]
        sure: Sure,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SessionSet {
    /// The session
    pub(crate) key: String,
    /// The queue mode: collect, followup, steer, steer-backlog, interrupt, reject or latest
    #[arg(long, required_unless_present_any = ["debounce", "max_wait", "cap", "drop"])]
    pub(crate) mode: Option<String>,
    /// How long no message must arrive before a turn starts
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) debounce: Option<u64>,
    /// After how long a turn starts although messages still arrive
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) max_wait: Option<u64>,
    /// The maximum number of waiting messages
    #[arg(long)]
    pub(crate) cap: Option<u32>,
    /// Which messages are dropped above the maximum: old, new or summarize
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
    /// Creates a schedule
    Add(NewSchedule),
    /// Enables a schedule
    Enable {
        /// The schedule
        name: String,
    },
    /// Disables a schedule: it does not fire
    Disable {
        /// The schedule
        name: String,
    },
    /// Fires a schedule now
    Run {
        /// The schedule
        name: String,
    },
    /// Shows a schedule
    Show {
        /// The schedule
        name: String,
    },
    /// Lists the last firings of a schedule
    Runs {
        /// The schedule
        name: String,
    },
    /// Removes a schedule
    Remove {
        /// The schedule
        name: String,
        #[command(flatten)]
        sure: Sure,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewSchedule {
    /// The schedule's name
    pub(crate) name: String,
    /// When to fire: five or six cron fields, or a word such as @daily
    #[arg(long)]
    pub(crate) cron: String,
    /// The time zone [default: UTC]
    #[arg(long)]
    pub(crate) timezone: Option<String>,
    /// The agent that gets the message
    #[arg(long)]
    pub(crate) agent: String,
    /// The message
    #[arg(long)]
    pub(crate) message: String,
    /// The session of the turn
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// The person on whose behalf its turns run
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// What to do about missed firings: skip them, or fire one
    #[arg(long)]
    pub(crate) catch_up: Option<String>,
}
