//! Tasks in the line: how they join it, move in it and leave it.

use crate::api::lane_settings::Handler;
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::fair_share::FairKeyIdx;
use crate::state::ready_tree::node::{Edge, LaneNeed, NodeIdx};
use crate::state::ready_tree::ranked_list::{ArrivalRank, RankedList};
use crate::state::ready_tree::{EXTERNAL, INTERNAL, Left};
use crate::state::routes::RouteIdx;
use crate::state::task::{LiveTask, Passed, Phase, TaskIdx};

impl Scheduler {
    /// Puts a task into the line, at the place that its level and arrival give it.
    pub(super) fn enter_ready_tree(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        self.indexes.ready_by_level[task.urgency() as usize] += 1;
        self.indexes.ready_count += 1;
        let (route_idx, rank, route) = (task.route, task.rank(), self.state.lanes.route(task.route));
        let is_plain = task.rare.is_none() && task.handler != Handler::External;
        let is_known = |leaf: &NodeIdx| is_plain && self.indexes.ready.is_leaf_of(*leaf, route_idx);
        let known = route.leaf.filter(is_known);
        let woken = if self.indexes.ready.idle_route().is_some() { self.wake_leaf(idx) } else { known };
        let leaf = if let Some(leaf) = woken {
            self.state.tasks[idx].leaf = Some(leaf);
            self.indexes.ready.insert(leaf, rank, idx);
            leaf
        } else {
            let (task, route) = (&self.state.tasks[idx], self.state.lanes.route(route_idx));
            let name = self.state.lanes.fair_key(route, task.fair_key(), &self.state.lane_config);
            let key = self.state.fair.join(name, || self.state.lane_config.weight(name));
            let leaf = self.enter_leaf(idx, key);
            if is_plain {
                self.indexes.ready.set_route(leaf, route_idx);
                self.state.lanes.set_leaf(route_idx, leaf);
            }
            leaf
        };
        self.indexes.may_grant = self.indexes.may_grant || self.indexes.ready.is_open(leaf);
        self.update_waiting_list(route_idx, |list| {
            list.insert(rank, idx);
        });
        self.plan_wait_check(idx);
    }

    /// The leaf that is kept while the line is empty, if the task belongs there. Otherwise the leaf is dropped.
    fn wake_leaf(&mut self, idx: TaskIdx) -> Option<NodeIdx> {
        let task = &self.state.tasks[idx];
        let route = self.state.lanes.route(task.route);
        let name = self.state.lanes.fair_key(route, task.fair_key(), &self.state.lane_config);
        if !self.needs_only_slots(idx)
            || self.indexes.ready.idle_route() != Some(task.route)
            || !self.state.fair.is_idle(name)
        {
            self.drop_idle_leaf();
            return None;
        }
        let (key, tag) = self.state.fair.wake()?;
        self.indexes.ready.set_tag(key, tag);
        self.indexes.ready.wake()
    }

    /// Whether a task stands below nothing but the slots of its lanes: no worker claims it, and no parent lends to it.
    fn needs_only_slots(&self, idx: TaskIdx) -> bool {
        self.state.tasks[idx].handler != Handler::External && self.parent_of(idx).is_none()
    }

    /// Changes the roll of a task's home lane: its waiting tasks in order, for their positions. The lanes of a
    /// session have none; their lines are short.
    fn update_waiting_list(&mut self, route: RouteIdx, change: impl FnOnce(&mut RankedList<ArrivalRank>)) {
        let home = self.state.lanes.route(route).first_lane();
        let lane = &mut self.state.lanes[home];
        if !lane.is_session_family() {
            let waiting_list = lane.waiting_list.get_or_insert_default();
            change(waiting_list);
            if waiting_list.is_spent() {
                lane.waiting_list = None;
            }
        }
    }

