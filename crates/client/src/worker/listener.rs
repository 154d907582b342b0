//! Hears from the server which attempts should send a heartbeat before it is due.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_protocol::{Backoff, EventFrame, EventName};

use super::Worker;
use super::attempt::Shared;
use crate::error::Error;
use crate::events::Watch;
use crate::retry::jittered;

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));

/// The attempts that run, by task.
#[derive(Default)]
pub(super) struct Running(Mutex<HashMap<String, Arc<Shared>>>);

/// An attempt that is listed until this is dropped.
pub(super) struct Listed<'a> {
    running: &'a Running,
    task: &'a str,
    shared: &'a Arc<Shared>,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Shared>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn list<'a>(&'a self, task: &'a str, shared: &'a Arc<Shared>) -> Listed<'a> {
        self.lock().insert(task.to_owned(), Arc::clone(shared));
        Listed { running: self, task, shared }
    }

    fn on_event(&self, frame: &EventFrame) {
        if frame.event != EventName::HeartbeatWanted.as_str() {
            return;
        }
        let task = frame.data["task_id"].as_str().unwrap_or_default();
        if let Some(shared) = self.lock().get(task) {
            shared.wanted.notify_one();
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        // A later attempt of the task may have taken its place.
        if running.get(self.task).is_some_and(|shared| Arc::ptr_eq(shared, self.shared)) {
            running.remove(self.task);
        }
    }
}

impl Worker {
    /// Follows the worker's events for ever. A stream that breaks is opened again, and starts with what was missed.
    /// Meanwhile heartbeats still bring all news, only later.
    pub(super) async fn listen(&self) -> Infallible {
        let mut backoff = BACKOFF;
        loop {
            let Err(error) = self.follow(&mut backoff).await else { continue };
            tracing::debug!(%error, "the worker does not hear cancels at once");
            tokio::time::sleep(jittered(backoff.next_wait())).await;
        }
    }

    async fn follow(&self, backoff: &mut Backoff) -> Result<(), Error> {
        let mut events = self.client.events(Watch::worker(self.name.as_str()).lasting()).await?;
        while let Some(frame) = events.next().await? {
            backoff.reset();
            self.running.on_event(&frame);
        }
        Ok(())
    }
}
