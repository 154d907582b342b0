//! A sorted list that knows the position of each entry: waiting tasks by place, timers by time, runs by fence.

use std::collections::VecDeque;

use crate::state::task::TaskIdx;

/// A chunk is split when it grows beyond this. Small enough to shift, large enough to have few.
const CHUNK_MAX: usize = 256;
/// An empty list keeps the room of this many entries.
const FEW: usize = 8;

/// Where a task stands among tasks of the same fair key: its level, then its arrival. Smaller is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrivalRank(u64);

impl ArrivalRank {
    /// Arrivals are counted, so 56 bits last for longer than the hardware.
    pub(super) const ARRIVAL_BITS: u32 = 56;

    pub(crate) fn new(level: u8, arrival: u64) -> ArrivalRank {
        debug_assert!(arrival < 1 << ArrivalRank::ARRIVAL_BITS);
        ArrivalRank(u64::from(u8::MAX - level) << ArrivalRank::ARRIVAL_BITS | arrival)
    }

    pub(crate) fn level(self) -> u8 {
        u8::MAX - (self.0 >> ArrivalRank::ARRIVAL_BITS) as u8
    }

    /// Its level (255 less it, in the upper bits) and its arrival, in one number that sorts.
    pub(super) fn bits(self) -> u64 {
        self.0
    }
}

/// Chunks of sorted entries: the first is held in place, since most lists are short. Cheap at both ends, and
/// good enough everywhere.
pub(crate) struct RankedList<K> {
    first: Chunk<K>,
    rest: Rest<K>,
}

impl<K> Default for RankedList<K> {
    fn default() -> RankedList<K> {
        RankedList { first: VecDeque::new(), rest: Rest(None) }
    }
}

type Chunk<K> = VecDeque<(K, TaskIdx)>;

/// Boxed, because most lists have none.
struct Rest<K>(Option<Box<Chunks<K>>>);

/// Cheap at its front, where chunks are used up.
struct Chunks<K> {
    list: VecDeque<Chunk<K>>,
    /// How many entries there are in all of them, so that places can be counted from the end.
    entries: usize,
}

impl<K> Default for Chunks<K> {
    fn default() -> Chunks<K> {
        Chunks { list: VecDeque::new(), entries: 0 }
    }
}

impl<K> Rest<K> {
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |chunks| chunks.list.len())
    }

    fn entries(&self) -> usize {
        self.0.as_ref().map_or(0, |chunks| chunks.entries)
    }

    fn iter(&self) -> impl Iterator<Item = &Chunk<K>> {
        self.0.iter().flat_map(|chunks| chunks.list.iter())
    }

    fn pop_front(&mut self) -> Option<Chunk<K>> {
        let chunks = self.0.as_mut()?;
        let chunk = chunks.list.pop_front()?;
        chunks.entries -= chunk.len();
        Some(chunk)
    }
}

impl<K: Ord + Copy> RankedList<K> {
    pub(crate) fn first(&self) -> Option<(K, TaskIdx)> {
        self.first.front().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.rest.entries()
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.find(key).is_some()
    }

    /// What stands at `key`.
    #[inline]
    pub(crate) fn find(&self, key: K) -> Option<TaskIdx> {
        // Most are asked for in order.
        if let Some((_, task)) = self.first().filter(|(first, _)| *first == key) {
            return Some(task);
        }
        self.find_between(key)
    }

    #[inline(never)]
    fn find_between(&self, key: K) -> Option<TaskIdx> {
        let chunk = self.chunk(self.chunk_of(key))?;
        let index = chunk.binary_search_by_key(&key, |(other, _)| *other).ok()?;
        chunk.get(index).map(|(_, task)| *task)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Whether it is empty, and has more room than a few entries take.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_empty() && self.first.capacity() > FEW
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, TaskIdx)> {
        self.first.iter().chain(self.rest.iter().flatten()).copied()
    }

    /// Which chunk `key` belongs to: 0 is the first, n is `rest[n - 1]`.
    fn chunk_of(&self, key: K) -> usize {
        let Some(rest) = &self.rest.0 else { return 0 };
        let begins_before = |chunk: &Chunk<K>| chunk.front().is_some_and(|(front, _)| *front <= key);
        // Most are asked for when they have just come.
        if rest.list.back().is_some_and(begins_before) {
            return rest.list.len();
        }
        rest.list.partition_point(begins_before)
    }

    fn chunk(&self, number: usize) -> Option<&Chunk<K>> {
        match number.checked_sub(1) {
            None => Some(&self.first),
            Some(number) => self.rest.0.as_ref()?.list.get(number),
        }
    }

