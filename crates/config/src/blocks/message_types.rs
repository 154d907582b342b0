//! How messages to busy sessions are queued, as plain values.

use std::collections::BTreeMap;

use laneway_core::{MessagePolicy, MessageQueue, MessageSettings, QueueOverrides};

/// How messages to busy sessions are queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// For every channel without settings of its own.
    pub queue: MessageQueue,
    /// What of that the file says; the rest are defaults.
    pub given: QueueOverrides,
    /// What channels have of their own, by the channel's name.
    pub by_channel: BTreeMap<String, QueueOverrides>,
    /// What no message, directive or session can go beyond.
    pub policy: MessagePolicy,
    /// Messages of a turn that was lost are sent again, marked as such; else they are set aside.
    pub redeliver: bool,
}

impl Messages {
    /// The same, as a scheduler takes it.
    pub fn settings(&self) -> MessageSettings {
        let by_channel = self.by_channel.iter().map(|(name, own)| (name.as_str().into(), *own));
        MessageSettings {
            global: self.given,
            by_channel: by_channel.collect(),
            policy: self.policy,
            redeliver: self.redeliver,
        }
    }

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
