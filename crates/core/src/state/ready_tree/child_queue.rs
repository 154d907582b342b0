//! The seats of a node's children, the best one at hand.
//!
//! A child that moves takes a new seat and leaves the old one empty. Most new seats are behind all others and stand in
//! a row; the rest are in a heap. Empty seats are removed when they come first, or when they outnumber the taken ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::state::ready_tree::node::{NodeIdx, Rank};

/// How many seats stand below one: wide, so that a way down is short.
const WIDTH: usize = 4;
/// How many empty seats are always allowed.
const EMPTY_MAX: usize = 64;

/// A rank, and the child that sits there, if it still does.
pub(super) type RankedChild = (Rank, NodeIdx);

#[derive(Default)]
pub(super) struct ChildQueue {
    /// Seats that were taken in order. The best seat, here or in the heap, is never empty.
    row: VecDeque<RankedChild>,
    heap: Vec<RankedChild>,
    taken: usize,
}

impl ChildQueue {
    pub(super) fn first(&self) -> Option<RankedChild> {
        match (self.row.front(), self.heap.first()) {
            (Some(row), Some(heap)) => Some(*row.min(heap)),
            (row, heap) => row.or(heap).copied(),
        }
    }

    pub(crate) fn insert(&mut self, rank: Rank, id: NodeIdx) {
        self.taken += 1;
        if self.row.back().is_none_or(|(last, _)| *last <= rank) {
            self.row.push_back((rank, id));
            return;
        }
        self.heap.push((rank, id));
        let mut at = self.heap.len() - 1;
        while at > 0 && self.heap[(at - 1) / WIDTH].0 > rank {
            self.heap[at] = self.heap[(at - 1) / WIDTH];
            at = (at - 1) / WIDTH;
        }
        self.heap[at] = (rank, id);
    }

    /// A child has left its seat; `is_taken` says whether a seat is taken.
    pub(super) fn leave(&mut self, is_taken: impl Fn(&RankedChild) -> bool) {
        self.taken -= 1;
        while let Some(first) = self.first()
            && !is_taken(&first)
        {
            match self.row.front() {
                Some(row) if *row == first => drop(self.row.pop_front()),
                _ => self.pop(),
            }
        }
        if self.row.len() + self.heap.len() > 2 * self.taken + EMPTY_MAX {
            self.clean(is_taken);
        }
    }

    /// Removes the empty seats and sorts the rest.
    #[cold]
    fn clean(&mut self, is_taken: impl Fn(&RankedChild) -> bool) {
        self.heap.extend(self.row.drain(..));
        self.heap.retain(is_taken);
        self.heap.sort_unstable();
        self.heap.dedup();
        self.row.extend(self.heap.drain(..));
        self.row.shrink_to(2 * self.row.len());
        self.heap.shrink_to(EMPTY_MAX);
    }

    fn pop(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        if self.heap.is_empty() {
            return;
        }
        let mut at = 0;
        loop {
            let first = at * WIDTH + 1;
            let below = self.heap.get(first..(first + WIDTH).min(self.heap.len())).unwrap_or_default();
            let Some((best, child)) = below.iter().enumerate().min_by_key(|(_, child)| child.0) else {
                break;
            };
            if child.0 >= last.0 {
                break;
            }
            self.heap[at] = *child;
            at = first + best;
        }
        self.heap[at] = last;
    }

    /// All seats in order, each once, the empty ones too.
    pub(super) fn iter(&self) -> ChildQueueIter<'_> {
        let row = self.row.front().map(|child| Reverse((*child, Next::Row(0))));
        let heap = self.heap.first().map(|child| Reverse((*child, Next::Heap(0))));
        ChildQueueIter { set: self, next: row.into_iter().chain(heap).collect(), last: None }
    }

    /// For the checks: whether the count of taken seats is right and the first seat is taken.
    pub(super) fn disagreement(&self, is_taken: impl Fn(&RankedChild) -> bool) -> Option<String> {
        let taken = self.iter().filter(|child| is_taken(child)).count();
        let first_is_taken = self.first().is_none_or(|first| is_taken(&first));
        let agrees = taken == self.taken && first_is_taken;
        (!agrees).then(|| format!("{taken} seats are taken, not {}", self.taken))
    }
}

