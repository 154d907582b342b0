//! Asking for a task in the core's own words, for whoever decodes requests, and how it stands when it is accepted.

use bytes::Bytes;
use laneway_core::{Command, Fence, Millis, Scheduler, TaskId, TaskSpec, TaskStatus};
use serde_json::Value;

use crate::error::Error;
use crate::handle::Handle;
use crate::task::SLOT_KIND;
use crate::task_handle::TaskHandle;
use crate::watch::Update;

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
        let position = lanes.position(task);
        Standing {
            status: lanes.task(task).map(|view| view.status),
            position,
            starts_in: position.and_then(|_| lanes.estimated_start(task)),
        }
    }
}

impl Handle {
    /// Accepts a task as it is spelled out, with its payload (JSON). Like [`submit`](Handle::submit) otherwise.
    pub async fn submit_spec(
        &self,
        mut spec: Box<TaskSpec>,
        payload: Option<Bytes>,
    ) -> Result<TaskHandle, Error> {
        if spec.kind.as_str() == SLOT_KIND {
            return Err(Error::NoHandler { kind: spec.kind });
        }
        let mut payloads = Vec::new();
        if let Some(payload) = payload {
            let blob = self.new_blob();
            spec.payload = Some(blob);
            payloads.push((blob, payload));
        }
        self.accept(Command::Submit { task: self.new_id(), spec }, payloads).await
    }

    /// Tells watchers how far an attempt of a worker is. Not kept; an attempt that is over is passed over.
    pub async fn tell_progress(&self, task: TaskId, fence: Fence, value: Value) -> Result<(), Error> {
        let Some(view) = self.task(task).await? else { return Ok(()) };
        if view.running.as_ref().is_some_and(|running| running.fence == fence) {
            let update = Update::Progress { task, fence, value: std::sync::Arc::new(value) };
            self.watchers().tell(&update, |lane| view.lanes.contains(lane));
        }
        Ok(())
    }
}
