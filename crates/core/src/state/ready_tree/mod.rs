//! The line: every task that waits, arranged so that the best one that may run is always at hand.
//!
//! A tree. Each step down is one lane that tasks need, the most widely shared lane first (`global`, then
//! `main`, …, the lane of a conversation last), so that all tasks below a node need the lanes on the way to
//! it. A lane that can give no slot closes its nodes. Each node keeps its children sorted by the best
//! task that may run below them, so the best of all is found by walking down, and a lane that opens or
//! closes moves its few nodes and nothing else, however many tasks wait.
//!
//! Fair keys are part of the way down, after the shared lanes and before the lanes of conversations: below
//! that step only level and arrival matter, above it also whose turn it is.

pub(crate) mod child_queue;
pub(crate) mod fair_share;
pub(crate) mod iter;
pub(crate) mod node;
pub(crate) mod rank;
pub(crate) mod ranked_list;

use crate::state::index::Index;
use crate::state::ready_tree::node::{FEW_CHILDREN, Node, Seat, Step};
use crate::state::ready_tree::ranked_list::Place;
use crate::state::table::Table;

/// "None of them", for the small numbers that stand for lanes, keys, kinds, nodes and tasks.
pub(crate) const NONE: u32 = u32::MAX;

/// The two halves of the line.
pub(crate) const INTERNAL: u32 = 0;
/// Tasks that only a claim may take.
pub(crate) const EXTERNAL: u32 = 1;

pub(crate) struct Line {
    pub(crate) nodes: Table<Node>,
    edges: Index,
    /// Where the list of a lane's and of a key's nodes begins.
    heads: [Vec<u32>; 2],
}

/// The two sorts of lists on which nodes hang, by what they have in common.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Lane,
    Key,
}

impl Line {
    pub(crate) fn new(seed: u64) -> Line {
        let mut nodes = Table::default();
        for half in [INTERNAL, EXTERNAL] {
            let key = nodes.insert(Node::new(Step::NONE, NONE, 0, false));
            debug_assert_eq!(key as u32, half);
        }
        Line { nodes, edges: Index::new(seed), heads: Default::default() }
    }

    /// The child of `parent` by `step`, made if need be. `tag` is that of the step's key, `closed` the state
    /// of its lane.
    pub(crate) fn child(&mut self, parent: u32, step: Step, tag: u64, closed: bool) -> u32 {
        let hash = self.edges.hash((parent, step));
        let nodes = &self.nodes;
        let found = self.edges.find(hash, |id| {
            let node = &nodes[id as usize];
            node.parent == parent && node.step == step
        });
        found.unwrap_or_else(|| self.add(parent, step, tag, closed, hash))
    }

    fn add(&mut self, parent: u32, step: Step, tag: u64, closed: bool, hash: u64) -> u32 {
        let id = self.nodes.insert(Node::new(step, parent, tag, closed)) as u32;
        self.edges.insert(hash, id);
        self.link(id, parent);
        self.count_child(parent, true);
        self.enlist(By::Lane, step.lane(), id);
        self.enlist(By::Key, step.key(), id);
        // With a child, or with a second node for its lane, a closed node may count as passed over.
        self.refresh(parent);
        let elder = self.nodes[id as usize].next_by[By::Lane as usize];
        if elder != NONE {
            self.refresh(elder);
        }
        id
    }

    /// Hangs a node on a list, in front.
    fn enlist(&mut self, by: By, number: u32, id: u32) {
        if number == NONE {
            return;
        }
        let heads = &mut self.heads[by as usize];
        if heads.len() <= number as usize {
            heads.resize(number as usize + 1, NONE);
        }
        let next = std::mem::replace(&mut heads[number as usize], id);
        self.nodes[id as usize].next_by[by as usize] = next;
        if next != NONE {
            self.nodes[next as usize].previous_by[by as usize] = id;
        }
    }

    /// Takes a node off a list.
    fn delist(&mut self, by: By, number: u32, id: u32) {
        if number == NONE {
            return;
        }
        let node = &self.nodes[id as usize];
        let (previous, next) = (node.previous_by[by as usize], node.next_by[by as usize]);
        if next != NONE {
            self.nodes[next as usize].previous_by[by as usize] = previous;
        }
        if previous == NONE {
            self.heads[by as usize][number as usize] = next;
        } else {
            self.nodes[previous as usize].next_by[by as usize] = next;
        }
    }

    pub(crate) fn listed(&self, by: By, number: u32) -> impl Iterator<Item = u32> {
        let first = self.heads[by as usize].get(number as usize).copied();
        std::iter::successors(first.filter(|id| *id != NONE), move |id| {
            Some(self.nodes[*id as usize].next_by[by as usize]).filter(|next| *next != NONE)
        })
    }

