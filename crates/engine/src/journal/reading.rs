//! Reading: the state as it is now, and what became of a task that is over.

use bytes::Bytes;
use laneway_core::{Scheduler, TaskId};
use laneway_store::Finished;

use crate::error::Error;
use crate::handle::Handle;

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
}
