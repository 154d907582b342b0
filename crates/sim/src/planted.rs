//! Bugs that are planted one at a time, and how many seeds it takes to find each.

use laneway_engine::planted::{Bug, plant};

use crate::StoreBug;
use crate::plan::Plan;
use crate::run::{Wanted, run};

/// Something that is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// With every engine.
    Engine(Bug),
    /// With the store.
    Store(StoreBug),
}

impl Planted {
    /// All of them.
    pub fn all() -> Vec<Planted> {
        let stores = [StoreBug::AnswerBeforeAppend, StoreBug::VersionNotChecked].map(Planted::Store);
        Bug::ALL.map(Planted::Engine).into_iter().chain(stores).collect()
    }

    /// The first of so many seeds that shows it, and what it shows.
    pub fn found(self, seeds: u64) -> Option<(u64, String)> {
        let (engine, store) = match self {
            Planted::Engine(bug) => (Some(bug), None),
            Planted::Store(bug) => (None, Some(bug)),
        };
        plant(engine);
        let wanted = Wanted { has_timeline: false, bug: store };
        let found = (0..seeds).find_map(|seed| {
            let violations = run(&Plan::of_seed(seed), wanted).violations;
            violations.into_iter().next().map(|violation| (seed, violation))
        });
        plant(None);
        found
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Planted::Engine(bug) => format!("{bug:?}"),
            Planted::Store(bug) => format!("{bug:?}"),
        }
    }
}