    /// Seats the children of a node when they have become many, and unseats them when few are left.
    fn count_child(&mut self, id: u32, is_new: bool) {
        let node = &mut self.nodes[id as usize];
        node.children = if is_new { node.children + 1 } else { node.children - 1 };
        let (children, is_seated) = (node.children, node.seats.is_some());
        if children > FEW_CHILDREN && !is_seated {
            self.nodes[id as usize].seats = Some(Box::default());
            for child in self.children(id).collect::<Vec<_>>() {
                self.refresh(child);
            }
        } else if children <= FEW_CHILDREN / 4 && is_seated {
            self.nodes[id as usize].seats = None;
            for child in self.children(id).collect::<Vec<_>>() {
                self.nodes[child as usize].set_seat(Seat::Nowhere);
            }
        }
    }

    pub(crate) fn children(&self, id: u32) -> impl Iterator<Item = u32> {
        let first = Some(self.nodes[id as usize].first_child).filter(|child| *child != NONE);
        std::iter::successors(first, |child| {
            Some(self.nodes[*child as usize].next).filter(|next| *next != NONE)
        })
    }

    fn link(&mut self, id: u32, parent: u32) {
        let next = std::mem::replace(&mut self.nodes[parent as usize].first_child, id);
        self.nodes[id as usize].next = next;
        if next != NONE {
            self.nodes[next as usize].previous = id;
        }
    }

    fn unlink(&mut self, id: u32, parent: u32) {
        let (previous, next) = (self.nodes[id as usize].previous, self.nodes[id as usize].next);
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if previous == NONE {
            self.nodes[parent as usize].first_child = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
    }

    /// Whether `leaf` is still the node where the plain tasks of a route stand.
    pub(crate) fn is_leaf_of(&self, leaf: u32, route: u32) -> bool {
        self.nodes.get(leaf as usize).is_some_and(|node| node.route == route)
    }

    /// The fair key of the tasks that stand in `leaf`, or `NONE`.
    pub(crate) fn key_of(&self, leaf: u32) -> u32 {
        let mut id = leaf;
        while let Some(node) = self.nodes.get(id as usize) {
            if node.step.key() != NONE {
                return node.step.key();
            }
            id = node.parent;
        }
        NONE
    }

    /// Whether tasks wait under a fair key.
    pub(crate) fn has_key(&self, key: u32) -> bool {
        self.listed(By::Key, key).next().is_some()
    }

    /// Notes that the plain tasks of a route stand in this node.
    pub(crate) fn set_route(&mut self, leaf: u32, route: u32) {
        self.nodes[leaf as usize].route = route;
    }

    pub(crate) fn insert(&mut self, leaf: u32, place: Place, task: u32) {
        // Who is not the first of its leaf changes nobody's rank.
        if self.nodes[leaf as usize].tasks.insert(place, task) {
            self.refresh(leaf);
        }
    }

    /// A task of the same level that stands before `place` in a leaf, for the checks: those need the same lanes
    /// under the same key, so arrival decides between them.
    pub(crate) fn earlier_of_its_level(&self, leaf: u32, place: Place) -> Option<u32> {
        let before = self.nodes[leaf as usize].tasks.before(place)?;
        (before.0.level() == place.level()).then_some(before.1)
    }

    /// Whether every lane on the way to a node can give a slot.
    pub(crate) fn is_open(&self, mut id: u32) -> bool {
        while id > EXTERNAL {
            let node = &self.nodes[id as usize];
            if node.closed {
                return false;
            }
            id = node.parent;
        }
        true
    }

    /// Takes a task out of a leaf, and says whether it was the last there. `turn` is its fair key and the key's new tag,
    /// if it has one.
    pub(crate) fn remove(&mut self, leaf: u32, place: Place, turn: Option<(u32, u64)>) -> bool {
        let node = &mut self.nodes[leaf as usize];
        let was_first = node.tasks.first().is_some_and(|(first, _)| first == place);
        let removed = node.tasks.remove(place);
        debug_assert!(removed, "the line lost a task");
        let is_last = node.tasks.is_empty();
        // A leaf that is a node of the key is refreshed with all others.
        let is_refreshed = turn.is_some_and(|(key, _)| node.step.key() == key);
        if was_first && !is_refreshed {
            self.refresh(leaf);
        }
        if let Some((key, tag)) = turn {
            self.set_tag(key, tag);
        }
        if is_last {
            self.prune(leaf);
        }
        is_last
    }

    /// Takes away nodes that nothing waits below.
    fn prune(&mut self, mut id: u32) {
        while id > EXTERNAL {
            let node = &self.nodes[id as usize];
            if node.children > 0 || !node.tasks.is_empty() {
                return;
            }
            let (parent, step) = (node.parent, node.step);
            self.edges.remove(self.edges.hash((parent, step)), id);
            self.delist(By::Lane, step.lane(), id);
            self.delist(By::Key, step.key(), id);
            self.unlink(id, parent);
            self.nodes.remove(id as usize);
            self.count_child(parent, false);
            self.refresh(parent);
            // With one node less for its lane, a closed one may count as passed over no more.
            let last = self.listed(By::Lane, step.lane()).next();
            if let Some(last) = last {
                self.refresh(last);
            }
            id = parent;
        }
    }

    /// Opens or closes all nodes of a lane.
    pub(crate) fn set_closed(&mut self, lane: u32, closed: bool) {
        let mut next = self.listed(By::Lane, lane).next();
        while let Some(id) = next {
            self.nodes[id as usize].closed = closed;
            self.refresh(id);
            next = Some(self.nodes[id as usize].next_by[By::Lane as usize]).filter(|next| *next != NONE);
        }
    }

    /// Gives all nodes of a fair key its new tag.
    pub(crate) fn set_tag(&mut self, key: u32, tag: u64) {
        let mut next = self.listed(By::Key, key).next();
        while let Some(id) = next {
            self.nodes[id as usize].tag = tag;
            self.refresh(id);
            next = Some(self.nodes[id as usize].next_by[By::Key as usize]).filter(|next| *next != NONE);
        }
    }

    /// The home lane and kind of the tasks of a leaf of the external half.
    pub(crate) fn home_and_kind(&self, leaf: u32) -> (u32, u32) {
        match self.nodes[leaf as usize].step {
            Step::Offers { home, kind } => (home, kind),
            Step::Needs { .. } => (NONE, NONE),
        }
    }

    /// All tasks that need a slot of this lane.
    pub(crate) fn tasks_of_lane(&self, lane: u32) -> Vec<u32> {
        let mut tasks = vec![];
        for id in self.listed(By::Lane, lane) {
            self.below(id, &mut |node| tasks.extend(node.tasks.iter().map(|(_, task)| task)));
        }
        tasks
    }

    /// Visits a node and everything below it.
    fn below(&self, id: u32, visit: &mut impl FnMut(&Node)) {
        visit(&self.nodes[id as usize]);
        for child in self.children(id) {
            self.below(child, visit);
        }
    }

    /// For the checks: how many nodes there are beside the two roots.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len() - 2
    }

