//! The sets of lanes that tasks name: each is looked up once and then known by a number.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::api::lane_settings::Order;
use crate::api::name::{GLOBAL, LaneName, MAIN};
use crate::state::lane::{LaneIdx, LiveLane};
use crate::state::lane_config::LaneConfig;
use crate::state::lanes::Lanes;
use crate::state::ready_tree::node::NodeIdx;
use crate::state::table::{Idx, Table};

pub(crate) type RouteIdx = Idx<Route>;

/// How many routes are kept for a while after the last task that took them.
const KEPT_MAX: usize = 64;

/// The lanes that a task names, in its order and with `global` last.
#[repr(align(64))]
pub(crate) struct Route {
    pub(crate) lanes: SmallVec<[LaneIdx; 4]>,
    /// The same, the most widely shared first: the way down the line.
    pub(crate) way: SmallVec<[LaneIdx; 4]>,
    /// How many tasks name exactly these.
    pub(super) tasks: u32,
    /// It is on the list of those that are kept for a while when no task takes them.
    is_listed: bool,
    /// Where in the line tasks without peculiarities of their own stand, if the line still says so.
    pub(crate) leaf: Option<NodeIdx>,
}

impl Route {
    pub(crate) fn first_lane(&self) -> LaneIdx {
        self.lanes[0]
    }
}

/// The names that matter: each once, and `global` only where it is the home lane.
pub(crate) fn canonical(names: &[LaneName]) -> SmallVec<[&LaneName; 8]> {
    let mut kept: SmallVec<[&LaneName; 8]> = SmallVec::new();
    for name in names {
        if !kept.contains(&name) && (kept.is_empty() || *name != *GLOBAL) {
            kept.push(name);
        }
    }
    kept
}

impl Lanes {
    /// The route of tasks that name `names`, if there is one.
    pub(crate) fn find_route(&self, names: &[LaneName]) -> Option<RouteIdx> {
        let names = if names.is_empty() { std::slice::from_ref(&*MAIN) } else { names };
        self.look_up(self.by_names.hash(names), names.iter()).or_else(|| {
            let kept = canonical(names);
            let is_shorter = kept.len() < names.len();
            is_shorter.then(|| self.look_up(self.by_names.hash(&kept[..]), kept.iter().copied()))?
        })
    }

