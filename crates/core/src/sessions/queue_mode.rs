//! How messages to a busy session are queued: the modes, their bounds, and where each value comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::time::Millis;

/// What happens to a message whose session is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DropRule {
    /// The oldest.
    Old,
    /// The newcomer; its sender gets that as the answer.
    New,
    /// The oldest, with a line of it kept in a summary.
    Summarize,
}

impl Mode {
    /// Every word that people write for a mode.
    pub const WORDS: &'static [(&'static str, Mode)] = &[
        ("collect", Mode::Collect),
        ("coalesce", Mode::Collect),
        ("followup", Mode::Followup),
        ("follow-up", Mode::Followup),
        ("followups", Mode::Followup),
        ("steer", Mode::Steer),
        ("steering", Mode::Steer),
        ("queue", Mode::Steer),
        ("queued", Mode::Steer),
        ("steer-backlog", Mode::SteerBacklog),
        ("steer+backlog", Mode::SteerBacklog),
        ("steer_backlog", Mode::SteerBacklog),
        ("interrupt", Mode::Interrupt),
        ("interrupts", Mode::Interrupt),
        ("abort", Mode::Interrupt),
        ("reject", Mode::Reject),
        ("latest", Mode::Latest),
    ];
    /// The modes, one word for each, for errors that list the choices.
    pub const CHOICES: &'static str =
        "collect, followup, steer, steer-backlog, interrupt, queue, reject, latest";

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

    /// The mode that a word stands for; case does not matter.
    pub fn parse(word: &str) -> Option<Mode> {
        find(Mode::WORDS, word)
    }
}

impl DropRule {
    /// Every word that people write for a rule.
    pub const WORDS: &'static [(&'static str, DropRule)] = &[
        ("old", DropRule::Old),
        ("oldest", DropRule::Old),
        ("new", DropRule::New),
        ("newest", DropRule::New),
        ("summarize", DropRule::Summarize),
        ("summary", DropRule::Summarize),
    ];
    /// The rules, one word for each.
    pub const CHOICES: &'static str = "old, new, summarize";

    /// The word that people write.
    pub fn as_str(self) -> &'static str {
        match self {
            DropRule::Old => "old",
            DropRule::New => "new",
            DropRule::Summarize => "summarize",
        }
    }

    /// The rule that a word stands for; case does not matter.
    pub fn parse(word: &str) -> Option<DropRule> {
        find(DropRule::WORDS, word)
    }
}

fn find<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

/// How messages are queued, with every value known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What one level (a message, a session, a channel, all channels) says of its own; the rest comes from the level
/// below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueOverrides {
    /// What happens to a message whose session is busy.
    pub mode: Option<Mode>,
    /// How long it must have been quiet.
    pub debounce: Option<Millis>,
    /// After how long the turn starts although it is not quiet.
    pub max_wait: Option<Millis>,
    /// How many messages may wait, 1 or more.
    pub cap: Option<u32>,
    /// What happens to those that are too many.
    pub drop: Option<DropRule>,
}

impl QueueOverrides {
    /// Whether no setting is set.
    pub fn is_empty(&self) -> bool {
        *self == QueueOverrides::default()
    }

    /// These, and for settings that are not set, those of `below`.
    #[must_use]
    pub fn over(self, below: QueueOverrides) -> QueueOverrides {
        QueueOverrides {
            mode: self.mode.or(below.mode),
            debounce: self.debounce.or(below.debounce),
            max_wait: self.max_wait.or(below.max_wait),
            cap: self.cap.or(below.cap),
            drop: self.drop.or(below.drop),
        }
    }

    /// Whether the policy allows this; if not, which value it does not, and its bound.
    pub fn check(&self, policy: &MessagePolicy) -> Result<(), BeyondPolicy> {
        if self.cap == Some(0) {
            return Err(BeyondPolicy::Cap(policy.cap_max));
        }
        match self {
            QueueOverrides { cap: Some(cap), .. } if *cap > policy.cap_max => {
                Err(BeyondPolicy::Cap(policy.cap_max))
            }
            QueueOverrides { debounce: Some(length), .. } if *length > policy.wait_max => {
                Err(BeyondPolicy::Debounce(policy.wait_max))
            }
            QueueOverrides { max_wait: Some(length), .. } if *length > policy.wait_max => {
                Err(BeyondPolicy::MaxWait(policy.wait_max))
            }
            _ => Ok(()),
        }
    }
}

/// Bounds for all messages and directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePolicy {
    /// The largest `cap`. Default 100.
    pub cap_max: u32,
    /// The longest `debounce` and `max_wait`. Default 10 minutes.
    pub wait_max: Millis,
}

impl Default for MessagePolicy {
    fn default() -> MessagePolicy {
        MessagePolicy { cap_max: 100, wait_max: Millis::from_secs(600) }
    }
}

