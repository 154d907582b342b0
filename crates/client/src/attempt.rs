//! One attempt at a task, as a handler sees it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_protocol::{ClaimedTask, SteeringView};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why an attempt did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, in words; whoever asked for the task is told.
    pub error: String,
    /// Whether another attempt could help.
    pub retryable: bool,
}

impl Failure {
    /// Something that may go better next time.
    pub fn new(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), retryable: true }
    }

    /// Something that would go wrong again.
    pub fn fatal(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), retryable: false }
    }
}

/// Why an attempt should end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// Somebody cancelled the task.
    Cancelled,
    /// The lease lapsed: the task may be somebody else's by now, and this attempt must not go on.
    LeaseLost,
    /// It took longer than it may.
    TimedOut,
    /// The worker ends, and its grace is over.
    Shutdown,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::Cancelled => "it was cancelled",
            StopReason::LeaseLost => "its lease lapsed",
            StopReason::TimedOut => "it took too long",
            StopReason::Shutdown => "the worker was stopped",
        })
    }
}

/// One attempt at a task. Clones are the same attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    task: Arc<ClaimedTask>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    stop: CancellationToken,
    /// Woken by what should be said before the next sign of life is due.
    pub(crate) urgent: Notify,
    /// Woken when somebody has said something to the run.
    heard: Notify,
}

#[derive(Debug, Default)]
struct State {
    reason: Option<StopReason>,
    progress: Option<Value>,
    takes_steering: bool,
    /// What was said and the handler has not heard: never more than the server offers a turn at once.
    offered: VecDeque<SteeringView>,
    /// The ids of what the handler has heard and the server does not know that it has.
    taken: Vec<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the handler to end. The first reason stays.
    pub(crate) fn stop(&self, reason: StopReason) {
        self.state().reason.get_or_insert(reason);
        self.stop.cancel();
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        self.state().reason
    }

    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// The newest progress that was not passed on.
    pub(crate) fn take_progress(&self) -> Option<Value> {
        self.state().progress.take()
    }

    /// Puts back what could not be passed on, unless there is something newer.
    pub(crate) fn return_progress(&self, progress: Option<Value>) {
        let mut state = self.state();
        if state.progress.is_none() {
            state.progress = progress;
        }
    }

    pub(crate) fn takes_steering(&self) -> bool {
        self.state().takes_steering
    }

    /// What the handler has heard and the server does not know that it has.
    pub(crate) fn taken(&self) -> Vec<String> {
        self.state().taken.clone()
    }

    /// The server was told that these were heard, and says what is on offer now. What it offers again, because it does
    /// not know of it yet, is heard once.
    pub(crate) fn hear(&self, told: &[String], offered: Vec<SteeringView>) {
        let mut state = self.state();
        state.taken.retain(|id| !told.contains(id));
        for message in offered {
            let is_known =
                state.taken.contains(&message.id) || state.offered.iter().any(|known| known.id == message.id);
            if !is_known {
                state.offered.push_back(message);
            }
        }
        if !state.offered.is_empty() {
            self.heard.notify_one();
        }
    }
}

impl Attempt {
    pub(crate) fn new(task: ClaimedTask) -> Attempt {
        Attempt { task: Arc::new(task), shared: Arc::default() }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The task, with its payload.
    pub fn task(&self) -> &ClaimedTask {
        &self.task
    }

    /// Tells whoever watches how far it is. Only the newest counts: at most two a second are passed on.
    pub fn progress(&self, progress: impl Into<Value>) {
        self.shared.state().progress = Some(progress.into());
        self.shared.urgent.notify_one();
    }

    /// Why it should end; `None`: it should go on.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.shared.reason()
    }

    /// Waits until it should end. A handler that does not look is dropped when the worker's grace is over.
    pub async fn stopped(&self) -> StopReason {
        self.shared.stopped().await;
        self.shared.reason().unwrap_or(StopReason::Shutdown)
    }

    /// Waits for what is said to the run: the turn takes steering from the first call on. Only turns of a
    /// conversation are spoken to; others wait for ever. What this has not returned when the handler is done waits for a
    /// turn of its own; dropping the future loses nothing.
    pub async fn next_steering(&self) -> String {
        loop {
            let heard = {
                let mut state = self.shared.state();
                let is_new = !std::mem::replace(&mut state.takes_steering, true);
                let heard = state.offered.pop_front();
                if let Some(message) = &heard {
                    state.taken.push(message.id.clone());
                }
                // Asked at once, so that what was said before does not wait for the next sign of life.
                if is_new || heard.is_some() {
                    self.shared.urgent.notify_one();
                }
                heard
            };
            match heard {
                Some(message) => return message.text,
                None => self.shared.heard.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use super::*;

    fn said(id: &str) -> SteeringView {
        SteeringView { id: id.to_owned(), text: format!("say {id}"), sender_name: None }
    }

    #[tokio::test]
    async fn what_is_offered_again_is_heard_once_and_named_until_the_server_knows() {
        let task = serde_json::json!({
            "id": "t", "lane": "l", "kind": "k", "payload": null, "attempt": 1, "fence": 7,
            "lease_until": "2030-01-01T00:00:00.000Z", "timeout_ms": null, "remaining_ms": null,
        });
        let attempt = Attempt::new(serde_json::from_value(task).unwrap());
        let shared = attempt.shared();
        shared.hear(&[], vec![said("a"), said("b")]);
        // The same again: the server does not know that this was heard.
        shared.hear(&[], vec![said("a"), said("b")]);
        assert_eq!(attempt.next_steering().await, "say a");
        shared.hear(&[], vec![said("a"), said("b")]);
        assert_eq!(attempt.next_steering().await, "say b");
        assert_eq!(shared.taken(), ["a", "b"]);
        // What was heard since the last sign of life was sent is named in the next one.
        shared.hear(&["a".to_owned()], vec![said("b"), said("c")]);
        assert_eq!(shared.taken(), ["b"]);
        assert_eq!(attempt.next_steering().await, "say c");
        assert_eq!(shared.taken(), ["b", "c"]);
    }
}
