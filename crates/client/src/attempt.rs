//! One attempt at a task, as a handler sees it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_protocol::ClaimedTask;
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
    /// Filled only when it is empty, by one answer of the server: bounded by what that holds.
    steering: VecDeque<String>,
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

    /// Whether the handler listens, and has heard all that was said.
    pub(crate) fn wants_steering(&self) -> bool {
        let state = self.state();
        state.takes_steering && state.steering.is_empty()
    }

    pub(crate) fn takes_steering(&self) -> bool {
        self.state().takes_steering
    }

    pub(crate) fn hear(&self, texts: Vec<String>) {
        if !texts.is_empty() {
            self.state().steering.extend(texts);
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
    /// conversation are spoken to; others wait for ever.
    pub async fn next_steering(&self) -> String {
        loop {
            let heard = {
                let mut state = self.shared.state();
                let is_new = !std::mem::replace(&mut state.takes_steering, true);
                let heard = state.steering.pop_front();
                // Asked at once, so that what was said before does not wait for the next sign of life.
                if is_new || (heard.is_some() && state.steering.is_empty()) {
                    self.shared.urgent.notify_one();
                }
                heard
            };
            match heard {
                Some(text) => return text,
                None => self.shared.heard.notified().await,
            }
        }
    }
}
