//! Tasks in the line: how they join it, move in it and leave it.

use crate::api::lane_settings::Handler;
use crate::api::time::Timestamp;
use crate::decide::dispatch::{gate_of, slot_of};
use crate::scheduler::Scheduler;
use crate::state::ready_tree::node::Step;
use crate::state::ready_tree::ranked_list::{Ordered, Place};
use crate::state::ready_tree::{EXTERNAL, INTERNAL, NONE};
use crate::state::task::{Passed, Phase, Task};

impl Scheduler {
    /// Puts a task into the line, at the place that its level and arrival give it.
    pub(crate) fn join_line(&mut self, slot: u32) {
        let task = &self.state.tasks[slot];
        self.indexes.in_line[task.urgency() as usize] += 1;
        self.indexes.waiting_in_line += 1;
        let (number, place, route) = (task.route, task.place(), self.state.lanes.route(task.route));
        let is_plain = task.rare.is_none() && task.handler != Handler::External;
        let leaf = if is_plain && self.indexes.line.is_leaf_of(route.leaf, number) {
            let leaf = route.leaf;
            self.state.tasks[slot].leaf = leaf;
            self.indexes.line.insert(leaf, place, slot);
            leaf
        } else {
            let own = task.rare.as_ref().and_then(|rare| rare.fair_key.as_ref());
            let name = self.state.lanes.fair_key(route, own, &self.state.book);
            let key = self.state.fair.join(name, || self.state.book.weight(name));
            let leaf = self.enter_leaf(slot, key);
            if is_plain {
                self.indexes.line.set_route(leaf, number);
                self.state.lanes.set_leaf(number, leaf);
            }
            leaf
        };
        self.indexes.may_grant = self.indexes.may_grant || self.indexes.line.is_open(leaf);
        self.with_roll(number, |roll| {
            roll.insert(place, slot);
        });
        self.plan_look(slot);
    }

    /// Changes the roll of a task's home lane: its waiting tasks in order, for their positions. The lanes of a
    /// conversation have none; their lines are short.
    fn with_roll(&mut self, route: u32, change: impl FnOnce(&mut Ordered<Place>)) {
        let home = self.state.lanes.route(route).home();
        let lane = &mut self.state.lanes[home];
        if !lane.is_session() {
            let roll = lane.roll.get_or_insert_default();
            change(roll);
            if roll.is_empty() {
                lane.roll = None;
            }
        }
    }

    /// How many tasks with this home lane stand before `place`, by level and arrival.
    pub(crate) fn position_in(&self, home: u32, place: Place) -> usize {
        if !self.state.lanes[home].is_session() {
            return self.state.lanes[home].roll.as_ref().map_or(0, |roll| roll.position(place));
        }
        let views = [slot_of(home), gate_of(home)];
        let tasks = views.into_iter().flat_map(|view| self.indexes.line.tasks_of_lane(view));
        let is_before = |slot: &u32| {
            let task = &self.state.tasks[*slot];
            task.place() < place && self.state.lanes.route(task.route).home() == home
        };
        tasks.filter(is_before).count()
    }

    fn enter_leaf(&mut self, slot: u32, key: u32) -> u32 {
        let leaf = self.leaf_for(slot, key);
        self.state.tasks[slot].leaf = leaf;
        self.indexes.line.insert(leaf, self.state.tasks[slot].place(), slot);
        leaf
    }

    /// The node of the line where a task belongs: down its lanes, the most widely shared first, and before the
    /// lanes of conversations down its fair key. A key that is a conversation's own shares that one's step.
    fn leaf_for(&mut self, slot: u32, key: u32) -> u32 {
        let task = &self.state.tasks[slot];
        let parent = self.parent_of(slot);
        let is_external = task.handler == Handler::External;
        let mut node = if is_external { EXTERNAL } else { INTERNAL };
        let route = self.state.lanes.route(task.route);
        let fair = &self.state.fair.keys[key as usize];
        let mut key = Some(key);
        for lane in &*route.way {
            let this = &self.state.lanes[*lane];
            let (view, closed) = match parent.and_then(|parent| self.lender(Some(parent), *lane)) {
                Some(_) => (gate_of(*lane), !this.passable),
                None => (slot_of(*lane), !this.open),
            };
            let mut own_key = NONE;
            if this.is_session()
                && let Some(key) = key.take()
            {
                if this.name == fair.name {
                    own_key = key;
                } else {
                    node = self.indexes.line.child(node, Step::Needs { lane: NONE, key }, fair.tag, false);
                }
            }
            let tag = if own_key == NONE { 0 } else { fair.tag };
            node = self.indexes.line.child(node, Step::Needs { lane: view, key: own_key }, tag, closed);
        }
        if let Some(key) = key {
            node = self.indexes.line.child(node, Step::Needs { lane: NONE, key }, fair.tag, false);
        }
        if is_external {
            let step = Step::Offers { home: route.home(), kind: task.kind };
            node = self.indexes.line.child(node, step, 0, false);
        }
        node
    }