    fn chunk_mut(&mut self, number: usize) -> &mut Chunk<K> {
        match &mut self.rest.0 {
            Some(rest) if number > 0 => &mut rest.list[number - 1],
            _ => &mut self.first,
        }
    }

    /// Inserts an entry, and says whether it is the first.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, task: TaskIdx) -> bool {
        // Most come in order.
        let (last, entries) = match &mut self.rest.0 {
            Some(rest) => match rest.list.back_mut() {
                Some(last) => (last, Some(&mut rest.entries)),
                None => (&mut self.first, None),
            },
            None => (&mut self.first, None),
        };
        if last.len() < CHUNK_MAX && last.back().is_none_or(|(other, _)| *other < key) {
            let is_first = last.is_empty();
            last.push_back((key, task));
            if let Some(entries) = entries {
                *entries += 1;
            }
            is_first
        } else {
            self.insert_between(key, task);
            self.first.front().is_some_and(|(first, _)| *first == key)
        }
    }

    #[inline(never)]
    fn insert_between(&mut self, key: K, task: TaskIdx) {
        let number = self.chunk_of(key);
        let is_last = number == self.rest.len();
        let chunk = self.chunk_mut(number);
        let index = chunk.partition_point(|(other, _)| *other < key);
        debug_assert!(chunk.get(index).is_none_or(|(other, _)| *other != key), "two tasks in one place");
        if chunk.len() < CHUNK_MAX {
            chunk.insert(index, (key, task));
            if let (Some(rest), true) = (&mut self.rest.0, number > 0) {
                rest.entries += 1;
            }
        } else if is_last && index == chunk.len() {
            let rest = self.rest.0.get_or_insert_default();
            rest.list.push_back(VecDeque::from([(key, task)]));
            rest.entries += 1;
        } else {
            const HALF: usize = CHUNK_MAX / 2;
            let mut upper = chunk.split_off(HALF);
            match index.checked_sub(HALF) {
                Some(index) if index > 0 => upper.insert(index, (key, task)),
                _ => chunk.insert(index, (key, task)),
            }
            let of_rest = if number > 0 { 1 } else { upper.len() };
            let rest = self.rest.0.get_or_insert_default();
            rest.list.insert(number, upper);
            rest.entries += of_rest;
        }
    }

    /// Removes the entry at `key` and says whether there was one.
    #[inline]
    pub(crate) fn remove(&mut self, key: K) -> bool {
        // Most go in order.
        if self.first.front().is_none_or(|(front, _)| *front != key) {
            return self.remove_between(key);
        }
        self.first.pop_front();
        if self.first.is_empty() && self.rest.0.is_some() {
            self.move_up();
        }
        true
    }

    /// The first chunk is used up: the next one takes its place.
    #[inline(never)]
    fn move_up(&mut self) {
        if let Some(next) = self.rest.pop_front() {
            self.first = next;
        }
    }

    #[inline(never)]
    fn remove_between(&mut self, key: K) -> bool {
        let number = self.chunk_of(key);
        let chunk = self.chunk_mut(number);
        let Ok(index) = chunk.binary_search_by_key(&key, |(other, _)| *other) else {
            return false;
        };
        chunk.remove(index);
        let is_empty = chunk.is_empty();
        // The first chunk is not used up: its first entry is removed elsewhere.
        if let (Some(rest), Some(behind_first)) = (&mut self.rest.0, number.checked_sub(1)) {
            rest.entries -= 1;
            if is_empty {
                drop(rest.list.remove(behind_first));
            }
        }
        true
    }

    /// The entry that stands next before `key`.
    pub(crate) fn before(&self, key: K) -> Option<(K, TaskIdx)> {
        if self.first()?.0 == key {
            return None;
        }
        let number = self.chunk_of(key);
        let chunk = self.chunk(number)?;
        match chunk.partition_point(|(other, _)| *other < key).checked_sub(1) {
            Some(index) => chunk.get(index).copied(),
            None => self.chunk(number.checked_sub(1)?)?.back().copied(),
        }
    }

    /// How many entries stand before `key`. Counted from the nearer end: most who ask have just come, or go next.
    pub(crate) fn position(&self, key: K) -> usize {
        let number = self.chunk_of(key);
        let Some(chunk) = self.chunk(number) else { return self.len() };
        let within = chunk.partition_point(|(other, _)| *other < key);
        let chunks = self.rest.len();
        if number <= chunks / 2 {
            let before = std::iter::once(&self.first).chain(self.rest.iter()).take(number);
            return before.map(VecDeque::len).sum::<usize>() + within;
        }
        let after = self.rest.0.iter().flat_map(|rest| rest.list.range(number..));
        self.len() - after.map(VecDeque::len).sum::<usize>() - (chunk.len() - within)
    }
}

