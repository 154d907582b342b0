//! What the tree of the line is made of: edges, ranks, nodes and their seats.

use crate::state::interner::KindIdx;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::child_queue::ChildQueue;
use crate::state::ready_tree::fair_share::FairKeyIdx;
use crate::state::ready_tree::ranked_list::{ArrivalRank, RankedList};
use crate::state::routes::RouteIdx;
use crate::state::table::Idx;

pub(crate) type NodeIdx = Idx<Node>;

/// What a task needs of a lane before it can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneNeed {
    /// A free slot.
    Slot(LaneIdx),
    /// Another task lends the slot, so only a pause or the rate limit of the lane can hold the task up.
    Gate(LaneIdx),
}

impl LaneNeed {
    fn number(self) -> usize {
        match self {
            LaneNeed::Slot(lane) => 2 * lane.number(),
            LaneNeed::Gate(lane) => 2 * lane.number() + 1,
        }
    }
}

/// What the tasks below a node have in common, and those below its parent have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// A lane, a fair key, or both.
    Needs {
        need: Option<LaneNeed>,
        /// Where the shared lanes end: the fair key of all tasks below.
        key: Option<FairKeyIdx>,
    },
    /// At the end of the external half: what workers ask for.
    Offers {
        /// The home lane of the tasks here.
        home: LaneIdx,
        /// Their kind.
        kind: KindIdx,
    },
}

impl Edge {
    /// The edge to a root.
    pub(crate) const ROOT: Edge = Edge::Needs { need: None, key: None };

    pub(crate) fn key(self) -> Option<FairKeyIdx> {
        match self {
            Edge::Needs { key, .. } => key,
            Edge::Offers { .. } => None,
        }
    }

    pub(super) fn need(self) -> Option<LaneNeed> {
        match self {
            Edge::Needs { need, .. } => need,
            Edge::Offers { .. } => None,
        }
    }

    /// The edge as a number for hashing, which costs less than to hash its parts. Few edges share a number.
    pub(super) fn hash_bits(self) -> u64 {
        let (upper, lower) = match self {
            Edge::Needs { need, key } => {
                (need.map_or(0, |need| need.number() + 1), key.map_or(0, |key| key.number() + 1))
            }
            Edge::Offers { home, kind } => (home.number(), kind.number()),
        };
        (upper as u64) << 32 | lower as u64
    }
}

/// The nodes that have a need or a fair key in common.
#[derive(Clone, Copy)]
pub(crate) enum NodeList {
    OfNeed(LaneNeed),
    OfKey(FairKeyIdx),
}

impl NodeList {
    /// The links of a node on the list of its need.
    pub(super) const NEED: usize = 0;
    /// The links of a node on the list of its key.
    const KEY: usize = 1;

    /// Which of the links of a node belong to the list.
    pub(super) fn links(self) -> usize {
        match self {
            NodeList::OfNeed(_) => NodeList::NEED,
            NodeList::OfKey(_) => NodeList::KEY,
        }
    }

    /// Which list it is among those of its sort.
    pub(super) fn number(self) -> usize {
        match self {
            NodeList::OfNeed(need) => need.number(),
            NodeList::OfKey(key) => key.number(),
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
    const ARRIVAL: u64 = (1 << ArrivalRank::ARRIVAL_BITS) - 1;

    pub(crate) fn new(rank: ArrivalRank, tag: u64) -> Rank {
        let unranked = Rank { upper: rank.bits() & !Rank::ARRIVAL, lower: rank.bits() & Rank::ARRIVAL };
        unranked.with_tag(tag)
    }

    pub(crate) fn with_tag(self, tag: u64) -> Rank {
        Rank {
            upper: self.upper & !Rank::ARRIVAL | tag >> 8,
            lower: self.lower & Rank::ARRIVAL | tag << ArrivalRank::ARRIVAL_BITS,
        }
    }
}

/// A node with more children than this keeps them seated in order; with few it looks at each when asked. So
/// at the top of the tree, where lanes open and close with every grant, there is nothing to keep up to date.
pub(super) const FEW_CHILDREN: u32 = 8;

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

/// [`Seat`] without its rank. A node keeps the two as separate fields, which takes less room.
#[derive(Clone, Copy)]
enum SeatKind {
    Nowhere,
    Open,
    Shut,
}

/// Two lines of the cache, since most nodes are a session's and lie in none when they are needed. A task that joins
/// behind others needs the first alone.
#[repr(C, align(64))]
pub(crate) struct Node {
    pub(super) edge: Edge,
    /// Roots have none.
    pub(crate) parent: Option<NodeIdx>,
    /// The route whose plain tasks stand here.
    pub(crate) route: Option<RouteIdx>,
    /// Its lane can give no slot now.
    pub(crate) closed: bool,
    /// Where it sits.
    seat: SeatKind,
    /// The tasks that need no further lane.
    pub(super) tasks: RankedList<ArrivalRank>,
    seat_rank: Rank,
    /// The tag of the key, where the edge has one.
    pub(crate) tag: u64,
    pub(super) seats: Option<Box<Seats>>,
    pub(crate) children: u32,
    /// Its children are a linked list: the first, and each one's neighbours.
    pub(super) first_child: Option<NodeIdx>,
    pub(super) previous: Option<NodeIdx>,
    pub(super) next: Option<NodeIdx>,
    /// Its neighbours on each [`NodeList`].
    pub(super) next_on: [Option<NodeIdx>; 2],
    pub(super) previous_on: [Option<NodeIdx>; 2],
}

/// The many children of a node, those that have a seat.
#[derive(Default)]
pub(super) struct Seats {
    pub(crate) open: ChildQueue,
    pub(super) shut: ChildQueue,
}

impl Node {
    pub(crate) fn new(edge: Edge, parent: Option<NodeIdx>, tag: u64, closed: bool) -> Node {
        Node {
            edge,
            parent,
            tag,
            closed,
            seat: SeatKind::Nowhere,
            seat_rank: Rank { upper: 0, lower: 0 },
            children: 0,
            first_child: None,
            previous: None,
            next: None,
            tasks: RankedList::default(),
            seats: None,
            route: None,
            next_on: [None; 2],
            previous_on: [None; 2],
        }
    }

    pub(super) fn seat(&self) -> Seat {
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

    pub(super) fn own_best(&self) -> Option<Rank> {
        self.tasks.first().map(|(rank, _)| Rank::new(rank, self.tag))
    }

    pub(super) fn seated(&self, rank: Rank) -> Rank {
        if self.edge.key().is_some() { rank.with_tag(self.tag) } else { rank }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    #[test]
    fn a_node_takes_two_lines_of_the_cache() {
        assert_eq!(size_of::<Node>(), 128);
    }

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
            Rank::new(ArrivalRank::new(level, arrival), tag)
        };
        assert!(all.iter().map(rank).is_sorted_by(|one, next| one < next));
        let again = |of: &(Reverse<u8>, u64, u64)| {
            rank(of).with_tag(7) == Rank::new(ArrivalRank::new(of.0.0, of.2), 7)
        };
        assert!(all.iter().all(again), "another turn leaves level and arrival");
    }
}
