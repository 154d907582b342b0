//! Makes a history that fails shorter, for as long as it still fails in the same way.

use crate::plan::Plan;
use crate::report::gist;
use crate::run::{Wanted, run};

/// The most histories that are tried.
const TRIES_MAX: usize = 600;

/// A plan without the steps that the failure does not need: what is left shows the same first violation, as far as its
/// [`gist`] tells. A plan that does not fail is left as it is.
pub fn shrink(plan: &Plan, wanted: Wanted) -> Plan {
    let wanted = Wanted { has_timeline: false, ..wanted };
    let shown = |plan: &Plan| run(plan, wanted).violations.first().map(|violation| gist(violation));
    let mut best = plan.clone();
    let Some(violation) = shown(plan) else { return best };
    let mut tries = 0;
    let mut chunk = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut has_shrunk = false;
        while at < best.steps.len() && tries < TRIES_MAX {
            let mut shorter = best.clone();
            let end = (at + chunk).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            tries += 1;
            if shown(&shorter).as_ref() == Some(&violation) {
                (best, has_shrunk) = (shorter, true);
            } else {
                at = end;
            }
        }
        if tries >= TRIES_MAX || chunk == 1 && !has_shrunk {
            return best;
        }
        chunk = (chunk / 2).max(1);
    }
}