/// Where the next seat of an iteration stands.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Row(usize),
    Heap(usize),
}

pub(super) struct ChildQueueIter<'a> {
    set: &'a ChildQueue,
    /// The candidates for the next seat.
    next: BinaryHeap<Reverse<(RankedChild, Next)>>,
    last: Option<RankedChild>,
}

impl Iterator for ChildQueueIter<'_> {
    type Item = RankedChild;

    fn next(&mut self) -> Option<RankedChild> {
        let ChildQueue { row, heap, .. } = self.set;
        loop {
            let Reverse((child, told)) = self.next.pop()?;
            match told {
                Next::Row(at) => {
                    let behind = row.get(at + 1).map(|child| Reverse((*child, Next::Row(at + 1))));
                    self.next.extend(behind);
                }
                Next::Heap(at) => {
                    let below = at * WIDTH + 1..(at * WIDTH + 1 + WIDTH).min(heap.len());
                    self.next.extend(below.map(|at| Reverse((heap[at], Next::Heap(at)))));
                }
            }
            if self.last.replace(child) != Some(child) {
                return Some(child);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use laneway_seeded::Random;

    use super::*;
    use crate::state::ready_tree::ranked_list;
    use crate::state::table::Idx;

    #[test]
    fn the_best_taken_seat_is_always_first() {
        let mut set = ChildQueue::default();
        let mut sitting: BTreeMap<NodeIdx, Rank> = BTreeMap::new();
        let mut random = Random::new(7);
        let mut longest = 0;
        for round in 0..4_000u64 {
            let number = random.number();
            let id = Idx::new((number >> 40) as usize % 100);
            let rank = Rank::new(ranked_list::ArrivalRank::new((number >> 60) as u8, round), number >> 50);
            if let Some(old) = sitting.remove(&id) {
                set.leave(|(rank, id)| sitting.get(id) == Some(rank));
                if number >> 33 & 1 == 0 {
                    // Back in the seat it left.
                    sitting.insert(id, old);
                    set.insert(old, id);
                }
            } else {
                sitting.insert(id, rank);
                set.insert(rank, id);
            }
            let is_taken = |(rank, id): &RankedChild| sitting.get(id) == Some(rank);
            assert_eq!(set.disagreement(is_taken), None);
            longest = longest.max(set.row.len() + set.heap.len());
            let mut plain: Vec<RankedChild> = sitting.iter().map(|(id, rank)| (*rank, *id)).collect();
            plain.sort_unstable();
            if round % 10 == 0 {
                assert!(set.iter().filter(is_taken).eq(plain.iter().copied()));
            }
            assert_eq!(set.first(), plain.first().copied());
        }
        assert!((100..=2 * 100 + EMPTY_MAX).contains(&longest), "{longest} seats at most");
    }
    #[test]
    fn a_wrong_count_and_an_empty_first_seat_are_each_reported() {
        let mut set = ChildQueue::default();
        let seats = [0, 1].map(|arrival| {
            (Rank::new(ranked_list::ArrivalRank::new(0, arrival), 0), Idx::new(arrival as usize))
        });
        for (rank, id) in seats {
            set.insert(rank, id);
        }
        assert_eq!(set.disagreement(|_| true), None);
        set.taken = 1;
        assert!(set.disagreement(|_| true).is_some(), "two seats are taken, one is counted");
        assert_eq!(set.disagreement(|child| *child == seats[0]), None);
        assert!(set.disagreement(|child| *child == seats[1]).is_some(), "the first seat is empty");
    }
}
