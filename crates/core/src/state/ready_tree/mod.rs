//! The line: a tree of all waiting tasks, with the best one that may run at hand.
//!
//! Each step down is one lane that tasks need, the most widely shared first: `global`, then `main`, …, the lane of a
//! session last. So all tasks below a node need the lanes on the way to it. A lane that can give no slot closes
//! its nodes. Each node keeps its children sorted by the best task that may run below them, so a walk down finds the
//! best of all. A lane that opens or closes moves only its own nodes, however many tasks wait.
//!
//! Fair keys are a step after the shared lanes and before the lanes of sessions. Below it only level and arrival
//! matter; above it also whose turn it is.

pub(crate) mod child_queue;
pub(crate) mod fair_share;
pub(crate) mod iter;
pub(crate) mod node;
pub(crate) mod rank;
pub(crate) mod ranked_list;

use crate::state::hash_index::HashIndex;
use crate::state::interner::KindIdx;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::fair_share::FairKeyIdx;
use crate::state::ready_tree::node::{Edge, FEW_CHILDREN, LaneNeed, Node, NodeIdx, NodeList, Seat};
use crate::state::ready_tree::ranked_list::ArrivalRank;
use crate::state::routes::RouteIdx;
use crate::state::table::{Idx, Table};
use crate::state::task::TaskIdx;

/// The root of the internal half of the line.
pub(crate) const INTERNAL: NodeIdx = Idx::new(0);
/// The root of the external half, whose tasks only a claim may take.
pub(crate) const EXTERNAL: NodeIdx = Idx::new(1);

/// What a task that is taken out of its leaf leaves there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Other tasks.
    Others,
    /// No task; the leaf is gone.
    Nothing,
    /// No task; the leaf stays for the next one, because the line is empty.
    Idle,
}

pub(crate) struct ReadyTree {
    pub(crate) nodes: Table<Node>,
    edges: HashIndex<Node>,
    /// The first node of each [`NodeList`].
    heads: [Vec<Option<NodeIdx>>; 2],
    /// The leaf of the last task and its route, kept while the line is empty: most often, the next task has both.
    idle: Option<(NodeIdx, RouteIdx)>,
}

impl ReadyTree {
    pub(crate) fn new(seed: u64) -> ReadyTree {
        let mut nodes = Table::default();
        for half in [INTERNAL, EXTERNAL] {
            let root = nodes.insert(Node::new(Edge::ROOT, None, 0, false));
            debug_assert_eq!(root, half);
        }
        ReadyTree { nodes, edges: HashIndex::new(seed), heads: Default::default(), idle: None }
    }

    /// The child of `parent` by `edge`, made if need be. `tag` is that of the edge's key, `closed` the state
    /// of its lane.
    pub(crate) fn child(&mut self, parent: NodeIdx, edge: Edge, tag: u64, closed: bool) -> NodeIdx {
        let hash = self.edge_hash(parent, edge);
        let nodes = &self.nodes;
        let found = self.edges.find(hash, |id| {
            let node = &nodes[id];
            node.parent == Some(parent) && node.edge == edge
        });
        found.unwrap_or_else(|| self.add(parent, edge, tag, closed, hash))
    }

    fn edge_hash(&self, parent: NodeIdx, edge: Edge) -> u64 {
        self.edges.hash((parent, edge.hash_bits()))
    }

    fn add(&mut self, parent: NodeIdx, edge: Edge, tag: u64, closed: bool, hash: u64) -> NodeIdx {
        let id = self.nodes.insert(Node::new(edge, Some(parent), tag, closed));
        self.edges.insert(hash, id);
        self.link(id, parent);
        self.count_child(parent, true);
        if let Some(need) = edge.need() {
            self.enlist(NodeList::OfNeed(need), id);
        }
        if let Some(key) = edge.key() {
            self.enlist(NodeList::OfKey(key), id);
        }
        // With a child, or with a second node for its lane, a closed node may count as passed over.
        self.refresh(parent);
        if let Some(second) = self.nodes[id].next_on[NodeList::NEED] {
            self.refresh(second);
        }
        id
    }