    /// For the checks: every node's seat and closedness are what they should be.
    pub(crate) fn disagreement(&self, is_closed: impl Fn(u32) -> bool) -> Option<String> {
        if self.edges.len() != self.nodes() {
            return Some(format!("{} edges for {} nodes", self.edges.len(), self.nodes()));
        }
        for (id, node) in self.nodes.iter() {
            let is_seated = node.parent != NONE && self.nodes[node.parent as usize].seats.is_some();
            let seat = if is_seated { self.seat_of(id as u32) } else { Seat::Nowhere };
            if node.seat() != seat || node.children as usize != self.children(id as u32).count() {
                return Some(format!("node {id} sits in {:?}, not {seat:?}", node.seat()));
            }
            if let Some(seats) = &node.seats {
                let open = seats.open.disagreement(|place| self.sits(id as u32, place, Seat::Open));
                let shut = seats.shut.disagreement(|place| self.sits(id as u32, place, Seat::Shut));
                if let Some(wrong) = open.or(shut) {
                    return Some(format!("below node {id}: {wrong}"));
                }
            }
            if node.step.lane() != NONE && node.closed != is_closed(node.step.lane()) {
                return Some(format!("node {id} has closed = {}", node.closed));
            }
            if id as u32 > EXTERNAL && node.children == 0 && node.tasks.is_empty() {
                return Some(format!("node {id} is kept for nothing"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::index::tests::that_share_a_half;

    #[test]
    fn nodes_are_told_apart_where_their_hashes_look_alike() {
        let mut line = Line::new(1);
        let step = |lane: u32| Step::Needs { lane, key: NONE };
        let (one, other) = that_share_a_half(|lane| line.edges.hash((INTERNAL, step(lane))));
        let nodes = [one, other].map(|lane| line.child(INTERNAL, step(lane), 0, false));
        assert_ne!(nodes[0], nodes[1]);
        assert_eq!([one, other].map(|lane| line.child(INTERNAL, step(lane), 0, false)), nodes);
    }
}
