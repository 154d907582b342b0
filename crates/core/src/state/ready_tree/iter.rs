//! The line, best task first: for claims, which take only some of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::state::ready_tree::ReadyTree;
use crate::state::ready_tree::child_queue::ChildQueueIter;
use crate::state::ready_tree::node::{NodeIdx, Rank, Seat};
use crate::state::task::TaskIdx;

/// See [`ReadyTree::best_first`].
pub(crate) struct BestFirst<'a> {
    pub(super) tree: &'a ReadyTree,
    pub(super) heads: BinaryHeap<Reverse<Head<'a>>>,
}

/// The next candidate: the first task of a node, or a child to look into and its seated siblings after it.
pub(super) struct Head<'a> {
    rank: Rank,
    id: NodeIdx,
    is_child: bool,
    tag: Option<u64>,
    siblings: Option<ChildQueueIter<'a>>,
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.rank, self.id) == (other.rank, other.id)
    }
}

impl Eq for Head<'_> {}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.rank, self.id).cmp(&(other.rank, other.id))
    }
}

impl<'a> BestFirst<'a> {
    pub(crate) fn enter(&mut self, id: NodeIdx) {
        let node = &self.tree.nodes[id];
        if let Some(rank) = node.own_best() {
            self.heads.push(Reverse(Head { rank, id, is_child: false, tag: None, siblings: None }));
        }
        let tag = node.edge.key().map(|_| node.tag);
        if let Some(seats) = &node.seats {
            self.advance(seats.open.iter(), id, tag);
            return;
        }
        for id in self.tree.children(id).filter(|child| !self.tree.nodes[*child].closed) {
            if let Some(rank) = self.tree.best_open(id) {
                let rank = node.seated(rank);
                self.heads.push(Reverse(Head { rank, id, is_child: true, tag: None, siblings: None }));
            }
        }
    }

    fn advance(&mut self, mut siblings: ChildQueueIter<'a>, parent: NodeIdx, tag: Option<u64>) {
        let taken = siblings.find(|place| self.tree.sits(parent, place, Seat::Open));
        if let Some((rank, id)) = taken {
            let rank = tag.map_or(rank, |tag| rank.with_tag(tag));
            self.heads.push(Reverse(Head { rank, id, is_child: true, tag, siblings: Some(siblings) }));
        }
    }
}

impl Iterator for BestFirst<'_> {
    /// A node that holds tasks, and its first task.
    type Item = (NodeIdx, TaskIdx);

    fn next(&mut self) -> Option<(NodeIdx, TaskIdx)> {
        loop {
            let Reverse(head) = self.heads.pop()?;
            if !head.is_child {
                let first = self.tree.nodes[head.id].tasks.first();
                return first.map(|(_, task)| (head.id, task));
            }
            if let Some(siblings) = head.siblings
                && let Some(parent) = self.tree.nodes[head.id].parent
            {
                self.advance(siblings, parent, head.tag);
            }
            self.enter(head.id);
        }
    }
}
