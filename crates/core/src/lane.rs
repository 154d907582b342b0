//! Lanes, and the sets of lanes that tasks name.

use std::cell::Cell;
use std::hash::BuildHasher;

use serde::{Deserialize, Serialize};
use slab::Slab;
use smallvec::SmallVec;

use crate::book::Book;
use crate::bucket::Bucket;
use crate::index::Index;
use crate::line::NONE;
use crate::name::{GLOBAL, LaneName, MAIN};
use crate::ordered::{Ordered, Place};
use crate::settings::{Order, Settings};
use crate::stats::RunTime;
use crate::time::Timestamp;

/// Whether a lane lets work in and out. A lane can be shut on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Work may wait, none starts.
    pub paused: bool,
    /// Nothing new is accepted; what was accepted runs, unless it is paused as well.
    pub draining: bool,
}

impl Gate {
    /// Work is let in and out.
    pub const OPEN: Gate = Gate { paused: false, draining: false };
}

/// How narrow the lanes of a conversation are.
const SESSION_WIDTH: u8 = 5;

/// A named limit, while something is in it or there is something to remember of it.
#[repr(align(64))]
pub(crate) struct Lane {
    pub(crate) name: LaneName,
    pub(crate) class: u32,
    /// How many slots it has, `u32::MAX` where any number; from its settings, because every grant asks.
    pub(crate) slots: u32,
    /// Its settings have a rate limit.
    pub(crate) is_rated: bool,
    /// How widely it is shared, by all appearances: 0 for `global`, 5 for the lanes of one conversation.
    pub(crate) width: u8,
    pub(crate) gate: Gate,
    /// Whether it can give a slot, as the line last heard.
    pub(crate) open: bool,
    /// Whether neither a pause nor its rate holds work up, as the line last heard.
    pub(crate) passable: bool,
    /// Slots taken; a lent slot counts once.
    pub(crate) running: u32,
    /// Tasks that name it and wait, in the line or for their time to join it.
    pub(crate) waiting: u32,
    /// Tasks that name it and will be tried again after a back-off.
    pub(crate) retrying: u32,
    /// How many routes go through it.
    pub(crate) routes: u32,
    pub(crate) bucket: Bucket,
    /// The task for which one slot is kept free, or `NONE`.
    pub(crate) reserved: u32,
    pub(crate) under_pressure: bool,
    pub(crate) warned: bool,
    pub(crate) critical: bool,
    /// It drained, and everybody knows.
    pub(crate) drained: bool,
    pub(crate) run_time: RunTime,
    /// When a slot was last taken or given back.
    pub(crate) last_change: Timestamp,
    /// The step in which it was last put on the list of changed lanes.
    pub(crate) touched_in: u64,
    /// The waiting tasks whose home it is, in order, unless it is a conversation's.
    pub(crate) roll: Option<Box<Ordered<Place>>>,
    /// Tells it from an earlier lane that had its number.
    pub(crate) birth: u64,
}

impl Lane {
    /// Whether it is a lane of one conversation, without a look at its name.
    pub(crate) fn is_session(&self) -> bool {
        self.width == SESSION_WIDTH
    }

    /// Whether something was told or decided about it that must not be forgotten.
    pub(crate) fn is_remarkable(&self) -> bool {
        self.under_pressure || self.warned || self.critical || self.gate != Gate::OPEN
    }
}

/// The lanes that a task names, in its order and with `global` last.
#[repr(align(64))]
pub(crate) struct Route {
    pub(crate) lanes: SmallVec<[u32; 4]>,
    /// The same, the most widely shared first: the way down the line.
    pub(crate) way: SmallVec<[u32; 4]>,
    /// How many tasks name exactly these.
    pub(crate) tasks: u32,
    /// Where in the line tasks without peculiarities of their own stand, if the line still says so.
    pub(crate) leaf: u32,
}

impl Route {
    pub(crate) fn home(&self) -> u32 {
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

pub(crate) struct Lanes {
    lanes: Slab<Lane>,
    by_name: Index,
    routes: Slab<Route>,
    by_names: Index,
    births: u64,
    /// The route that was found last.
    recent: Cell<u32>,
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
            lanes: Slab::new(),
            by_name: Index::new(seed),
            routes: Slab::new(),
            by_names: Index::new(seed ^ 1),
            births: 0,
            recent: Cell::new(NONE),
        }
    }

    pub(crate) fn get(&self, lane: u32) -> Option<&Lane> {
        self.lanes.get(lane as usize)
    }

