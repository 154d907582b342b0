//! What the tree of the line is made of: steps, ranks, nodes and their seats.

use crate::state::ready_tree::NONE;
use crate::state::ready_tree::child_queue::SeatSet;
use crate::state::ready_tree::ranked_list::{Ordered, Place};

/// One step down the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A lane, a fair key, or both.
    Needs {
        /// The lane that tasks below need, or `NONE`.
        lane: u32,
        /// Where the shared lanes end: the fair key of all tasks below. Elsewhere `NONE`.
        key: u32,
    },
    /// At the end of the external half: what workers ask for.
    Offers {
        /// The home lane of the tasks here.
        home: u32,
        /// Their kind.
        kind: u32,
    },
}

impl Step {
    /// The step that leads nowhere.
    pub(crate) const NONE: Step = Step::Needs { lane: NONE, key: NONE };

    pub(crate) fn lane(self) -> u32 {
        match self {
            Step::Needs { lane, .. } => lane,
            Step::Offers { .. } => NONE,
        }
    }

    pub(crate) fn key(self) -> u32 {
        match self {
            Step::Needs { key, .. } => key,
            Step::Offers { .. } => NONE,
        }
    }
}

/// How tasks compare: level, then whose turn it is (the fair key's tag), then arrival. Smaller is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// 255 less the level, then the upper bits of the tag.
    upper: u64,
    /// The lower bits of the tag, then the arrival.
    lower: u64,
}

impl Rank {
    const ARRIVAL: u64 = (1 << Place::ARRIVAL_BITS) - 1;

    pub(crate) fn new(place: Place, tag: u64) -> Rank {
        let unranked = Rank { upper: place.bits() & !Rank::ARRIVAL, lower: place.bits() & Rank::ARRIVAL };
        unranked.with_tag(tag)
    }

    pub(crate) fn with_tag(self, tag: u64) -> Rank {
        Rank {
            upper: self.upper & !Rank::ARRIVAL | tag >> 8,
            lower: self.lower & Rank::ARRIVAL | tag << Place::ARRIVAL_BITS,
        }
    }
}

/// A node with more children than this keeps them seated in order; with few it looks at each when asked. So
/// at the top of the tree, where lanes open and close with every grant, there is nothing to keep up to date.
pub(crate) const FEW_CHILDREN: u32 = 8;

/// Where a node sits among its many siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    /// Nothing below that needs a seat, or it has few siblings.
    Nowhere,
    /// Something below may run; this is its rank.
    Open(Rank),
    /// The node is closed; this is the best that waits below. Kept only where being passed over counts.
    Shut(Rank),
}

/// [`Seat`] without its rank, which a node keeps beside it: together they take less room.
#[derive(Clone, Copy)]
enum SeatKind {
    Nowhere,
    Open,
    Shut,
}

/// Two lines of the cache, since most nodes are a conversation's and lie in none when they are needed. A task that joins
/// behind others needs the first alone.
#[repr(C, align(64))]
pub(crate) struct Node {
    pub(crate) step: Step,
    pub(crate) parent: u32,
    /// The route whose plain tasks stand here, or `NONE`.
    pub(crate) route: u32,
    /// Its lane can give no slot now.
    pub(crate) closed: bool,
    /// Where it sits.
    seat: SeatKind,
    /// The tasks that need no further lane.
    pub(crate) tasks: Ordered<Place>,
    seat_rank: Rank,
    /// The tag of the key, where the step has one.
    pub(crate) tag: u64,
    pub(crate) seats: Option<Box<Seats>>,
    pub(crate) children: u32,
    /// Its children are a linked list: the first, and each one's neighbours.
    pub(crate) first_child: u32,
    pub(crate) previous: u32,
    pub(crate) next: u32,
    /// Its neighbours on each of its lists.
    pub(crate) next_by: [u32; 2],
    pub(crate) previous_by: [u32; 2],
}

/// The many children of a node, those that have a seat.
#[derive(Default)]
pub(crate) struct Seats {
    pub(crate) open: SeatSet,
    pub(crate) shut: SeatSet,
}

impl Node {
    pub(crate) fn new(step: Step, parent: u32, tag: u64, closed: bool) -> Node {
        Node {
            step,
            parent,
            tag,
            closed,
            seat: SeatKind::Nowhere,
            seat_rank: Rank { upper: 0, lower: 0 },
            children: 0,
            first_child: NONE,
            previous: NONE,
            next: NONE,
            tasks: Ordered::default(),
            seats: None,
            route: NONE,
            next_by: [NONE; 2],
            previous_by: [NONE; 2],
        }
    }

    pub(crate) fn seat(&self) -> Seat {
        match self.seat {
            SeatKind::Nowhere => Seat::Nowhere,
            SeatKind::Open => Seat::Open(self.seat_rank),
            SeatKind::Shut => Seat::Shut(self.seat_rank),
        }
    }

    pub(crate) fn set_seat(&mut self, seat: Seat) {
        (self.seat, self.seat_rank) = match seat {
            Seat::Nowhere => (SeatKind::Nowhere, self.seat_rank),
            Seat::Open(rank) => (SeatKind::Open, rank),
            Seat::Shut(rank) => (SeatKind::Shut, rank),
        };
    }

    pub(crate) fn own_best(&self) -> Option<Rank> {
        self.tasks.first().map(|(place, _)| Rank::new(place, self.tag))
    }

    pub(crate) fn seated(&self, rank: Rank) -> Rank {
        if self.step.key() == NONE { rank } else { rank.with_tag(self.tag) }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    #[test]
    fn the_level_decides_then_the_turn_then_the_arrival_however_large_they_are() {
        let mut all = Vec::new();
        for level in [0, 1, 9, u8::MAX] {
            for tag in [0, 1, 255, 256, 257, 1 << 40, u64::MAX - 1, u64::MAX] {
                all.extend([0, 1, 1 << 40, Rank::ARRIVAL].map(|arrival| (Reverse(level), tag, arrival)));
            }
        }
        all.sort_unstable();
        let rank = |&(Reverse(level), tag, arrival): &(Reverse<u8>, u64, u64)| {
            Rank::new(Place::new(level, arrival), tag)
        };
        assert!(all.iter().map(rank).is_sorted_by(|one, next| one < next));
        let again =
            |of: &(Reverse<u8>, u64, u64)| rank(of).with_tag(7) == Rank::new(Place::new(of.0.0, of.2), 7);
        assert!(all.iter().all(again), "another turn leaves level and arrival");
    }
}
