//! How often something was refused. A refusal changes nothing, so no event tells of it and no log keeps it: these are
//! the counts of this replica since it began.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{Rejection, Scheduler};

use crate::error::Error;

/// How often something was refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The block or family of defaults that speaks for the lane that refused; `None`: it was not about a lane.
    pub lane: Option<Arc<str>>,
    /// The stable name of the reason.
    pub code: &'static str,
    /// How often.
    pub count: u64,
}

/// Counts by lane and reason. There are as many lanes here as there are blocks of settings, so that it stays small.
#[derive(Clone, Default)]
pub(crate) struct Counts(BTreeMap<(Option<Arc<str>>, &'static str), u64>);

impl Counts {
    pub(crate) fn add(&mut self, error: &Error, scheduler: &Scheduler) {
        let lane = match error {
            Error::Rejected(Rejection::LaneFull(full)) => Some(&full.lane),
            Error::Rejected(Rejection::LaneDraining { lane } | Rejection::WouldDeadlock { lane, .. }) => {
                Some(lane)
            }
            _ => None,
        };
        let label = lane.and_then(|lane| scheduler.lane(lane)).map(|lane| Arc::from(lane.label));
        *self.0.entry((label, error.code())).or_default() += 1;
    }

    pub(crate) fn list(&self) -> Vec<Refusals> {
        let refusals = |((lane, code), count): (&(Option<Arc<str>>, &'static str), &u64)| Refusals {
            lane: lane.clone(),
            code,
            count: *count,
        };
        self.0.iter().map(refusals).collect()
    }
}
