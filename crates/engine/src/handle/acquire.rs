//! Slots for work of the caller's own: asked for, waited for, and decided on the spot where the engine is free.

use std::time::Duration;

use laneway_core::{Command, TaskSpec};
use tokio::sync::oneshot;

use crate::driver::engine_loop::Engine;
use crate::driver::mailbox::{Ask, Call, Wants};
use crate::driver::spot::Asked;
use crate::error::{Error, RunError};
use crate::handle::Handle;
use crate::handle::task::Task;
use crate::runs::slot::{Slot, Wait};

impl Handle {
    /// Waits for a slot of each lane of the task, then runs the future in the caller's own task.
    ///
    /// A timeout or a cancellation drops the future before the slot is free; a panic in it is a failure. Dropping
    /// what this returns leaves the line or gives the slot back. There is one attempt, and it ends with the
    /// program: only tasks of named handlers outlive it.
    pub fn run<F: Future>(&self, task: Task, future: F) -> impl Future<Output = Result<F::Output, RunError>> {
        // Boxed, because this is what programs spawn for each task, and whatever is spawned is moved several times: not
        // boxed, a task that is spawned costs a tenth more.
        Box::pin(async move {
            let mut slot = self.take(task).await?;
            slot.run(future).await
        })
    }

    /// Waits for a slot of each of these lanes, the first of which is the home lane.
    pub async fn slot<L: AsRef<str>>(&self, lanes: impl IntoIterator<Item = L>) -> Result<Slot, RunError> {
        self.take(of_lanes(lanes)).await
    }

    /// A slot of each of these lanes if there is one now; else it is refused with when to come back.
    pub async fn try_slot<L: AsRef<str>>(
        &self,
        lanes: impl IntoIterator<Item = L>,
    ) -> Result<Slot, RunError> {
        self.take(of_lanes(lanes).wait_timeout(Duration::ZERO)).await
    }

    /// Waits for a slot of each lane that the task names.
    pub async fn take(&self, task: Task) -> Result<Slot, RunError> {
        // What is decided on the spot never waits: others must have their turn all the same.
        tokio::task::coop::consume_budget().await;
        match self.slot_at_once(&task) {
            Some(slot) => Ok(slot),
            // Boxed, because most who come find a slot: what is spawned for each task should be small.
            None => Box::pin(self.take_in_turn(task)).await,
        }
    }

    /// A slot for a task of which nothing is asked but its lanes, if the engine is there and free and nothing else is to be
    /// decided.
    fn slot_at_once(&self, task: &Task) -> Option<Slot> {
        let lanes = task.lanes_alone()?;
        self.0.inline()?.try_with(|engine| engine.slot_at_once(lanes, self))?
    }

    /// Waits for a slot as long as it takes.
    async fn take_in_turn(&self, task: Task) -> Result<Slot, RunError> {
        let (busy, wait) = match self.ask_slot(task)? {
            Asked::Given(slot) => return Ok(slot),
            Asked::Told(wait) => (None, wait),
            Asked::Busy(ask, wait) => (Some(ask), wait),
        };
        if let Some(ask) = busy {
            self.call(Call::Ask(ask)).await?;
        }
        wait.slot().await
    }

    /// Asks for a slot, and has it decided on the spot if the engine is there and free.
    fn ask_slot(&self, asked: Task) -> Result<Asked, Error> {
        let mut spec = Some(self.spec_of_slot(asked)?);
        let task = self.new_id();
        let ask = |engine: &mut Engine| Some(engine.ask_slot(task, spec.take()?, self));
        if let Some(asked) = self.0.inline().and_then(|inline| inline.try_with(ask)).flatten() {
            return Ok(asked);
        }
        let (answer, slot) = oneshot::channel();
        let spec = spec.ok_or(Error::Closed)?;
        let ask = Box::new(Ask::new(Command::Submit { task, spec }, Wants::Slot(answer)));
        Ok(Asked::Busy(ask, Wait::new(task, slot, self.clone())))
    }

    fn spec_of_slot(&self, asked: Task) -> Result<Box<TaskSpec>, Error> {
        let mut spec = asked.for_slot()?;
        if let Some(kind) = &self.0.tools.slot_kind {
            spec.kind = kind.clone();
        }
        Ok(spec)
    }
}

fn of_lanes<L: AsRef<str>>(lanes: impl IntoIterator<Item = L>) -> Task {
    let mut lanes = lanes.into_iter();
    let home = lanes.next();
    let home = Task::new(home.as_ref().map_or("", AsRef::as_ref));
    lanes.fold(home, Task::lane)
}