    pub(crate) fn find(&self, name: &LaneName) -> Option<u32> {
        self.by_name.find(self.by_name.hash(name), |lane| self[lane].name == *name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Lane)> {
        self.lanes.iter().map(|(number, lane)| (number as u32, lane))
    }

    pub(crate) fn route(&self, route: u32) -> &Route {
        &self.routes[route as usize]
    }

    /// The lane called `name`, made if need be.
    pub(crate) fn lane(&mut self, name: &LaneName, book: &mut Book) -> u32 {
        let hash = self.by_name.hash(name);
        if let Some(lane) = self.by_name.find(hash, |lane| self[lane].name == *name) {
            return lane;
        }
        let class = book.class_of(name);
        let (slots, is_rated) = hot_settings(&book.class(class).settings);
        let lane = Lane {
            name: name.clone(),
            class,
            slots,
            is_rated,
            width: width(name, book),
            gate: Gate::OPEN,
            open: true,
            passable: true,
            running: 0,
            waiting: 0,
            retrying: 0,
            routes: 0,
            bucket: Bucket::default(),
            reserved: NONE,
            under_pressure: false,
            warned: false,
            critical: false,
            drained: false,
            run_time: RunTime::default(),
            last_change: Timestamp::default(),
            touched_in: 0,
            roll: None,
            birth: self.births,
        };
        self.births += 1;
        let number = self.lanes.insert(lane) as u32;
        let lanes = &self.lanes;
        self.by_name.insert(hash, number, |hasher, lane| hasher.hash_one(&lanes[lane as usize].name));
        number
    }

    /// Forgets a lane that nothing goes through.
    pub(crate) fn remove(&mut self, lane: u32) -> Lane {
        let gone = self.lanes.remove(lane as usize);
        self.by_name.remove(self.by_name.hash(&gone.name), lane);
        gone
    }

    /// The route of tasks that name `names`, if there is one.
    pub(crate) fn find_route(&self, names: &[LaneName]) -> Option<u32> {
        let names = if names.is_empty() { std::slice::from_ref(&*MAIN) } else { names };
        // What was decided about is applied next: often it is the route that was found last.
        let recent = self.recent.get();
        if self.is_recent(recent, &names[0]) && self.is_named(recent, names.iter()) {
            return Some(recent);
        }
        let found = self.look_up(self.by_names.hash(names), names.iter());
        found.or_else(|| {
            let kept = canonical(names);
            let is_shorter = kept.len() < names.len();
            is_shorter.then(|| self.look_up(self.by_names.hash(&kept[..]), kept.iter().copied()))?
        })
    }

    fn is_recent(&self, route: u32, home: &LaneName) -> bool {
        self.routes.get(route as usize).is_some_and(|route| self[route.home()].name.is_same(home))
    }

    fn look_up<'a>(
        &self,
        hash: u64,
        names: impl ExactSizeIterator<Item = &'a LaneName> + Clone,
    ) -> Option<u32> {
        let found = self.by_names.find(hash, |route| self.is_named(route, names.clone()));
        if let Some(route) = found {
            self.recent.set(route);
        }
        found
    }