    /// Puts a node on a list, in front.
    fn enlist(&mut self, list: NodeList, id: NodeIdx) {
        let heads = &mut self.heads[list.links()];
        if heads.len() <= list.number() {
            heads.resize(list.number() + 1, None);
        }
        let next = heads[list.number()].replace(id);
        self.nodes[id].next_on[list.links()] = next;
        if let Some(next) = next {
            self.nodes[next].previous_on[list.links()] = Some(id);
        }
    }

    /// Takes a node off a list.
    fn delist(&mut self, list: NodeList, id: NodeIdx) {
        let links = list.links();
        let (previous, next) = (self.nodes[id].previous_on[links], self.nodes[id].next_on[links]);
        if let Some(next) = next {
            self.nodes[next].previous_on[links] = previous;
        }
        match previous {
            Some(previous) => self.nodes[previous].next_on[links] = next,
            None => self.heads[links][list.number()] = next,
        }
    }

    fn first_on(&self, list: NodeList) -> Option<NodeIdx> {
        self.heads[list.links()].get(list.number()).copied().flatten()
    }

    pub(crate) fn listed(&self, list: NodeList) -> impl Iterator<Item = NodeIdx> {
        std::iter::successors(self.first_on(list), move |id| self.nodes[*id].next_on[list.links()])
    }

    /// Seats the children of a node when they have become many, and unseats them when few are left.
    fn count_child(&mut self, id: NodeIdx, is_new: bool) {
        let node = &mut self.nodes[id];
        node.children = if is_new { node.children + 1 } else { node.children - 1 };
        let (children, is_seated) = (node.children, node.seats.is_some());
        if children > FEW_CHILDREN && !is_seated {
            self.nodes[id].seats = Some(Box::default());
            for child in self.children(id).collect::<Vec<_>>() {
                self.refresh(child);
            }
        } else if children <= FEW_CHILDREN / 4 && is_seated {
            self.nodes[id].seats = None;
            for child in self.children(id).collect::<Vec<_>>() {
                self.nodes[child].set_seat(Seat::Nowhere);
            }
        }
    }

    pub(crate) fn children(&self, id: NodeIdx) -> impl Iterator<Item = NodeIdx> {
        std::iter::successors(self.nodes[id].first_child, |child| self.nodes[*child].next)
    }

    fn link(&mut self, id: NodeIdx, parent: NodeIdx) {
        let next = self.nodes[parent].first_child.replace(id);
        self.nodes[id].next = next;
        if let Some(next) = next {
            self.nodes[next].previous = Some(id);
        }
    }

    fn unlink(&mut self, id: NodeIdx, parent: NodeIdx) {
        let (previous, next) = (self.nodes[id].previous, self.nodes[id].next);
        if let Some(next) = next {
            self.nodes[next].previous = previous;
        }
        match previous {
            Some(previous) => self.nodes[previous].next = next,
            None => self.nodes[parent].first_child = next,
        }
    }

    /// Whether `leaf` is still the node where the plain tasks of a route stand.
    pub(crate) fn is_leaf_of(&self, leaf: NodeIdx, route: RouteIdx) -> bool {
        self.nodes.get(leaf).is_some_and(|node| node.route == Some(route))
    }

    /// The fair key of the tasks that stand in `leaf`.
    pub(crate) fn key_of(&self, leaf: NodeIdx) -> Option<FairKeyIdx> {
        let mut id = leaf;
        loop {
            let node = &self.nodes[id];
            match node.edge.key() {
                None => id = node.parent?,
                key => return key,
            }
        }
    }

    /// Whether tasks wait under a fair key.
    pub(crate) fn has_key(&self, key: FairKeyIdx) -> bool {
        self.first_on(NodeList::OfKey(key)).is_some()
    }

    /// Notes that the plain tasks of a route stand in this node.
    pub(crate) fn set_route(&mut self, leaf: NodeIdx, route: RouteIdx) {
        self.nodes[leaf].route = Some(route);
    }

