//! A table for look-ups by hash. It cannot be iterated, so no order can leak out of it.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::state::table::Idx;

/// Maps keys to table indexes without storing the keys: the caller compares. The seed keeps callers from choosing keys
/// that collide.
pub(crate) struct HashIndex<T> {
    /// Each with half of its hash, so that a table can grow without a look at the keys.
    entries: HashTable<(u32, Idx<T>)>,
    hasher: FixedState,
}

impl<T> HashIndex<T> {
    pub(crate) fn new(seed: u64) -> HashIndex<T> {
        HashIndex { entries: HashTable::new(), hasher: FixedState::with_seed(seed) }
    }

    pub(crate) fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The entry under `hash` that `is_it` accepts.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(Idx<T>) -> bool) -> Option<Idx<T>> {
        let half = half(hash);
        let found = self.entries.find(spread(half), |(other, index)| *other == half && is_it(*index));
        found.map(|(_, index)| *index)
    }

    pub(crate) fn insert(&mut self, hash: u64, index: Idx<T>) {
        let half = half(hash);
        self.entries.insert_unique(spread(half), (half, index), |(half, _)| spread(*half));
    }

    /// Removes `index`, which must be there under `hash`.
    pub(crate) fn remove(&mut self, hash: u64, index: Idx<T>) {
        let half = half(hash);
        let found = self.entries.find_entry(spread(half), |entry| *entry == (half, index));
        debug_assert!(found.is_ok(), "a hash index lost {index:?}");
        if let Ok(found) = found {
            found.remove();
        }
    }

    /// Frees the memory of an empty table.
    pub(crate) fn shrink(&mut self) {
        if self.entries.is_empty() {
            self.entries = HashTable::new();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A whole hash again: the table takes the bucket from its lower bits and a tag from its upper ones.
fn spread(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use laneway_seeded::Random;

    use super::*;

    /// Two numbers whose hashes an index takes for the same. Among a hundred thousand there are some.
    pub(crate) fn that_share_a_half(hash: impl Fn(u32) -> u64) -> (u32, u32) {
        let mut seen = BTreeMap::new();
        let found = (0..1_000_000).find_map(|number| {
            let elder = seen.insert(half(hash(number)), number)?;
            Some((elder, number))
        });
        found.unwrap()
    }

    /// Keys that are their own hash, so that the test chooses who collides.
    fn hash_of(key: u64) -> u64 {
        // Eight homes next to each other at the very end of the table, so that ways go around it.
        (u32::MAX - (key % 8) as u32) as u64 * (1 << 32) + (1 << 31)
    }

    #[test]
    fn it_finds_exactly_its_entries_despite_collisions() {
        let (mut index, mut model) = (HashIndex::<()>::new(1), BTreeMap::new());
        let mut random = Random::new(1);
        let mut removed = 0;
        for number in 0..4000 {
            let key = random.below(64);
            match model.remove(&key) {
                Some(known) => {
                    index.remove(hash_of(key), known);
                    removed += 1;
                }
                None => {
                    index.insert(hash_of(key), Idx::new(number));
                    model.insert(key, Idx::new(number));
                }
            }
            for key in 0..64 {
                let known = model.get(&key).copied();
                let found = index.find(hash_of(key), |number| known == Some(number));
                assert_eq!(found, known, "after {number} changes");
            }
            assert_eq!(index.len(), model.len());
        }
        assert!(removed > 1000, "{removed}");
    }

    #[test]
    fn an_empty_one_has_nothing_and_gives_its_memory_back() {
        let mut index = HashIndex::<()>::new(1);
        assert_eq!(index.find(0, |_| true), None);
        index.insert(5, Idx::new(1));
        index.remove(5, Idx::new(1));
        index.shrink();
        assert_eq!((index.entries.capacity(), index.find(5, |_| true)), (0, None));
    }
}
