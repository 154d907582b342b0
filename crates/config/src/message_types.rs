//! How messages to busy sessions are queued, as plain values.

use std::collections::BTreeMap;

use laneway_core::Millis;

/// How messages to busy sessions are queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// For every channel without settings of its own.
    pub queue: MessageQueue,
    /// What channels have of their own, by the channel's name.
    pub by_channel: BTreeMap<String, ChannelQueue>,
}

impl Messages {
    /// What holds in a channel.
    pub fn in_channel(&self, channel: &str) -> MessageQueue {
        let own = self.by_channel.get(channel).copied().unwrap_or_default();
        MessageQueue {
            mode: own.mode.unwrap_or(self.queue.mode),
            debounce: own.debounce.unwrap_or(self.queue.debounce),
            max_wait: own.max_wait.unwrap_or(self.queue.max_wait),
            cap: own.cap.unwrap_or(self.queue.cap),
            drop: own.drop.unwrap_or(self.queue.drop),
        }
    }
}

/// How messages are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageQueue {
    /// Default collect.
    pub mode: Mode,
    /// How long it must have been quiet. Default 1 s.
    pub debounce: Millis,
    /// After how long the turn starts although it is not quiet. Default 10 s, never shorter than `debounce`.
    pub max_wait: Millis,
    /// How many messages may wait, 1 or more. Default 20.
    pub cap: u32,
    /// What happens to those that are too many. Default summarize.
    pub drop: DropRule,
}

impl Default for MessageQueue {
    fn default() -> MessageQueue {
        MessageQueue {
            mode: Mode::Collect,
            debounce: Millis::from_secs(1),
            max_wait: Millis::from_secs(10),
            cap: 20,
            drop: DropRule::Summarize,
        }
    }
}

/// What one channel says of its own; the rest is as everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChannelQueue {
    pub mode: Option<Mode>,
    pub debounce: Option<Millis>,
    pub max_wait: Option<Millis>,
    pub cap: Option<u32>,
    pub drop: Option<DropRule>,
}

/// What happens to a message whose session is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// It waits, and all that wait become one turn.
    Collect,
    /// It waits, and becomes a turn of its own.
    Followup,
    /// It goes into the running turn, if that takes it; else it waits.
    Steer,
    /// Both.
    SteerBacklog,
    /// The running turn is cancelled, and this one runs.
    Interrupt,
    /// It is refused.
    Reject,
    /// It waits in place of whichever waited before.
    Latest,
}

/// Which message goes when too many wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropRule {
    /// The oldest.
    Old,
    /// The newcomer, who is told.
    New,
    /// The oldest, with a line of it kept in a summary.
    Summarize,
}

impl Mode {
    /// The word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Collect => "collect",
            Mode::Followup => "followup",
            Mode::Steer => "steer",
            Mode::SteerBacklog => "steer-backlog",
            Mode::Interrupt => "interrupt",
            Mode::Reject => "reject",
            Mode::Latest => "latest",
        }
    }
}

impl DropRule {
    /// The word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            DropRule::Old => "old",
            DropRule::New => "new",
            DropRule::Summarize => "summarize",
        }
    }
}
