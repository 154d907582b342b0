//! All lanes, by name and by number.

use std::collections::VecDeque;

use crate::api::name::LaneName;
use crate::state::hash_index::HashIndex;
use crate::state::lane::{LaneIdx, LiveLane};
use crate::state::lane_config::LaneConfig;
use crate::state::routes::{Route, RouteIdx, by_width};
use crate::state::table::Table;

pub(crate) struct Lanes {
    pub(crate) lanes: Table<LiveLane>,
    by_name: HashIndex<LiveLane>,
    pub(crate) routes: Table<Route>,
    pub(super) by_names: HashIndex<Route>,
    pub(super) births: u32,
    /// Routes that no task took for a moment, the oldest first: work that comes and goes one by one finds them again.
    pub(crate) kept: VecDeque<RouteIdx>,
}

/// The lanes whose numbers the current step or event has changed.
pub(crate) struct Touched {
    /// Counts steps and replayed events, so that a lane knows whether it is on the list.
    step: u64,
    /// Each with its birth, which tells it from a later lane with the same number.
    lanes: Vec<(LaneIdx, u32)>,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched { step: 1, lanes: Vec::new() }
    }
}

impl Touched {
    pub(crate) fn note(&mut self, index: LaneIdx, lane: &mut LiveLane) {
        if lane.touched_in != self.step {
            lane.touched_in = self.step;
            self.lanes.push((index, lane.birth));
        }
    }

    pub(crate) fn lanes(&self) -> &[(LaneIdx, u32)] {
        &self.lanes
    }

    pub(crate) fn has(&self, lane: &LiveLane) -> bool {
        lane.touched_in == self.step
    }

    pub(super) fn reset(&mut self) {
        self.step += 1;
        self.lanes.clear();
    }

    pub(crate) fn shrink_to(&mut self, room: usize) {
        self.lanes.shrink_to(room);
    }
}

impl std::ops::Index<LaneIdx> for Lanes {
    type Output = LiveLane;

    fn index(&self, lane: LaneIdx) -> &LiveLane {
        &self.lanes[lane]
    }
}

impl std::ops::IndexMut<LaneIdx> for Lanes {
    fn index_mut(&mut self, lane: LaneIdx) -> &mut LiveLane {
        &mut self.lanes[lane]
    }
}

impl Lanes {
    pub(super) fn new(seed: u64) -> Lanes {
        Lanes {
            lanes: Table::default(),
            by_name: HashIndex::new(seed),
            routes: Table::default(),
            by_names: HashIndex::new(seed ^ 1),
            births: 0,
            kept: VecDeque::new(),
        }
    }

    pub(crate) fn get(&self, lane: LaneIdx) -> Option<&LiveLane> {
        self.lanes.get(lane).filter(|lane| !lane.is_gone)
    }

    pub(crate) fn find(&self, name: &LaneName) -> Option<LaneIdx> {
        self.find_kept(name).filter(|lane| !self[*lane].is_gone)
    }

    /// The lane called `name`, even a forgotten one, whose settings still hold.
    pub(crate) fn find_kept(&self, name: &LaneName) -> Option<LaneIdx> {
        self.by_name.find(self.by_name.hash(name), |lane| self[lane].name == *name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneIdx, &LiveLane)> {
        self.lanes.iter().filter(|(_, lane)| !lane.is_gone)
    }

    pub(crate) fn route(&self, route: RouteIdx) -> &Route {
        &self.routes[route]
    }

    /// Changes each lane of a route, and notes that its numbers have changed.
    pub(crate) fn change_each(
        &mut self,
        touched: &mut Touched,
        route: RouteIdx,
        mut change: impl FnMut(LaneIdx, &mut LiveLane),
    ) {
        for index in &self.routes[route].lanes {
            let lane = &mut self.lanes[*index];
            touched.note(*index, lane);
            change(*index, lane);
        }
    }

    /// The lane called `name`, made if need be.
    pub(crate) fn lane(&mut self, name: &LaneName, lane_config: &mut LaneConfig) -> LaneIdx {
        let hash = self.by_name.hash(name);
        if let Some(lane) = self.by_name.find(hash, |lane| self[lane].name == *name) {
            if self[lane].is_gone {
                let birth = self.births;
                self.births = birth.wrapping_add(1);
                self[lane].revive(birth);
            }
            return lane;
        }
        let lane = LiveLane::new(name.clone(), self.births, lane_config);
        // Births are compared only within one step, so the counter may wrap.
        self.births = self.births.wrapping_add(1);
        let index = self.lanes.insert(lane);
        self.by_name.insert(hash, index);
        index
    }

    /// Forgets a lane that nothing goes through.
    pub(crate) fn forget(&mut self, lane: LaneIdx) {
        if self[lane].listed > 0 {
            self[lane].forget();
        } else {
            self.remove(lane);
        }
    }

    pub(crate) fn remove(&mut self, lane: LaneIdx) {
        let gone = self.lanes.remove(lane);
        self.by_name.remove(self.by_name.hash(&gone.name), lane);
    }

    /// Gives back what empty tables have grown to.
    pub(crate) fn shrink(&mut self) {
        self.drop_all_kept();
        if self.routes.is_empty() {
            self.routes = Table::default();
            self.by_names.shrink();
        }
        if self.lanes.is_empty() {
            self.lanes = Table::default();
            self.by_name.shrink();
        }
        self.lanes.shrink_to_fit();
    }

    /// Asks the changed book again what speaks for each lane.
    pub(crate) fn reclassify(&mut self, lane_config: &mut LaneConfig) {
        for (_, lane) in self.lanes.iter_mut() {
            lane.reclassify(lane_config);
        }
        let lanes = &self.lanes;
        for (_, route) in self.routes.iter_mut() {
            let home = route.first_lane();
            route.way.sort_by_key(|lane| by_width(&lanes[*lane], *lane == home));
            route.leaf = None;
        }
    }
}
