//! What a task was to do, remembered with it when it is over.
//!
//! A run brings that along with its report, since it has it in hand. What ends without one (cancelled, cleared, timed out
//! or expired while it waited, or with whoever ran it gone) still has it in the journal, from where it goes with that end.

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::handle::task::is_slot;

/// Of so many that end together without a report it is remembered: more than wait in a line unless its settings say
/// otherwise. Whoever clears a longer one must not hold up the others while everything in it is read.
const RECALLED_MAX: usize = 128;

impl Engine {
    /// Takes what ends with this turn was to do out of the journal, where no report has brought it.
    pub(crate) async fn recall_works(&mut self, turn: &mut Turn) {
        let max = self.tools.payloads_kept_max;
        if max == 0 || turn.departed.is_empty() {
            return;
        }
        let untold = turn.departed.iter().filter(|view| !turn.works.contains_key(&view.id));
        let untold = untold.filter(|view| !is_slot(&view.kind));
        let untold: Vec<_> = untold.filter_map(|view| Some((view.id, view.payload?))).collect();
        for (task, payload) in untold.into_iter().take(RECALLED_MAX) {
            let just_brought = turn.payloads.iter().find(|(blob, _)| *blob == payload);
            let work = match just_brought {
                Some((_, work)) => Some(work.clone()),
                // It is a thing to look at: that it cannot be read now must not keep the task from ending.
                None => self.journal.payload(payload).await.ok().flatten(),
            };
            turn.works.extend(work.filter(|work| work.len() <= max).map(|work| (task, work)));
        }
    }
}