    fn look_up<'a>(
        &self,
        hash: u64,
        names: impl ExactSizeIterator<Item = &'a LaneName> + Clone,
    ) -> Option<RouteIdx> {
        self.by_names.find(hash, |route| self.is_named(route, names.clone()))
    }

    /// Whether a route is that of tasks which name `names`, `global` left out unless it is the home lane.
    fn is_named<'a>(&self, route: RouteIdx, names: impl ExactSizeIterator<Item = &'a LaneName>) -> bool {
        let lanes = &self.routes[route].lanes;
        let has_global_added = lanes.len() == names.len() + 1 && self[lanes[names.len()]].width == 0;
        let is_global_alone = lanes.len() == names.len() && self[lanes[0]].width == 0;
        (has_global_added || is_global_alone)
            && lanes.iter().zip(names).all(|(lane, name)| self[*lane].name == *name)
    }

    /// The route of a task that names `names`, made with its lanes if need be; one more task takes it.
    pub(crate) fn join_route(&mut self, names: &[LaneName], lane_config: &mut LaneConfig) -> RouteIdx {
        let route = match self.find_route(names) {
            Some(route) => route,
            None => self.add_route(names, lane_config),
        };
        self.take_route(route);
        route
    }

    /// One more task takes a route that is there.
    fn take_route(&mut self, route: RouteIdx) {
        let this = &mut self.routes[route];
        this.tasks += 1;
        if this.tasks == 1 {
            for lane in &this.lanes {
                self.lanes[*lane].join(&mut self.births);
            }
        }
    }

    fn add_route(&mut self, names: &[LaneName], lane_config: &mut LaneConfig) -> RouteIdx {
        let names = if names.is_empty() { std::slice::from_ref(&*MAIN) } else { names };
        let names = canonical(names);
        let hash = self.by_names.hash(&names[..]);
        let mut lanes: SmallVec<[LaneIdx; 4]> =
            names.iter().map(|name| self.lane(name, lane_config)).collect();
        if *names[0] != *GLOBAL {
            lanes.push(self.lane(&GLOBAL, lane_config));
        }
        let mut way = lanes.clone();
        let home = lanes[0];
        way.sort_by_key(|lane| by_width(&self[*lane], *lane == home));
        let route = self.routes.insert(Route { lanes, way, tasks: 0, is_listed: false, leaf: None });
        self.by_names.insert(hash, route);
        route
    }

    /// Remembers where the plain tasks of a route stand.
    pub(crate) fn set_leaf(&mut self, route: RouteIdx, leaf: NodeIdx) {
        self.routes[route].leaf = Some(leaf);
    }

    /// Whether there is such a route, taken by tasks or kept for a while.
    pub(crate) fn has_route(&self, route: RouteIdx) -> bool {
        self.routes.get(route).is_some()
    }

    /// One task less takes `route`. Says whether it was the last, so that the lanes of the route, which is kept for a while,
    /// may have become empty.
    pub(crate) fn leave_route(&mut self, index: RouteIdx) -> bool {
        let route = &mut self.routes[index];
        route.tasks -= 1;
        if route.tasks > 0 {
            return false;
        }
        let is_new = !std::mem::replace(&mut route.is_listed, true);
        for lane in &route.lanes {
            self.lanes[*lane].leave(is_new);
        }
        if is_new {
            self.keep(index);
        }
        true
    }

    /// Puts a route on the list of those that are kept for a while.
    fn keep(&mut self, route: RouteIdx) {
        self.kept.push_back(route);
        if self.kept.len() > KEPT_MAX {
            self.drop_kept();
        }
    }

    /// Takes the oldest off the list of routes that are kept for a while, and lets it go if no task takes it.
    fn drop_kept(&mut self) {
        let Some(index) = self.kept.pop_front() else { return };
        let route = &mut self.routes[index];
        route.is_listed = false;
        for lane in &route.lanes {
            self.lanes[*lane].listed -= 1;
        }
        if route.tasks > 0 {
            return;
        }
        let hash = self.by_names.hash(&names_of(&self.routes[index], &self.lanes)[..]);
        self.by_names.remove(hash, index);
        for lane in self.routes.remove(index).lanes {
            if self[lane].is_gone && self[lane].listed == 0 {
                self.remove(lane);
            }
        }
    }

    /// Lets go of all routes that no task takes.
    pub(crate) fn drop_all_kept(&mut self) {
        while !self.kept.is_empty() {
            self.drop_kept();
        }
    }

    /// Under whose name a task takes turns: its own key, else its home lane; but all tasks of a lane whose
    /// order is `fifo` take turns under that lane's name, so that arrival decides between them.
    pub(crate) fn fair_key<'a>(
        &'a self,
        route: &Route,
        own: Option<&'a LaneName>,
        lane_config: &LaneConfig,
    ) -> &'a LaneName {
        let fifo = |lane: &&LaneIdx| lane_config.class(self[**lane].class).settings.order == Order::Fifo;
        match route.way.iter().find(fifo) {
            Some(lane) => &self[*lane].name,
            None => own.unwrap_or(&self[route.first_lane()].name),
        }
    }

    /// The routes that tasks take.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().map(|(_, route)| route).filter(|route| route.tasks > 0)
    }

    /// For the checks: what is kept for a while is on the list, and nothing else is.
    pub(crate) fn disagreement(&self) -> Option<String> {
        let listed = self.routes.iter().filter(|(_, route)| route.is_listed);
        let listed: BTreeSet<RouteIdx> = listed.map(|(route, _)| route).collect();
        let is_forgotten = |(_, route): &(RouteIdx, &Route)| route.tasks == 0 && !route.is_listed;
        if self.kept.len() > KEPT_MAX || listed != self.kept.iter().copied().collect() {
            return Some(format!("{} routes are kept, {} listed", self.kept.len(), listed.len()));
        }
        if self.routes.iter().any(|route| is_forgotten(&route)) || self.by_names.len() != self.routes.len() {
            return Some("a route that no task takes was not let go".to_owned());
        }
        let mut through: BTreeMap<LaneIdx, u32> = BTreeMap::new();
        for lane in self.kept.iter().flat_map(|route| &self.routes[*route].lanes) {
            *through.entry(*lane).or_default() += 1;
        }
        let wrong = self.lanes.iter().find(|(index, lane)| {
            let listed = through.get(index).copied().unwrap_or_default();
            lane.listed != listed || lane.is_gone && (listed == 0 || lane.routes > 0)
        });
        wrong.map(|(_, lane)| format!("{} is on {} listed routes", lane.name, lane.listed))
    }
}

/// The names by which a route is found.
fn names_of<'a>(route: &Route, lanes: &'a Table<LiveLane>) -> SmallVec<[&'a LaneName; 8]> {
    let names = route.lanes.iter().map(|lane| &lanes[*lane].name);
    // Where `global` is the home lane it was named; elsewhere it was added.
    let is_global_home = lanes[route.first_lane()].name == *GLOBAL;
    names.take(route.lanes.len() - usize::from(!is_global_home)).collect()
}

/// Orders the lanes of a route, the most widely shared first. Where nothing else tells, the home lane is taken for
/// the narrowest: it is what the task is about, the others are what it needs.
pub(crate) fn by_width(lane: &LiveLane, is_home: bool) -> (u8, LaneName) {
    let width = if is_home && (2..=3).contains(&lane.width) { 4 } else { lane.width };
    (width, lane.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::hash_index::tests::that_share_a_half;

    #[test]
    fn routes_are_told_apart_where_their_hashes_look_alike() {
        let (mut lanes, mut lane_config) = (Lanes::new(1), LaneConfig::default());
        let names =
            |number: u32| [LaneName::new("main").unwrap(), LaneName::session(&number.to_string()).unwrap()];
        let (one, other) = that_share_a_half(|number| lanes.by_names.hash(&names(number)[..]));
        let first = lanes.join_route(&names(one), &mut lane_config);
        assert_eq!(lanes.find_route(&names(other)), None);
        let second = lanes.join_route(&names(other), &mut lane_config);
        assert_eq!([one, other].map(|number| lanes.find_route(&names(number))), [Some(first), Some(second)]);
    }
}