    /// How many tasks with this home lane stand before `rank`, by level and arrival.
    pub(crate) fn position_in(&self, home: LaneIdx, rank: ArrivalRank) -> usize {
        if !self.state.lanes[home].is_session_family() {
            return self.state.lanes[home].waiting_list.as_ref().map_or(0, |list| list.position(rank));
        }
        let needs = [LaneNeed::Slot(home), LaneNeed::Gate(home)];
        let tasks = needs.into_iter().flat_map(|need| self.indexes.ready.tasks_with(need));
        let is_before = |idx: &TaskIdx| {
            let task = &self.state.tasks[*idx];
            task.rank() < rank && self.state.lanes.route(task.route).first_lane() == home
        };
        tasks.filter(is_before).count()
    }

    fn enter_leaf(&mut self, task: TaskIdx, key: FairKeyIdx) -> NodeIdx {
        let leaf = self.leaf_for(task, key);
        self.state.tasks[task].leaf = Some(leaf);
        self.indexes.ready.insert(leaf, self.state.tasks[task].rank(), task);
        leaf
    }

    /// The node of the line where a task belongs: down its lanes, the most widely shared first, and before the
    /// lanes of sessions down its fair key. A key that is a session's own shares that one's step.
    fn leaf_for(&mut self, idx: TaskIdx, key: FairKeyIdx) -> NodeIdx {
        let task = &self.state.tasks[idx];
        let parent = self.parent_of(idx);
        let is_external = task.handler == Handler::External;
        let mut node = if is_external { EXTERNAL } else { INTERNAL };
        let route = self.state.lanes.route(task.route);
        let fair = &self.state.fair.keys[key];
        let mut key = Some(key);
        for lane in &*route.way {
            let this = &self.state.lanes[*lane];
            let (need, closed) = match parent.and_then(|parent| self.lender(Some(parent), *lane)) {
                Some(_) => (LaneNeed::Gate(*lane), !this.passable),
                None => (LaneNeed::Slot(*lane), !this.open),
            };
            let mut own_key = None;
            if this.is_session_family()
                && let Some(key) = key.take()
            {
                if this.name == fair.name {
                    own_key = Some(key);
                } else {
                    let edge = Edge::Needs { need: None, key: Some(key) };
                    node = self.indexes.ready.child(node, edge, fair.tag, false);
                }
            }
            let tag = own_key.map_or(0, |_| fair.tag);
            let edge = Edge::Needs { need: Some(need), key: own_key };
            node = self.indexes.ready.child(node, edge, tag, closed);
        }
        if key.is_some() {
            node = self.indexes.ready.child(node, Edge::Needs { need: None, key }, fair.tag, false);
        }
        if is_external {
            let edge = Edge::Offers { home: route.first_lane(), kind: task.kind };
            node = self.indexes.ready.child(node, edge, 0, false);
        }
        node
    }

    /// Moves a waiting task to where it belongs now.
    pub(crate) fn reroute(&mut self, task: TaskIdx) {
        let rank = self.state.tasks[task].rank();
        let Some(old) = self.state.tasks[task].leaf else { return };
        let Some(key) = self.indexes.ready.key_of(old) else { return };
        let new = self.leaf_for(task, key);
        if new != old {
            self.indexes.ready.insert(new, rank, task);
            self.indexes.ready.remove(old, rank, None, None);
            self.state.tasks[task].leaf = Some(new);
            self.indexes.may_grant = true;
        }
    }

    pub(crate) fn relevel(&mut self, idx: TaskIdx, change: impl FnOnce(&mut LiveTask)) {
        let task = &mut self.state.tasks[idx];
        let (leaf, route, old_rank, old_urgency) = (task.leaf, task.route, task.rank(), task.urgency());
        change(task);
        let (rank, urgency) = (task.rank(), task.urgency());
        if let Some(leaf) = leaf {
            if rank != old_rank {
                self.indexes.ready.insert(leaf, rank, idx);
                self.indexes.ready.remove(leaf, old_rank, None, None);
                self.update_waiting_list(route, |list| {
                    list.remove(old_rank);
                    list.insert(rank, idx);
                });
            }
            self.indexes.ready_by_level[old_urgency as usize] -= 1;
            self.indexes.ready_by_level[urgency as usize] += 1;
            self.plan_wait_check(idx);
        }
        self.plan(idx);
    }

