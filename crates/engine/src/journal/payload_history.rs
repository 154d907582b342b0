//! Payloads that the history remembers with finished tasks.
//!
//! An attempt brings its payload with its report. That of a task that ends without a report is still in the journal, from
//! where it goes with that end.

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};
use laneway_store::{ErrorKind, StoreError};

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;

/// The most payloads that are read for one batch, so that clearing a long line does not hold up other commands.
const RECALLED_MAX: usize = 128;

impl Engine {
    /// The payloads of tasks that end with this batch, which no report has brought and the journal still holds.
    pub(crate) fn unrecorded_payloads(&self, batch: &Batch) -> Vec<(TaskId, BlobId)> {
        if self.resources.payloads_kept_max == 0 || batch.departed.is_empty() {
            return Vec::new();
        }
        let untold = batch.departed.iter().filter(|view| !batch.ended_payloads.contains_key(&view.id));
        let untold = untold.filter(|view| !view.is_slot());
        untold.filter_map(|view| Some((view.id, view.payload?))).take(RECALLED_MAX).collect()
    }

    /// Reads those payloads, so that they are remembered with the ends.
    pub(super) async fn read_ended_payloads(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        for (task, payload) in self.unrecorded_payloads(batch) {
            let stored = match batch.payload(payload) {
                Some(brought) => Some(brought),
                None => match self.storage.journal.payload(payload).await {
                    Ok(stored) => stored,
                    Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                    // A payload that is damaged must not keep the task from ending.
                    Err(_) => None,
                },
            };
            self.record_payload(batch, task, stored);
        }
        Ok(())
    }

    /// Remembers what a task that ends was to do, if it is not too long.
    pub(crate) fn record_payload(&self, batch: &mut Batch, task: TaskId, work: Option<Bytes>) {
        let max = self.resources.payloads_kept_max;
        batch.ended_payloads.extend(work.filter(|work| work.len() <= max).map(|work| (task, work)));
    }
}
