//! Submitting a task as the core's [`TaskSpec`], and how it stands when it is accepted.

use bytes::Bytes;
use laneway_core::{BlobId, Command, Millis, ReplicaId, Scheduler, TaskId, TaskSpec, TaskStatus};
use tokio::sync::oneshot;

use crate::driver::mailbox::{Accepted, ReplyTo, Request};
use crate::error::Error;
use crate::handle::Handle;
use crate::handle::task_handle::TaskHandle;

/// How a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// What it does; `None`: it has ended.
    pub status: Option<TaskStatus>,
    /// Its place in the line of its home lane, counted from one, while it stands in line.
    pub position: Option<usize>,
    /// When it will probably start, where there is something to judge by.
    pub starts_in: Option<Millis>,
}

impl Standing {
    /// How a task stands now.
    pub fn of(lanes: &Scheduler, task: TaskId) -> Standing {
        let (position, starts_in) = lanes.prospect(task).unzip();
        Standing { status: lanes.status(task), position, starts_in: starts_in.flatten() }
    }
}

/// A task that was accepted and is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its id.
    pub task: TaskId,
    /// Whether an earlier request under the same key had brought it.
    pub joined: bool,
    /// How it stood when it was accepted, together with all that was decided at the same time.
    pub standing: Standing,
}

impl Handle {
    /// Where the callers of tasks are that are connected here (see [`TaskSpec::caller_at`]), if others share the log.
    pub fn here(&self) -> Option<ReplicaId> {
        let resources = self.resources();
        resources.is_replica.then_some(resources.id)
    }

    /// Accepts a task as it is spelled out, under an id of [`new_id`](Handle::new_id), with its payload (JSON). Like [`submit`](Handle::submit) otherwise.
    pub async fn submit_spec(
        &self,
        task: TaskId,
        spec: Box<TaskSpec>,
        payload: Option<Bytes>,
    ) -> Result<TaskHandle, Error> {
        let (command, payloads) = self.spelled_out(task, spec, payload)?;
        self.accept(command, payloads).await
    }

    /// The same without a way to wait for its end, which saves memory while it waits.
    pub async fn submit_detached(
        &self,
        task: TaskId,
        spec: Box<TaskSpec>,
        payload: Option<Bytes>,
    ) -> Result<Submitted, Error> {
        let (command, payloads) = self.spelled_out(task, spec, payload)?;
        let (answer, accepted) = oneshot::channel();
        let mut request = Request::new(command, ReplyTo::Acceptance(answer));
        request.payloads = payloads;
        self.send(request).await?;
        let Accepted { task, joined, standing, .. } = accepted.await.map_err(|_| Error::Closed)??;
        Ok(Submitted { task, joined, standing })
    }

    fn spelled_out(
        &self,
        task: TaskId,
        mut spec: Box<TaskSpec>,
        payload: Option<Bytes>,
    ) -> Result<(Command, Vec<(BlobId, Bytes)>), Error> {
        if spec.is_slot() {
            return Err(Error::NoHandler { kind: spec.kind });
        }
        let mut payloads = Vec::new();
        if let Some(payload) = payload {
            let blob = self.new_blob();
            spec.payload = Some(blob);
            payloads.push((blob, payload));
        }
        Ok((Command::Submit { task, spec }, payloads))
    }
}
