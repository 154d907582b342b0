//! Slots for work that the caller does itself.

use std::time::Duration;

use laneway_core::{Command, Owner, TaskSpec};
use tokio::sync::oneshot;

use crate::driver::mailbox::{Call, ReplyTo, Request, Room};
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
        // Boxed, because programs spawn this future, which moves it several times.
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
        let room = self.room().await?;
        self.ask_for_slot(room, task)?.slot().await
    }

    fn ask_for_slot(&self, room: Room<'_>, task: Task) -> Result<Wait, Error> {
        let spec = self.spec_of_slot(task)?;
        let task = self.new_id();
        let (answer, slot) = oneshot::channel();
        let wait = Wait::new(task, slot, self.clone());
        room.call(Call::Request(Request::new(Command::Submit { task, spec }, ReplyTo::Slot(answer))))?;
        Ok(wait)
    }

    fn spec_of_slot(&self, asked: Task) -> Result<Box<TaskSpec>, Error> {
        let mut spec = asked.for_slot()?;
        spec.owner = Some(Owner::Replica(self.0.resources.id));
        Ok(spec)
    }
}

fn of_lanes<L: AsRef<str>>(lanes: impl IntoIterator<Item = L>) -> Task {
    let mut lanes = lanes.into_iter();
    let home = lanes.next();
    let home = Task::new(home.as_ref().map_or("", AsRef::as_ref));
    lanes.fold(home, Task::lane)
}