    /// Moves a waiting task to where it belongs now.
    pub(crate) fn reroute(&mut self, slot: u32) {
        let (old, place) = (self.state.tasks[slot].leaf, self.state.tasks[slot].place());
        let new = self.leaf_for(slot, self.indexes.line.key_of(old));
        if new != old {
            self.indexes.line.insert(new, place, slot);
            self.indexes.line.remove(old, place, None);
            self.state.tasks[slot].leaf = new;
            self.indexes.may_grant = true;
        }
    }

    pub(crate) fn relevel(&mut self, slot: u32, change: impl FnOnce(&mut Task)) {
        let task = &mut self.state.tasks[slot];
        let (leaf, route, old_place, old_urgency) = (task.leaf, task.route, task.place(), task.urgency());
        change(task);
        let (place, urgency) = (task.place(), task.urgency());
        if matches!(self.state.tasks[slot].phase, Phase::Waiting) {
            if place != old_place {
                self.indexes.line.insert(leaf, place, slot);
                self.indexes.line.remove(leaf, old_place, None);
                self.with_roll(route, |roll| {
                    roll.remove(old_place);
                    roll.insert(place, slot);
                });
            }
            self.indexes.in_line[old_urgency as usize] -= 1;
            self.indexes.in_line[urgency as usize] += 1;
            self.plan_look(slot);
        }
        self.plan(slot);
    }

    /// Takes a task out of the line. Where it was its turn, `turn` is its fair key and the new tag of that.
    pub(crate) fn leave_line(&mut self, slot: u32, turn: Option<(u32, u64)>) {
        let task = &mut self.state.tasks[slot];
        let (leaf, place, route) = (task.leaf, task.place(), task.route);
        task.leaf = NONE;
        task.look_at = Timestamp::NEVER;
        if let Some(rare) = &mut task.rare {
            rare.passed = Passed::default();
        }
        self.indexes.in_line[task.urgency() as usize] -= 1;
        self.indexes.waiting_in_line -= 1;
        let key = turn.map_or_else(|| self.indexes.line.key_of(leaf), |(key, _)| key);
        let is_last = self.indexes.line.remove(leaf, place, turn);
        self.with_roll(route, |roll| {
            roll.remove(place);
        });
        if is_last && !self.indexes.line.has_key(key) {
            self.state.fair.rest(key);
        }
        self.state.fair.sweep(self.indexes.waiting_in_line == 0);
        if !self.state.reservations.is_empty() && self.state.reservations.contains(&slot) {
            self.unreserve(slot);
        }
    }

    pub(crate) fn on_reserved(&mut self, slot: u32) {
        self.state.reservations.insert(slot);
        self.each_lane(slot, |this, lane| {
            if this.settings(lane).max_concurrency.is_some() {
                this.state.lanes[lane].reserved = slot;
                this.refresh_lane(lane);
            }
        });
    }

    pub(crate) fn unreserve(&mut self, slot: u32) {
        self.state.reservations.remove(&slot);
        self.each_lane(slot, |this, lane| {
            if this.state.lanes[lane].reserved == slot {
                this.state.lanes[lane].reserved = NONE;
                this.refresh_lane(lane);
            }
        });
    }

    pub(crate) fn on_ready(&mut self, slot: u32) {
        if matches!(self.state.tasks[slot].phase, Phase::BackingOff(_)) {
            self.each_lane(slot, |this, lane| {
                this.state.lanes[lane].retrying -= 1;
                this.state.lanes[lane].waiting += 1;
            });
        }
        if let Some(rare) = &mut self.state.tasks[slot].rare {
            rare.after = None;
        }
        self.wait_again(slot);
    }

    pub(crate) fn wait_again(&mut self, slot: u32) {
        let task = &mut self.state.tasks[slot];
        task.phase = Phase::Waiting;
        task.since = self.state.now;
        task.noticed = false;
        self.join_line(slot);
        self.plan(slot);
    }

    /// What must be run again was no turn.
    pub(crate) fn refund(&mut self, slot: u32) {
        let task = &self.state.tasks[slot];
        let own = task.rare.as_ref().and_then(|rare| rare.fair_key.as_ref());
        let name =
            self.state.lanes.fair_key(self.state.lanes.route(task.route), own, &self.state.book).clone();
        if let Some((key, tag)) = self.state.fair.refund(&name, self.state.book.weight(&name)) {
            self.indexes.line.set_tag(key, tag);
        }
    }
}
