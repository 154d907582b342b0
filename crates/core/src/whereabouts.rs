//! In which session a message is: eight bytes for each.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::message::MessageId;

/// Finds the session of a message by a part of its hash; whether it really is there, the session knows.
pub(crate) struct Whereabouts {
    /// Part of the message's hash, and the session.
    table: HashTable<(u32, u32)>,
    hasher: FixedState,
}

impl Whereabouts {
    pub(crate) fn new(seed: u64) -> Whereabouts {
        Whereabouts { table: HashTable::new(), hasher: FixedState::with_seed(seed) }
    }

    fn part(&self, message: MessageId) -> u32 {
        self.hasher.hash_one(message) as u32
    }

    pub(crate) fn insert(&mut self, message: MessageId, session: u32) {
        let part = self.part(message);
        self.table.insert_unique(spread(part), (part, session), |(part, _)| spread(*part));
    }

    pub(crate) fn remove(&mut self, message: MessageId, session: u32) {
        let part = self.part(message);
        if let Ok(entry) = self.table.find_entry(spread(part), |known| *known == (part, session)) {
            entry.remove();
        }
        if self.table.is_empty() {
            self.table = HashTable::new();
        }
    }

    /// The session of a message among those that may be it.
    pub(crate) fn find(&self, message: MessageId, is_there: impl Fn(u32) -> bool) -> Option<u32> {
        let part = self.part(message);
        let found = self.table.find(spread(part), |(known, session)| *known == part && is_there(*session));
        found.map(|(_, session)| *session)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

/// The table looks at the highest and the lowest bits.
fn spread(part: u32) -> u64 {
    u64::from(part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
