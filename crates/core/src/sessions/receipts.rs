//! How messages ended, for later queries, and the texts of parked messages.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::api::name::LaneName;
use crate::api::time::Timestamp;
use crate::sessions::message::{Message, MessageEnd, MessageId};

/// How many ends of messages are remembered; the oldest go first.
pub const RECEIPTS_MAX: usize = 10_000;
/// How many parked messages are kept; the oldest go first.
pub const PARKED_MAX: usize = 1000;

/// The last messages that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipts {
    ends: BTreeMap<MessageId, (MessageEnd, Timestamp)>,
    /// The oldest first.
    order: VecDeque<MessageId>,
    /// Messages that failed too often, whole, the oldest first.
    parked: VecDeque<(LaneName, Message)>,
}

impl Receipts {
    pub(crate) fn get(&self, message: MessageId) -> Option<(&MessageEnd, Timestamp)> {
        self.ends.get(&message).map(|(end, at)| (end, *at))
    }

    pub(crate) fn keep(&mut self, message: MessageId, end: MessageEnd, at: Timestamp) {
        if self.ends.insert(message, (end, at)).is_none() {
            self.order.push_back(message);
        }
        if self.order.len() > RECEIPTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }

    pub(crate) fn park(&mut self, session: &LaneName, message: Message) {
        if self.parked.len() == PARKED_MAX {
            self.parked.pop_front();
        }
        self.parked.push_back((session.clone(), message));
    }

    /// A parked message is no longer kept.
    pub(crate) fn take_up(&mut self, message: MessageId) {
        self.parked.retain(|(_, kept)| kept.id != message);
    }

    pub(super) fn parked(&self) -> impl Iterator<Item = &(LaneName, Message)> {
        self.parked.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_bound_of_remembered_ends_the_oldest_goes() {
        let mut receipts = Receipts::default();
        let end = || MessageEnd::Delivered { turn: crate::api::ids::TaskId(1) };
        for number in 1..=RECEIPTS_MAX as u128 {
            receipts.keep(MessageId(number), end(), Timestamp(1));
        }
        assert!(receipts.get(MessageId(1)).is_some());
        receipts.keep(MessageId(0), end(), Timestamp(2));
        assert!(receipts.get(MessageId(1)).is_none());
        assert!(receipts.get(MessageId(2)).is_some() && receipts.get(MessageId(0)).is_some());
    }
}