#[cfg(test)]
mod tests {
    use laneway_seeded::Random;

    use super::*;
    use crate::state::table::Idx;

    #[test]
    fn it_is_a_sorted_list_with_positions() {
        let mut list = RankedList::default();
        let mut plain: Vec<(ArrivalRank, TaskIdx)> = Vec::new();
        let mut random = Random::new(7);
        let mut grown = 0;
        for round in 0..20_000 {
            let number = random.number();
            let appended = number >> 60 < 8;
            let key = if appended {
                ArrivalRank::new(2, round as u64 + (1 << 40))
            } else {
                ArrivalRank::new((number >> 40 & 3) as u8, number >> 44)
            };
            let at = plain.partition_point(|(other, _)| *other < key);
            if number >> 33 & 7 < 5 && plain.get(at).is_none_or(|(other, _)| *other != key) {
                plain.insert(at, (key, Idx::new(round)));
                list.insert(key, Idx::new(round));
            } else if !plain.is_empty() {
                let victim = plain.remove((number >> 20) as usize % plain.len()).0;
                assert!(list.remove(victim));
                assert!(!list.remove(victim));
            }
            assert_eq!(list.first(), plain.first().copied());
            let at_most = plain.partition_point(|(other, _)| *other < key);
            assert_eq!(list.before(key), at_most.checked_sub(1).map(|index| plain[index]));
            assert_eq!(list.position(key), at_most);
            assert_eq!(list.len(), plain.len());
            grown = grown.max(list.rest.len());
        }
        assert!(list.iter().eq(plain.iter().copied()));
        for (at, (key, _)) in plain.iter().enumerate() {
            assert_eq!(list.position(*key), at);
        }
        // Used up from the front, as lines are.
        while let Some((key, task)) = list.first() {
            assert_eq!((key, task), plain.remove(0));
            assert!(list.remove(key));
            assert_eq!(list.len(), plain.len());
        }
        assert_eq!(list.position(ArrivalRank::new(0, 0)), 0);
        assert!(grown > 5, "the list never had more than {grown} chunks");
    }

    #[test]
    fn a_rank_knows_its_level() {
        for level in [0, 1, 9, u8::MAX] {
            assert_eq!(ArrivalRank::new(level, 12_345).level(), level);
        }
    }

    #[test]
    fn what_is_removed_in_the_middle_leaves_no_gap() {
        let mut list = RankedList::default();
        let rank = |number: usize| ArrivalRank::new(2, number as u64);
        let all = 4 * CHUNK_MAX;
        (0..all).for_each(|number| assert_eq!(list.insert(rank(number), Idx::new(number)), number == 0));
        for number in CHUNK_MAX..3 * CHUNK_MAX {
            assert!(list.remove(rank(number)));
            assert_eq!((list.len(), list.position(rank(all))), (all - (number + 1 - CHUNK_MAX), list.len()));
        }
        let left = (0..CHUNK_MAX).chain(3 * CHUNK_MAX..all).map(|number| (rank(number), Idx::new(number)));
        assert!(list.iter().eq(left));
    }

    #[test]
    fn what_comes_behind_a_full_chunk_stands_before_the_next_one() {
        let mut list = RankedList::default();
        let rank = |number: usize| ArrivalRank::new(2, number as u64);
        let mut plain: Vec<usize> = (0..3 * CHUNK_MAX).map(|number| 1000 * number).collect();
        for number in &plain {
            assert_eq!(list.insert(rank(*number), Idx::new(*number)), *number == 0);
        }
        let mut insert = |list: &mut RankedList<ArrivalRank>, number: usize| {
            assert!(!list.insert(rank(number), Idx::new(number)));
            plain.insert(plain.partition_point(|other| *other < number), number);
            assert!(list.iter().eq(plain.iter().map(|number| (rank(*number), Idx::new(*number)))));
        };
        let last = list.first.back().unwrap().1.number();
        // However it has been filled so far, it is full now.
        for number in 1..1 + CHUNK_MAX - list.first.len() {
            insert(&mut list, number);
        }
        assert_eq!((list.first.len(), list.first.back().unwrap().1.number()), (CHUNK_MAX, last));
        insert(&mut list, last + 1);
        let places = plain.iter().map(|number| list.position(rank(*number)));
        assert!(places.eq(0..plain.len()));
    }
}
