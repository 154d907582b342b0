//! All lanes, by name and by number.

use std::collections::VecDeque;

use crate::api::name::LaneName;
use crate::state::index::Index;
use crate::state::lane::Lane;
use crate::state::lane_config::Book;
use crate::state::routes::{Route, by_width};
use crate::state::table::Table;

pub(crate) struct Lanes {
    pub(crate) lanes: Table<Lane>,
    by_name: Index,
    pub(crate) routes: Table<Route>,
    pub(crate) by_names: Index,
    pub(crate) births: u32,
    /// Routes that no task took for a moment, the oldest first: work that comes and goes one by one finds them again.
    pub(crate) kept: VecDeque<u32>,
}

/// The lanes whose numbers the current step or event has changed.
pub(crate) struct Touched {
    /// Counts steps and replayed events, so that a lane knows whether it is on the list.
    step: u64,
    /// Each with its birth, which tells it from a later lane with the same number.
    lanes: Vec<(u32, u32)>,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched { step: 1, lanes: Vec::new() }
    }
}

impl Touched {
    pub(crate) fn note(&mut self, number: u32, lane: &mut Lane) {
        if lane.touched_in != self.step {
            lane.touched_in = self.step;
            self.lanes.push((number, lane.birth));
        }
    }

    pub(crate) fn lanes(&self) -> &[(u32, u32)] {
        &self.lanes
    }

    pub(crate) fn has(&self, lane: &Lane) -> bool {
        lane.touched_in == self.step
    }

    pub(crate) fn reset(&mut self) {
        self.step += 1;
        self.lanes.clear();
    }

    pub(crate) fn shrink_to(&mut self, room: usize) {
        self.lanes.shrink_to(room);
    }
}

impl std::ops::Index<u32> for Lanes {
    type Output = Lane;

    fn index(&self, lane: u32) -> &Lane {
        &self.lanes[lane as usize]
    }
}

impl std::ops::IndexMut<u32> for Lanes {
    fn index_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }
}

impl Lanes {
    pub(crate) fn new(seed: u64) -> Lanes {
        Lanes {
            lanes: Table::default(),
            by_name: Index::new(seed),
            routes: Table::default(),
            by_names: Index::new(seed ^ 1),
            births: 0,
            kept: VecDeque::new(),
        }
    }

    pub(crate) fn get(&self, lane: u32) -> Option<&Lane> {
        self.lanes.get(lane as usize).filter(|lane| !lane.is_gone)
    }

    pub(crate) fn find(&self, name: &LaneName) -> Option<u32> {
        self.find_kept(name).filter(|lane| !self[*lane].is_gone)
    }

    /// The lane called `name`, also one that nobody knows any more: what holds for it is known all the same.
    pub(crate) fn find_kept(&self, name: &LaneName) -> Option<u32> {
        self.by_name.find(self.by_name.hash(name), |lane| self[lane].name == *name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Lane)> {
        let lanes = self.lanes.iter().filter(|(_, lane)| !lane.is_gone);
        lanes.map(|(number, lane)| (number as u32, lane))
    }

    pub(crate) fn route(&self, route: u32) -> &Route {
        &self.routes[route as usize]
    }

    /// Changes each lane of a route, and notes that its numbers have changed.
    pub(crate) fn change_each(
        &mut self,
        touched: &mut Touched,
        route: u32,
        mut change: impl FnMut(u32, &mut Lane),
    ) {
        for number in &self.routes[route as usize].lanes {
            let lane = &mut self.lanes[*number as usize];
            touched.note(*number, lane);
            change(*number, lane);
        }
    }

    /// The lane called `name`, made if need be.
    pub(crate) fn lane(&mut self, name: &LaneName, book: &mut Book) -> u32 {
        let hash = self.by_name.hash(name);
        if let Some(lane) = self.by_name.find(hash, |lane| self[lane].name == *name) {
            if self[lane].is_gone {
                let birth = self.births;
                self.births = birth.wrapping_add(1);
                self[lane].revive(birth);
            }
            return lane;
        }
        let lane = Lane::new(name.clone(), self.births, book);
        // Only those of one step are ever compared, so that they may begin anew.
        self.births = self.births.wrapping_add(1);
        let number = self.lanes.insert(lane) as u32;
        self.by_name.insert(hash, number);
        number
    }

    /// Forgets a lane that nothing goes through.
    pub(crate) fn forget(&mut self, lane: u32) {
        if self[lane].listed > 0 {
            self[lane].forget();
        } else {
            self.remove(lane);
        }
    }

    pub(crate) fn remove(&mut self, lane: u32) {
        let gone = self.lanes.remove(lane as usize);
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
    pub(crate) fn reclassify(&mut self, book: &mut Book) {
        for (_, lane) in self.lanes.iter_mut() {
            lane.reclassify(book);
        }
        let lanes = &self.lanes;
        for (_, route) in self.routes.iter_mut() {
            let home = route.home();
            route.way.sort_by_key(|lane| by_width(&lanes[*lane as usize], *lane == home));
            route.leaf = crate::state::ready_tree::NONE;
        }
    }
}
