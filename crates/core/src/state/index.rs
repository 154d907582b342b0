//! A table for look-ups by hash. It cannot be iterated, so no order can leak out of it.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::FixedState;
use prefetch_index::prefetch_index;

use crate::state::ready_tree::NONE;

/// The smallest table that is not empty.
const SMALLEST: usize = 16;

/// Maps keys to small numbers without storing the keys: whoever owns the things that the numbers stand for
/// compares. The seed keeps outsiders from choosing keys that collide.
///
/// Open addressing in one array, so that a look-up touches one line of the cache, which can be asked for before it is
/// needed. An entry is where it belongs or in the next places behind, without a gap.
///
/// Beside a number there may be a hint: what else to ask for at once, while the thing itself is on its way to the cache.
pub(crate) struct Index<Hint = ()> {
    entries: Vec<Entry<Hint>>,
    len: usize,
    hasher: FixedState,
}

/// A number, `NONE` where nothing is, and half of its hash: the half that says where it belongs.
#[derive(Clone)]
struct Entry<Hint> {
    half: u32,
    number: u32,
    hint: Hint,
}

impl Index {
    pub(crate) fn insert(&mut self, hash: u64, number: u32) {
        self.insert_with(hash, number, ());
    }

    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.find_with(hash, |number, _| is_it(number))
    }
}

impl<Hint: Clone + Default> Index<Hint> {
    pub(crate) fn new(seed: u64) -> Index<Hint> {
        Index { entries: Vec::new(), len: 0, hasher: FixedState::with_seed(seed) }
    }

    pub(crate) fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Says that what has this hash will be asked for soon: by then it is in the cache.
    pub(crate) fn foresee(&self, hash: u64) {
        prefetch_index(&self.entries, self.home(half(hash)));
    }

    /// The number under `hash` of which `is_it` says that it is the one; it is told the hint too.
    pub(crate) fn find_with(&self, hash: u64, is_it: impl Fn(u32, &Hint) -> bool) -> Option<u32> {
        let place = self.seek(hash, is_it)?;
        Some(self.entries[place].number)
    }

    pub(crate) fn insert_with(&mut self, hash: u64, number: u32, hint: Hint) {
        // At most two thirds are taken: beyond that ways become long.
        if 3 * (self.len + 1) > 2 * self.entries.len() {
            self.grow();
        }
        self.len += 1;
        self.put(Entry { half: half(hash), number, hint });
    }

    /// Removes `number`, which must be there under `hash`.
    pub(crate) fn remove(&mut self, hash: u64, number: u32) {
        let found = self.seek(hash, |other, _| other == number);
        debug_assert!(found.is_some(), "an index lost {number}");
        let Some(mut gap) = found else { return };
        self.len -= 1;
        // Who stands behind the gap and belongs before it moves up, so that no way leads across a gap.
        let mut place = self.after(gap);
        while self.entries[place].number != NONE {
            let home = self.home(self.entries[place].half);
            if self.distance(home, place) >= self.distance(gap, place) {
                self.entries[gap] = self.entries[place].clone();
                gap = place;
            }
            place = self.after(place);
        }
        self.entries[gap] = Entry::empty();
    }

    /// Gives back what an empty table has grown to.
    pub(crate) fn shrink(&mut self) {
        if self.len == 0 {
            self.entries = Vec::new();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn seek(&self, hash: u64, is_it: impl Fn(u32, &Hint) -> bool) -> Option<usize> {
        let half = half(hash);
        let mut place = self.home(half);
        loop {
            let entry = self.entries.get(place)?;
            if entry.number == NONE {
                return None;
            }
            if entry.half == half && is_it(entry.number, &entry.hint) {
                return Some(place);
            }
            place = self.after(place);
        }
    }

    fn put(&mut self, entry: Entry<Hint>) {
        let mut place = self.home(entry.half);
        while self.entries[place].number != NONE {
            place = self.after(place);
        }
        self.entries[place] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Entry::empty(); (2 * self.entries.len()).max(SMALLEST)];
        for entry in std::mem::replace(&mut self.entries, larger) {
            if entry.number != NONE {
                self.put(entry);
            }
        }
    }

    /// Where an entry belongs: the upper bits of its half of the hash, as many as there are places.
    fn home(&self, half: u32) -> usize {
        ((u64::from(half) * self.entries.len() as u64) >> 32) as usize
    }

    fn after(&self, place: usize) -> usize {
        (place + 1) & self.entries.len().wrapping_sub(1)
    }

    /// How far it is from one place to another, going on from the last to the first.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.entries.len().wrapping_sub(1)
    }
}

impl<Hint: Default> Entry<Hint> {
    fn empty() -> Entry<Hint> {
        Entry { half: 0, number: NONE, hint: Hint::default() }
    }
}

fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

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
    fn it_finds_what_is_there_and_nothing_else_whoever_collides() {
        let (mut index, mut model) = (Index::<()>::new(1), BTreeMap::new());
        let mut random = 1u64;
        let mut removed = 0;
        for number in 0..4000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = random >> 58;
            match model.remove(&key) {
                Some(known) => {
                    index.remove(hash_of(key), known);
                    removed += 1;
                }
                None => {
                    index.insert(hash_of(key), number);
                    model.insert(key, number);
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
        let mut index = Index::<()>::new(1);
        assert_eq!(index.find(0, |_| true), None);
        index.foresee(u64::MAX);
        index.insert(5, 1);
        index.remove(5, 1);
        index.shrink();
        assert_eq!((index.entries.capacity(), index.find(5, |_| true)), (0, None));
    }
}
