//! A table for look-ups by hash. It cannot be iterated, so no order can leak out of it.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Maps keys to small numbers without storing the keys: whoever owns the things that the numbers stand for
/// compares. The seed keeps outsiders from choosing keys that collide.
pub(crate) struct Index {
    table: HashTable<u32>,
    hasher: FixedState,
}

impl Index {
    pub(crate) fn new(seed: u64) -> Index {
        Index { table: HashTable::new(), hasher: FixedState::with_seed(seed) }
    }

    pub(crate) fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.table.find(hash, |number| is_it(*number)).copied()
    }

    pub(crate) fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(&FixedState, u32) -> u64) {
        let hasher = &self.hasher;
        self.table.insert_unique(hash, number, |number| hash_of(hasher, *number));
    }

    /// Removes `number`, which must be there under `hash`.
    pub(crate) fn remove(&mut self, hash: u64, number: u32) {
        let found = self.table.find_entry(hash, |other| *other == number);
        debug_assert!(found.is_ok(), "an index lost {number}");
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    /// Gives back what an empty table has grown to.
    pub(crate) fn shrink(&mut self) {
        if self.table.is_empty() {
            self.table = HashTable::new();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
