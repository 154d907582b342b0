//! Who is best: how the nodes of the line are ranked and seated, and how the best task is found.

use std::collections::BinaryHeap;

use smallvec::SmallVec;

use crate::state::ready_tree::ReadyTree;
use crate::state::ready_tree::iter::BestFirst;
use crate::state::ready_tree::node::{Node, NodeIdx, NodeList, Rank, Seat};
use crate::state::ready_tree::ranked_list::ArrivalRank;
use crate::state::task::TaskIdx;

impl ReadyTree {
    /// Whether being passed over counts for what waits below a closed node. Where only the tasks of this one
    /// leaf take the lane's slots, in order, none of them can starve.
    fn counts(&self, node: &Node) -> bool {
        let is_one_of_several =
            || node.edge.need().is_some_and(|need| self.listed(NodeList::OfNeed(need)).nth(1).is_some());
        node.closed && (node.children > 0 || is_one_of_several())
    }

    fn best_open_child(&self, id: NodeIdx) -> Option<(Rank, NodeIdx)> {
        match &self.nodes[id].seats {
            Some(seats) => seats.open.first(),
            None => {
                let open = self.children(id).filter(|child| !self.nodes[*child].closed);
                open.filter_map(|child| Some((self.best_open(child)?, child))).min()
            }
        }
    }

    fn best_shut_child(&self, id: NodeIdx) -> Option<(Rank, NodeIdx)> {
        match &self.nodes[id].seats {
            Some(seats) => seats.shut.first(),
            None => {
                let shut = self.children(id).filter(|child| self.counts(&self.nodes[*child]));
                shut.filter_map(|child| Some((self.best_of_all(child)?, child))).min()
            }
        }
    }

    /// The best task below a node that may run, if the node's own lane lets it.
    pub(crate) fn best_open(&self, id: NodeIdx) -> Option<Rank> {
        let node = &self.nodes[id];
        let own = node.own_best();
        if node.children == 0 {
            return own;
        }
        let child = self.best_open_child(id).map(|(rank, _)| node.seated(rank));
        [own, child].into_iter().flatten().min()
    }

    /// The best task below a node that could run were the node open, or waits behind a closed child.
    fn best_of_all(&self, id: NodeIdx) -> Option<Rank> {
        let node = &self.nodes[id];
        let shut = self.best_shut_child(id).map(|(rank, _)| node.seated(rank));
        [self.best_open(id), shut].into_iter().flatten().min()
    }

    /// Where a node should sit, if its siblings are many.
    pub(crate) fn seat_of(&self, id: NodeIdx) -> Seat {
        let node = &self.nodes[id];
        if !node.closed {
            self.best_open(id).map_or(Seat::Nowhere, Seat::Open)
        } else if self.counts(node) {
            self.best_of_all(id).map_or(Seat::Nowhere, Seat::Shut)
        } else {
            Seat::Nowhere
        }
    }

    /// Puts a node where it belongs among its siblings after a change in or below it, and so on upwards.
    pub(crate) fn refresh(&mut self, mut id: NodeIdx) {
        let mut next = self.nodes[id].parent;
        while let Some(parent) = next {
            next = self.nodes[parent].parent;
            if self.nodes[parent].seats.is_some() {
                let (old, new) = (self.nodes[id].seat(), self.seat_of(id));
                if old == new {
                    return;
                }
                self.reseat(id, parent, old, new);
            }
            id = parent;
        }
    }

    fn reseat(&mut self, id: NodeIdx, parent: NodeIdx, old: Seat, new: Seat) {
        self.nodes[id].set_seat(new);
        let Some(mut seats) = self.nodes[parent].seats.take() else { return };
        match new {
            Seat::Open(rank) => seats.open.insert(rank, id),
            Seat::Shut(rank) => seats.shut.insert(rank, id),
            Seat::Nowhere => {}
        }
        match old {
            Seat::Open(_) => seats.open.leave(|child| self.sits(parent, child, Seat::Open)),
            Seat::Shut(_) => seats.shut.leave(|child| self.sits(parent, child, Seat::Shut)),
            Seat::Nowhere => {}
        }
        self.nodes[parent].seats = Some(seats);
    }

