//! Makes a history that fails shorter, for as long as it still does.

use crate::plan::Plan;
use crate::run::{Wanted, run};

/// The most histories that are tried.
const TRIES_MAX: usize = 600;

/// A plan without the steps that the failure does not need.
pub fn shrink(plan: &Plan, wanted: Wanted) -> Plan {
    let wanted = Wanted { has_timeline: false, ..wanted };
    let mut best = plan.clone();
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
            if run(&shorter, wanted).violations.is_empty() {
                at = end;
            } else {
                (best, has_shrunk) = (shorter, true);
            }
        }
        if tries >= TRIES_MAX || chunk == 1 && !has_shrunk {
            return best;
        }
        chunk = (chunk / 2).max(1);
    }
}