    /// Whether a route is that of tasks which name `names`, `global` left out unless it is the home lane.
    fn is_named<'a>(&self, route: u32, names: impl ExactSizeIterator<Item = &'a LaneName>) -> bool {
        let lanes = &self.routes[route as usize].lanes;
        let has_global_added = lanes.len() == names.len() + 1 && self[lanes[names.len()]].width == 0;
        let is_global_alone = lanes.len() == names.len() && self[lanes[0]].width == 0;
        (has_global_added || is_global_alone)
            && lanes.iter().zip(names).all(|(lane, name)| {
                let own = &self[*lane].name;
                own.is_same(name) || own == name
            })
    }

    /// The route of a task that names `names`, made with its lanes if need be; one more task takes it.
    pub(crate) fn join_route(&mut self, names: &[LaneName], book: &mut Book) -> u32 {
        let route = match self.find_route(names) {
            Some(route) => route,
            None => self.add_route(names, book),
        };
        self.routes[route as usize].tasks += 1;
        route
    }

    fn add_route(&mut self, names: &[LaneName], book: &mut Book) -> u32 {
        let names = if names.is_empty() { std::slice::from_ref(&*MAIN) } else { names };
        let names = canonical(names);
        let hash = self.by_names.hash(&names[..]);
        let mut lanes: SmallVec<[u32; 4]> = names.iter().map(|name| self.lane(name, book)).collect();
        if *names[0] != *GLOBAL {
            lanes.push(self.lane(&GLOBAL, book));
        }
        for lane in &lanes {
            self[*lane].routes += 1;
        }
        let mut way = lanes.clone();
        let home = lanes[0];
        way.sort_by_key(|lane| by_width(&self[*lane], *lane == home));
        let number = self.routes.insert(Route { lanes, way, tasks: 0, leaf: NONE }) as u32;
        let (routes, lanes) = (&self.routes, &self.lanes);
        self.by_names.insert(hash, number, |hasher, route| {
            hasher.hash_one(&names_of(&routes[route as usize], lanes)[..])
        });
        number
    }

    /// Gives back what empty tables have grown to.
    pub(crate) fn shrink(&mut self) {
        if self.routes.is_empty() {
            self.routes = Slab::new();
            self.by_names.shrink();
        }
        if self.lanes.is_empty() {
            self.lanes = Slab::new();
            self.by_name.shrink();
        }
        self.lanes.shrink_to_fit();
    }

    /// Remembers where the plain tasks of a route stand.
    pub(crate) fn set_leaf(&mut self, route: u32, leaf: u32) {
        self.routes[route as usize].leaf = leaf;
    }

    /// One task less takes `route`. When it was the last, returns the lanes that may have become empty.
    pub(crate) fn leave_route(&mut self, number: u32) -> Option<SmallVec<[u32; 4]>> {
        let route = &mut self.routes[number as usize];
        route.tasks -= 1;
        if route.tasks > 0 {
            return None;
        }
        let hash = self.by_names.hash(&names_of(&self.routes[number as usize], &self.lanes)[..]);
        self.by_names.remove(hash, number);
        let gone = self.routes.remove(number as usize);
        for lane in &gone.lanes {
            self[*lane].routes -= 1;
        }
        Some(gone.lanes)
    }

    /// Asks the changed book again what speaks for each lane.
    pub(crate) fn reclassify(&mut self, book: &mut Book) {
        for (_, lane) in &mut self.lanes {
            lane.class = book.class_of(&lane.name);
            (lane.slots, lane.is_rated) = hot_settings(&book.class(lane.class).settings);
            lane.width = width(&lane.name, book);
        }
        let lanes = &self.lanes;
        for (_, route) in &mut self.routes {
            let home = route.home();
            route.way.sort_by_key(|lane| by_width(&lanes[*lane as usize], *lane == home));
            route.leaf = NONE;
        }
    }

    /// Under whose name a task takes turns: its own key, else its home lane; but all tasks of a lane whose
    /// order is `fifo` take turns under that lane's name, so that arrival decides between them.
    pub(crate) fn fair_key<'a>(
        &'a self,
        route: &Route,
        own: Option<&'a LaneName>,
        book: &Book,
    ) -> &'a LaneName {
        let fifo = |lane: &&u32| book.class(self[**lane].class).settings.order == Order::Fifo;
        match route.way.iter().find(fifo) {
            Some(lane) => &self[*lane].name,
            None => own.unwrap_or(&self[route.home()].name),
        }
    }

    pub(crate) fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().map(|(_, route)| route)
    }
}

/// The names by which a route is found.
fn names_of<'a>(route: &Route, lanes: &'a Slab<Lane>) -> SmallVec<[&'a LaneName; 8]> {
    let names = route.lanes.iter().map(|lane| &lanes[*lane as usize].name);
    // Where `global` is the home lane it was named; elsewhere it was added.
    let is_global_home = lanes[route.home() as usize].name == *GLOBAL;
    names.take(route.lanes.len() - usize::from(!is_global_home)).collect()
}

/// Orders the lanes of a route, the most widely shared first. Where nothing else tells, the home lane is taken for
/// the narrowest: it is what the task is about, the others are what it needs.
fn by_width(lane: &Lane, is_home: bool) -> (u8, LaneName) {
    let width = if is_home && (2..=3).contains(&lane.width) { 4 } else { lane.width };
    (width, lane.name.clone())
}

/// The settings that a lane keeps at hand: its slots, and whether it has a rate limit.
fn hot_settings(settings: &Settings) -> (u32, bool) {
    (settings.max_concurrency.unwrap_or(u32::MAX), settings.rate_limit.is_some())
}

fn width(name: &LaneName, book: &Book) -> u8 {
    match name.as_str() {
        "global" => 0,
        _ if name.is_session() => SESSION_WIDTH,
        "main" | "subagent" | "cron" => 1,
        _ if book.is_declared(name) => 1,
        _ if book.has_block(name) => 2,
        _ => 3,
    }
}