    /// Whether the child still sits where a seat of its parent says it does.
    pub(super) fn sits(
        &self,
        parent: NodeIdx,
        (rank, id): &(Rank, NodeIdx),
        seat: impl Fn(Rank) -> Seat,
    ) -> bool {
        let node = self.nodes.get(*id);
        node.is_some_and(|node| node.parent == Some(parent) && node.seat() == seat(*rank))
    }

    /// The best task of a half of the line that may run now.
    pub(crate) fn best(&self, half: NodeIdx) -> Option<TaskIdx> {
        let mut id = half;
        loop {
            let node = &self.nodes[id];
            if node.children == 0 {
                return node.tasks.first().map(|(_, task)| task);
            }
            // As long as there is one way to go, ranks need not be compared.
            match &node.seats {
                Some(seats) if node.tasks.is_empty() => id = seats.open.first()?.1,
                None if node.tasks.is_empty() && node.children == 1 => {
                    id = node.first_child?;
                    if self.nodes[id].closed {
                        return None;
                    }
                }
                _ => return self.best_below(id).map(|(_, task)| task),
            }
        }
    }

    /// The best task below a node that may run, if the node's own lane lets it, and its rank.
    fn best_below(&self, id: NodeIdx) -> Option<(Rank, TaskIdx)> {
        let node = &self.nodes[id];
        let own = node.tasks.first().map(|(rank, task)| (Rank::new(rank, node.tag), task));
        let child = match &node.seats {
            _ if node.children == 0 => return own,
            Some(seats) => seats.open.first().and_then(|(_, child)| self.best_below(child)),
            None => {
                let open = self.children(id).filter(|child| !self.nodes[*child].closed);
                open.filter_map(|child| self.best_below(child)).min()
            }
        };
        let child = child.map(|(rank, task)| (node.seated(rank), task));
        [own, child].into_iter().flatten().min()
    }

    /// The best tasks of a half that may run now, best first, one for each node that holds tasks. The caller
    /// takes the first whose home lane and kind it likes.
    pub(crate) fn best_first(&self, half: NodeIdx) -> BestFirst<'_> {
        let mut search = BestFirst { tree: self, heads: BinaryHeap::new() };
        search.enter(half);
        search
    }

    /// The tasks that a grant of `task` (which stands at `rank` in `leaf`) passes over: for each lane on
    /// its way the best task that waits behind a closed lane and came before it. Whose turn it is does not
    /// matter: a task's key may be charged for others of its home lane for ever while another lane is closed to it.
    pub(crate) fn passed_over(&self, leaf: NodeIdx, rank: ArrivalRank) -> SmallVec<[TaskIdx; 2]> {
        let mut passed = SmallVec::new();
        let mut next = Some(leaf);
        let granted = Rank::new(rank, 0);
        while let Some(id) = next {
            let node = &self.nodes[id];
            let has_other_ways = match node.children {
                0 => false,
                1 => node.first_child.is_some_and(|child| self.nodes[child].closed),
                _ => true,
            };
            if has_other_ways
                && let Some((shut, child)) = self.best_shut_child(id)
                && shut.with_tag(0) < granted
            {
                passed.extend(self.first_of_all(child));
            }
            next = node.parent;
        }
        passed
    }

    /// The task that [`best_of_all`](ReadyTree::best_of_all) ranks.
    fn first_of_all(&self, mut id: NodeIdx) -> Option<TaskIdx> {
        loop {
            let node = &self.nodes[id];
            let shut = self.best_shut_child(id).map(|(rank, child)| (node.seated(rank), child));
            match shut {
                Some((rank, child)) if self.best_open(id).is_none_or(|open| rank < open) => id = child,
                _ => return self.best(id),
            }
        }
    }
}