/// A value that the policy does not allow, with the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BeyondPolicy {
    /// `cap` is at most this, and at least 1.
    #[error("cap is a whole number from 1 to {0}")]
    Cap(u32),
    /// `debounce` is at most this.
    #[error("debounce is at most {}", .0.written())]
    Debounce(Millis),
    /// `max_wait` is at most this.
    #[error("max_wait is at most {}", .0.written())]
    MaxWait(Millis),
}

/// How messages are queued, with exceptions by channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSettings {
    /// For every channel without settings of its own.
    pub global: QueueOverrides,
    /// What channels have of their own, by the channel's name.
    pub by_channel: BTreeMap<Arc<str>, QueueOverrides>,
    /// Bounds for all messages and directives.
    pub policy: MessagePolicy,
    /// Messages of a lost turn are sent again, marked as such; else they are parked. Default true.
    pub redeliver: bool,
    /// How many turns a message may be in before it is parked, 1 to [`ATTEMPTS_MAX`]. Default 7.
    pub attempts: u8,
}

/// The most turns that a message may be in.
pub const ATTEMPTS_MAX: u8 = 100;

impl Default for MessageSettings {
    fn default() -> MessageSettings {
        MessageSettings {
            global: QueueOverrides::default(),
            by_channel: BTreeMap::new(),
            policy: MessagePolicy::default(),
            redeliver: true,
            attempts: 7,
        }
    }
}

/// Which level a value comes from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Origin {
    /// The message itself.
    Message,
    /// What was set for this session.
    Session,
    /// The settings of the message's channel.
    Channel,
    /// The settings of all channels.
    Global,
    /// The built-in default.
    Default,
}

impl Origin {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Message => "message",
            Origin::Session => "session",
            Origin::Channel => "channel",
            Origin::Global => "global",
            Origin::Default => "default",
        }
    }
}

/// A value and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sourced<T> {
    /// What holds.
    pub value: T,
    /// Who says so.
    pub origin: Origin,
}

/// How messages are queued, each value with where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same fields as MessageQueue, which documents them")]
pub struct EffectiveQueue {
    pub mode: Sourced<Mode>,
    pub debounce: Sourced<Millis>,
    pub max_wait: Sourced<Millis>,
    pub cap: Sourced<u32>,
    pub drop: Sourced<DropRule>,
}

impl MessageSettings {
    /// The settings of a channel, whose name may be in any case.
    fn of_channel(&self, name: &str) -> Option<&QueueOverrides> {
        let in_any_case = || self.by_channel.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        self.by_channel.get(name).or_else(|| in_any_case().map(|(_, own)| own))
    }

    /// What holds for a message with these overrides, in a session with these, in this channel.
    pub fn effective(
        &self,
        message: &QueueOverrides,
        session: &QueueOverrides,
        channel: Option<&str>,
    ) -> EffectiveQueue {
        let silent = QueueOverrides::default();
        let channel = channel.and_then(|name| self.of_channel(name)).unwrap_or(&silent);
        let levels = [
            (message, Origin::Message),
            (session, Origin::Session),
            (channel, Origin::Channel),
            (&self.global, Origin::Global),
        ];
        let default = MessageQueue::default();
        let mut queue = EffectiveQueue {
            mode: pick(&levels, |level| level.mode, default.mode),
            debounce: pick(&levels, |level| level.debounce, default.debounce),
            max_wait: pick(&levels, |level| level.max_wait, default.max_wait),
            cap: pick(&levels, |level| level.cap, default.cap),
            drop: pick(&levels, |level| level.drop, default.drop),
        };
        // A policy that was lowered later bounds what was stored before.
        queue.cap.value = queue.cap.value.clamp(1, self.policy.cap_max.max(1));
        queue.debounce.value = queue.debounce.value.min(self.policy.wait_max);
        queue.max_wait.value = queue.max_wait.value.min(self.policy.wait_max).max(queue.debounce.value);
        queue
    }
}

impl EffectiveQueue {
    /// The values alone.
    pub fn values(&self) -> MessageQueue {
        MessageQueue {
            mode: self.mode.value,
            debounce: self.debounce.value,
            max_wait: self.max_wait.value,
            cap: self.cap.value,
            drop: self.drop.value,
        }
    }
}

/// The value of the strongest level that has one.
fn pick<T>(
    levels: &[(&QueueOverrides, Origin)],
    value: impl Fn(&QueueOverrides) -> Option<T>,
    default: T,
) -> Sourced<T> {
    let found = levels
        .iter()
        .find_map(|(level, origin)| value(level).map(|value| Sourced { value, origin: *origin }));
    found.unwrap_or(Sourced { value: default, origin: Origin::Default })
}
