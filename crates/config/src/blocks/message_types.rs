//! The block `messages` as plain values.

use std::collections::BTreeMap;

use laneway_core::{MessagePolicy, MessageQueue, MessageSettings, QueueOverrides};

/// How messages to busy sessions are queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// The settings of channels without their own.
    pub queue: MessageQueue,
    /// The settings in `queue` that the file gives; the others are defaults.
    pub given: QueueOverrides,
    /// The settings of channels, by the channel's name.
    pub by_channel: BTreeMap<String, QueueOverrides>,
    /// The limits for messages, directives and sessions.
    pub policy: MessagePolicy,
    /// Whether the messages of a lost turn are sent again with a mark. Otherwise they are parked.
    pub redeliver: bool,
    /// How many turns a message may be in before it is parked.
    pub attempts: u8,
}

impl Messages {
    /// The settings for the scheduler.
    pub fn settings(&self) -> MessageSettings {
        let by_channel = self.by_channel.iter().map(|(name, own)| (name.as_str().into(), *own));
        MessageSettings {
            global: self.given,
            by_channel: by_channel.collect(),
            policy: self.policy,
            redeliver: self.redeliver,
            attempts: self.attempts,
        }
    }

    /// The settings of a channel.
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
