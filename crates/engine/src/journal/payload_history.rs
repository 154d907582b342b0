//! What a task was to do, remembered with it when it is over.
//!
//! A run brings that along with its report, since it has it in hand. What ends without one (cancelled, cleared, timed out
//! or expired while it waited, or with whoever ran it gone) still has it in the journal, from where it goes with that end.

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::handle::task::is_slot;

/// Of so many that end together without a report it is remembered: more than wait in a line unless its settings say
/// otherwise. Whoever clears a longer one must not hold up the others while everything in it is read.
const RECALLED_MAX: usize = 128;

impl Engine {
    /// The payloads of tasks that end with this batch, which no report has brought and the journal still holds.
    pub(crate) fn unrecorded_payloads(&self, turn: &Turn) -> Vec<(TaskId, BlobId)> {
        if self.tools.payloads_kept_max == 0 || turn.departed.is_empty() {
            return Vec::new();
        }
        let untold = turn.departed.iter().filter(|view| !turn.works.contains_key(&view.id));
        let untold = untold.filter(|view| !is_slot(&view.kind));
        untold.filter_map(|view| Some((view.id, view.payload?))).take(RECALLED_MAX).collect()
    }

    /// Reads those payloads, so that they are remembered with the ends.
    pub(crate) async fn recall_works(&mut self, turn: &mut Turn) {
        for (task, payload) in self.unrecorded_payloads(turn) {
            // That it cannot be read now must not keep the task from ending.
            let stored = match turn.payload(payload) {
                Some(brought) => Some(brought),
                None => self.journal.payload(payload).await.ok().flatten(),
            };
            self.record_payload(turn, task, stored);
        }
    }

    /// Remembers what a task that ends was to do, if it is not too long.
    pub(crate) fn record_payload(&self, turn: &mut Turn, task: TaskId, work: Option<Bytes>) {
        let max = self.tools.payloads_kept_max;
        turn.works.extend(work.filter(|work| work.len() <= max).map(|work| (task, work)));
    }
}
