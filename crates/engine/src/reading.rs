//! Reading: the state as it is now, and the history of what is over.

use std::sync::PoisonError;

use bytes::Bytes;
use laneway_core::{Scheduler, TaskId};
use laneway_store::{Finished, Place, Version};

use crate::error::Error;
use crate::handle::Handle;
use crate::journal::Journal;

impl Handle {
    /// Answers a question about the state, in one look. What is asked should be quick: nothing is decided meanwhile.
    pub async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.look(question).await
    }

    /// A task that is over and remembered, with what it produced (JSON).
    pub async fn finished(&self, task: TaskId) -> Result<Option<(Finished, Option<Bytes>)>, Error> {
        Ok(self.journal()?.finished(task).await?)
    }

    /// Tasks that are over and remembered, the newest first: those before a place, or the newest. The place of the
    /// last one is where to go on.
    pub async fn history(
        &self,
        before: Option<Place>,
        max: u32,
    ) -> Result<(Vec<Finished>, Option<Place>), Error> {
        match self.journal()? {
            Journal::Memory(memory) => {
                // In memory a place is how many of the newest were passed over.
                let skip = before.map_or(0, |place| place.version.0);
                let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                let skipped = usize::try_from(skip).unwrap_or(usize::MAX);
                let found = memory.newest(skipped, max as usize);
                let next = Place { version: Version(skip + found.len() as u64), index: 0 };
                let next = (!found.is_empty()).then_some(next);
                Ok((found, next))
            }
            Journal::Kept(log) => {
                let found = log.history(before, max).await?;
                let next = found.last().map(|(place, _)| *place);
                Ok((found.into_iter().map(|(_, finished)| finished).collect(), next))
            }
        }
    }
}
