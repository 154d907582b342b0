//! The seats of a node's children, sorted: a short list as long as there are few, a tree beyond.

use std::collections::{BTreeMap, btree_map};

use crate::node::Rank;

/// Above this many seats the tree takes over; it gives way again when few are left, so that a node whose
/// children come and go one by one neither allocates nor walks a tree.
const FEW: usize = 32;

/// No two tasks have the same rank, so each seat does for one child. Ranks are kept as the one number that they
/// are: the tree compares them often.
#[derive(Default)]
pub(crate) struct SeatSet {
    few: Vec<(u128, u32)>,
    /// Holds all of them, or none.
    many: BTreeMap<u128, u32>,
}

fn seat((rank, id): (u128, u32)) -> (Rank, u32) {
    (Rank::from_bits(rank), id)
}

impl SeatSet {
    pub(crate) fn first(&self) -> Option<(Rank, u32)> {
        let few = self.few.first().copied();
        few.or_else(|| self.many.first_key_value().map(|(rank, id)| (*rank, *id))).map(seat)
    }

    pub(crate) fn insert(&mut self, rank: Rank, id: u32) {
        let rank = rank.bits();
        if !self.many.is_empty() {
            self.many.insert(rank, id);
        } else if self.few.len() < FEW {
            let index = self.few.partition_point(|(other, _)| *other < rank);
            self.few.insert(index, (rank, id));
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(rank, id);
        }
    }

    pub(crate) fn remove(&mut self, rank: Rank) {
        let rank = rank.bits();
        if self.many.is_empty() {
            let found = self.few.binary_search_by_key(&rank, |(other, _)| *other);
            debug_assert!(found.is_ok(), "a seat is lost");
            if let Ok(index) = found {
                self.few.remove(index);
            }
            return;
        }
        let found = self.many.remove(&rank);
        debug_assert!(found.is_some(), "a seat is lost");
        if self.many.len() <= FEW / 4 {
            self.few.extend(std::mem::take(&mut self.many));
        }
    }

    pub(crate) fn iter(&self) -> SeatIter<'_> {
        SeatIter { few: self.few.iter(), many: self.many.iter() }
    }
}

pub(crate) struct SeatIter<'a> {
    few: std::slice::Iter<'a, (u128, u32)>,
    many: btree_map::Iter<'a, u128, u32>,
}

impl Iterator for SeatIter<'_> {
    type Item = (Rank, u32);

    fn next(&mut self) -> Option<(Rank, u32)> {
        let few = self.few.next().copied();
        few.or_else(|| self.many.next().map(|(rank, id)| (*rank, *id))).map(seat)
    }
}