    pub(crate) fn insert(&mut self, leaf: NodeIdx, rank: ArrivalRank, task: TaskIdx) {
        // Only the first task of a leaf affects rank.
        if self.nodes[leaf].tasks.insert(rank, task) {
            self.refresh(leaf);
        }
    }

    /// For the checks: a task of the same level before `rank` in a leaf. Tasks of a leaf need the same lanes under the
    /// same key, so arrival decides between them.
    pub(crate) fn earlier_of_its_level(&self, leaf: NodeIdx, rank: ArrivalRank) -> Option<TaskIdx> {
        let before = self.nodes[leaf].tasks.before(rank)?;
        (before.0.level() == rank.level()).then_some(before.1)
    }

    /// Whether every lane on the way to a node can give a slot.
    pub(crate) fn is_open(&self, mut id: NodeIdx) -> bool {
        while let Some(parent) = self.nodes[id].parent {
            if self.nodes[id].closed {
                return false;
            }
            id = parent;
        }
        true
    }

    /// Takes a task out of a leaf. `turn` is its fair key and the key's new tag, if it has one. `idle`: no other task waits,
    /// and the leaf stays for the next task of this route.
    pub(crate) fn remove(
        &mut self,
        leaf: NodeIdx,
        rank: ArrivalRank,
        turn: Option<(FairKeyIdx, u64)>,
        idle: Option<RouteIdx>,
    ) -> Left {
        let node = &mut self.nodes[leaf];
        let was_first = node.tasks.first().is_some_and(|(first, _)| first == rank);
        let removed = node.tasks.remove(rank);
        debug_assert!(removed, "the line lost a task");
        let is_last = node.tasks.is_empty();
        // A leaf that is a node of the key is refreshed with all others.
        let is_refreshed = turn.is_some_and(|(key, _)| node.edge.key() == Some(key));
        if was_first && !is_refreshed {
            self.refresh(leaf);
        }
        if let Some((key, tag)) = turn {
            self.set_tag(key, tag);
        }
        if !is_last {
            return Left::Others;
        }
        if let Some(route) = idle {
            self.idle = Some((leaf, route));
            return Left::Idle;
        }
        self.prune(leaf);
        Left::Nothing
    }

    /// The leaf that is kept while the line is empty. A task joins it again.
    pub(crate) fn wake(&mut self) -> Option<NodeIdx> {
        self.idle.take().map(|(leaf, _)| leaf)
    }

    /// Drops the leaf that is kept while the line is empty.
    pub(crate) fn drop_idle(&mut self) {
        if let Some((leaf, _)) = self.idle.take() {
            self.prune(leaf);
        }
    }

    /// The route whose leaf is kept while the line is empty.
    pub(crate) fn idle_route(&self) -> Option<RouteIdx> {
        self.idle.map(|(_, route)| route)
    }

    /// Takes away nodes that nothing waits below.
    fn prune(&mut self, mut id: NodeIdx) {
        loop {
            let node = &self.nodes[id];
            let (edge, parent) = (node.edge, node.parent);
            let Some(parent) = parent.filter(|_| node.children == 0 && node.tasks.is_empty()) else {
                return;
            };
            self.edges.remove(self.edge_hash(parent, edge), id);
            if let Some(need) = edge.need() {
                self.delist(NodeList::OfNeed(need), id);
            }
            if let Some(key) = edge.key() {
                self.delist(NodeList::OfKey(key), id);
            }
            self.unlink(id, parent);
            self.nodes.remove(id);
            self.count_child(parent, false);
            self.refresh(parent);
            // With one node less for its lane, a closed one may count as passed over no more.
            let last = edge.need().and_then(|need| self.first_on(NodeList::OfNeed(need)));
            if let Some(last) = last {
                self.refresh(last);
            }
            id = parent;
        }
    }

