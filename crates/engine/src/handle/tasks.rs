//! Tasks: submitting them, looking at them, waiting for their ends, changing and cancelling them.

use bytes::Bytes;
use laneway_core::{
    BlobId, CancelReason, Command, DeadLetter, Explanation, LiveTaskView, Rejection, Reply, Selector, TaskId,
};
use laneway_store::Finished;
use tokio::sync::oneshot;

use crate::driver::mailbox::{Call, Ending, Query, ReplyTo, Request};
use crate::error::Error;
use crate::handle::Handle;
use crate::handle::task::Task;
use crate::handle::task_handle::TaskHandle;

impl Handle {
    /// Accepts a task for the handler of its kind, or for a worker. It is kept, as far as the store keeps
    /// anything, when this returns.
    pub async fn submit(&self, task: Task) -> Result<TaskHandle, Error> {
        let (mut spec, payload) = task.for_handler()?;
        let mut payloads = Vec::new();
        if let Some(payload) = payload {
            let blob = self.new_blob();
            spec.payload = Some(blob);
            payloads.push((blob, payload));
        }
        self.accept(Command::Submit { task: self.new_id(), spec }, payloads).await
    }

    pub(super) async fn accept(
        &self,
        command: Command,
        payloads: Vec<(BlobId, Bytes)>,
    ) -> Result<TaskHandle, Error> {
        let (answer, accepted) = oneshot::channel();
        let mut request = Request::new(command, ReplyTo::Task(answer));
        request.payloads = payloads;
        self.send(request).await?;
        let accepted = accepted.await.map_err(|_| Error::Closed)??;
        Ok(TaskHandle::new(accepted, self.clone()))
    }

    /// Waits for the end of a task that is live or remembered; [`NotLive`](Rejection::NotLive) if
    /// it is neither.
    pub async fn wait_for(&self, task: TaskId) -> Result<Ending, Error> {
        let (answer, waiter) = oneshot::channel();
        self.call(Call::Query(Query::End { task, answer })).await?;
        match waiter.await.map_err(|_| Error::Closed)?? {
            Some(waiter) => waiter.await.map(|ending| *ending).map_err(|_| Error::Closed),
            None => self.ending_of(task).await,
        }
    }

    /// How a task that is over and remembered ended.
    pub async fn ending_of(&self, task: TaskId) -> Result<Ending, Error> {
        let found = self.journal()?.finished(task).await?;
        let not_live = Error::Rejected(Rejection::NotLive { task });
        found.map(|(finished, result)| Ending::of_finished(finished, result)).ok_or(not_live)
    }

    /// A payload, as JSON.
    pub async fn payload(&self, payload: BlobId) -> Result<Option<Bytes>, Error> {
        Ok(self.journal()?.payload(payload).await?)
    }

    /// A task that is over and remembered, with what it produced (JSON).
    pub async fn finished(&self, task: TaskId) -> Result<Option<(Finished, Option<Bytes>)>, Error> {
        Ok(self.journal()?.finished(task).await?)
    }

    /// A live task.
    pub async fn task(&self, task: TaskId) -> Result<Option<LiveTaskView>, Error> {
        self.read(move |lanes| lanes.task(task)).await
    }

    /// All live tasks, in the order of their arrival.
    pub async fn tasks(&self) -> Result<Vec<LiveTaskView>, Error> {
        self.read(|lanes| lanes.tasks().collect()).await
    }

    /// Why a task waits; `None` if it is not live.
    pub async fn explain(&self, task: TaskId) -> Result<Option<Explanation>, Error> {
        self.read(move |lanes| lanes.explain(task)).await
    }

    /// A waiting task's place in the line of its home lane, counted from one.
    pub async fn position(&self, task: TaskId) -> Result<Option<usize>, Error> {
        self.read(move |lanes| lanes.position(task)).await
    }

    /// The dead letters, the oldest first.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Error> {
        self.read(|lanes| lanes.dead_letters().cloned().collect()).await
    }

    /// Runs a dead letter again, as a new task.
    pub async fn redrive(&self, dead_letter: TaskId) -> Result<TaskHandle, Error> {
        let task = self.new_id();
        self.accept(Command::Redrive { dead_letter, task }, Vec::new()).await
    }

    /// Deletes a dead letter.
    pub async fn discard(&self, dead_letter: TaskId) -> Result<(), Error> {
        self.ask(Command::Discard { dead_letter }).await.map(drop)
    }

    /// Cancels a task: a waiting one leaves the line, a running one gets a stop signal.
    pub async fn cancel(&self, task: TaskId) -> Result<Reply, Error> {
        self.ask(Command::Cancel { task, reason: CancelReason::Caller }).await
    }

    /// Cancels everything that waits and fits, touching nothing that runs; returns how many.
    pub async fn cancel_waiting(&self, which: Selector) -> Result<usize, Error> {
        self.count(Command::CancelWaiting { which, reason: CancelReason::Caller }).await
    }

    pub(super) async fn count(&self, command: Command) -> Result<usize, Error> {
        match self.ask(command).await? {
            Reply::Cancelled(tasks) => Ok(tasks),
            _ => Ok(0),
        }
    }

    /// Changes the priority of a task that waits.
    pub async fn reprioritise(&self, task: TaskId, priority: u8) -> Result<(), Error> {
        self.ask(Command::Reprioritise { task, priority }).await.map(drop)
    }
}