    /// Takes a task out of the line. Where it was its turn, `turn` is its fair key and the new tag of that.
    pub(crate) fn leave_ready_tree(&mut self, idx: TaskIdx, turn: Option<(FairKeyIdx, u64)>) {
        let task = &mut self.state.tasks[idx];
        let Some(leaf) = task.leaf.take() else { return };
        let (rank, route) = (task.rank(), task.route);
        task.check_at = Timestamp::NEVER;
        if let Some(rare) = &mut task.rare {
            rare.passed = Passed::default();
        }
        self.indexes.ready_by_level[task.urgency() as usize] -= 1;
        self.indexes.ready_count -= 1;
        let key = turn.map(|(key, _)| key).or_else(|| self.indexes.ready.key_of(leaf));
        let is_line_empty = self.indexes.ready_count == 0;
        let idle = (is_line_empty && self.needs_only_slots(idx)).then_some(route);
        let left = self.indexes.ready.remove(leaf, rank, turn, idle);
        self.update_waiting_list(route, |list| {
            list.remove(rank);
        });
        match (left, key) {
            (Left::Idle, Some(key)) => self.state.fair.keep_idle(key),
            (Left::Nothing, Some(key)) if !self.indexes.ready.has_key(key) => self.state.fair.rest(key),
            _ => {}
        }
        self.state.fair.sweep(is_line_empty);
        if !self.state.reservations.is_empty() && self.state.reservations.contains(&idx) {
            self.unreserve(idx);
        }
    }

    /// The leaf that is kept while the line is empty goes with its route.
    pub(super) fn drop_idle_leaf_of_dropped_route(&mut self) {
        if self.indexes.ready.idle_route().is_some_and(|route| !self.state.lanes.has_route(route)) {
            self.drop_idle_leaf();
        }
    }

    /// Drops what is kept for the next task while the line is empty.
    pub(super) fn drop_idle_leaf(&mut self) {
        self.indexes.ready.drop_idle();
        self.state.fair.drop_idle();
    }

    pub(crate) fn on_reserved(&mut self, task: TaskIdx) {
        self.state.reservations.insert(task);
        self.each_lane(task, |this, lane| {
            if this.settings(lane).max_concurrency.is_some() {
                this.state.lanes[lane].reserved = Some(task);
                this.refresh_lane(lane);
            }
        });
    }

    pub(crate) fn unreserve(&mut self, task: TaskIdx) {
        self.state.reservations.remove(&task);
        self.each_lane(task, |this, lane| {
            if this.state.lanes[lane].reserved == Some(task) {
                this.state.lanes[lane].reserved = None;
                this.refresh_lane(lane);
            }
        });
    }

    pub(crate) fn on_ready(&mut self, task: TaskIdx) {
        if matches!(self.state.tasks[task].phase, Phase::BackingOff(_)) {
            self.each_lane(task, |this, lane| {
                this.state.lanes[lane].retrying -= 1;
                this.state.lanes[lane].waiting += 1;
            });
        }
        if let Some(rare) = &mut self.state.tasks[task].rare {
            rare.after = None;
        }
        self.wait_again(task);
    }

    pub(super) fn wait_again(&mut self, idx: TaskIdx) {
        let task = &mut self.state.tasks[idx];
        task.phase = Phase::Waiting;
        task.since = self.state.now;
        task.noticed = false;
        self.enter_ready_tree(idx);
        self.plan(idx);
    }

    /// What must be run again was no turn.
    pub(super) fn refund(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        let route = self.state.lanes.route(task.route);
        let name = self.state.lanes.fair_key(route, task.fair_key(), &self.state.lane_config).clone();
        if let Some((key, tag)) = self.state.fair.refund(&name, self.state.lane_config.weight(&name)) {
            self.indexes.ready.set_tag(key, tag);
        }
    }
}