    /// Opens or closes all nodes of a need.
    pub(crate) fn set_closed(&mut self, need: LaneNeed, closed: bool) {
        self.update(NodeList::OfNeed(need), |node| node.closed = closed);
    }

    /// Gives all nodes of a fair key its new tag.
    pub(crate) fn set_tag(&mut self, key: FairKeyIdx, tag: u64) {
        self.update(NodeList::OfKey(key), |node| node.tag = tag);
    }

    fn update(&mut self, list: NodeList, change: impl Fn(&mut Node)) {
        let mut next = self.first_on(list);
        while let Some(id) = next {
            change(&mut self.nodes[id]);
            self.refresh(id);
            next = self.nodes[id].next_on[list.links()];
        }
    }

    /// The home lane and kind of the tasks of a leaf, if it is one of the external half.
    pub(crate) fn home_and_kind(&self, leaf: NodeIdx) -> Option<(LaneIdx, KindIdx)> {
        match self.nodes[leaf].edge {
            Edge::Offers { home, kind } => Some((home, kind)),
            Edge::Needs { .. } => None,
        }
    }

    /// All tasks that have this need.
    pub(crate) fn tasks_with(&self, need: LaneNeed) -> Vec<TaskIdx> {
        let mut tasks = vec![];
        for id in self.listed(NodeList::OfNeed(need)) {
            self.below(id, &mut |node| tasks.extend(node.tasks.iter().map(|(_, task)| task)));
        }
        tasks
    }

    /// Visits a node and everything below it.
    fn below(&self, id: NodeIdx, visit: &mut impl FnMut(&Node)) {
        visit(&self.nodes[id]);
        for child in self.children(id) {
            self.below(child, visit);
        }
    }

    /// For the checks: the number of nodes without the two roots.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len() - 2
    }

    /// For the checks: every node's seat and closedness are what they should be.
    pub(crate) fn disagreement(&self, is_closed: impl Fn(LaneNeed) -> bool) -> Option<String> {
        if self.edges.len() != self.nodes() {
            return Some(format!("{} edges for {} nodes", self.edges.len(), self.nodes()));
        }
        for (id, node) in self.nodes.iter() {
            let is_seated = node.parent.is_some_and(|parent| self.nodes[parent].seats.is_some());
            let seat = if is_seated { self.seat_of(id) } else { Seat::Nowhere };
            if node.seat() != seat || node.children as usize != self.children(id).count() {
                return Some(format!("node {id:?} sits in {:?}, not {seat:?}", node.seat()));
            }
            if let Some(seats) = &node.seats {
                let open = seats.open.disagreement(|child| self.sits(id, child, Seat::Open));
                let shut = seats.shut.disagreement(|child| self.sits(id, child, Seat::Shut));
                if let Some(wrong) = open.or(shut) {
                    return Some(format!("below node {id:?}: {wrong}"));
                }
            }
            if node.edge.need().is_some_and(|need| node.closed != is_closed(need)) {
                return Some(format!("node {id:?} has closed = {}", node.closed));
            }
            let is_empty = node.children == 0 && node.tasks.is_empty();
            if node.parent.is_some() && is_empty && self.idle.is_none_or(|(idle, _)| idle != id) {
                return Some(format!("node {id:?} is kept for nothing"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::hash_index::tests::that_share_a_half;

    #[test]
    fn nodes_are_told_apart_where_their_hashes_look_alike() {
        let mut tree = ReadyTree::new(1);
        let edge = |number: u32| {
            let (lane, key) = (number as usize / 1000, number as usize % 1000);
            Edge::Needs { need: Some(LaneNeed::Slot(Idx::new(lane))), key: Some(Idx::new(key)) }
        };
        let (one, other) = that_share_a_half(|number| tree.edge_hash(INTERNAL, edge(number)));
        let nodes = [one, other].map(|number| tree.child(INTERNAL, edge(number), 0, false));
        assert_ne!(nodes[0], nodes[1]);
        assert_eq!([one, other].map(|number| tree.child(INTERNAL, edge(number), 0, false)), nodes);
    }
}
