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
    ///
    /// # Errors
    ///
    /// Where no seed shows it, or one shows something without it too: then it is not this bug that was found.
    pub fn found(self, seeds: u64) -> Result<(u64, String), String> {
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
        let Some((seed, violation)) = found else { return Err(format!("not found in {seeds} seeds")) };
        match run(&Plan::of_seed(seed), Wanted::default()).violations.first() {
            None => Ok((seed, violation)),
            Some(other) => Err(format!("not found: seed {seed} fails without it too: {other}")),
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Planted::Engine(bug) => format!("{bug:?}"),
            Planted::Store(bug) => format!("{bug:?}"),
        }
    }
}
