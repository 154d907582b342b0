//! One attempt at a task, as its handler sees it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_protocol::{ClaimedTask, TurnMessageView};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why an attempt did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}")]
pub struct AttemptFailure {
    /// What went wrong, in words that the caller of the task sees.
    pub error: String,
    /// Whether another attempt could help.
    pub retryable: bool,
    /// What the attempt produced all the same, such as the output of a command that failed.
    pub output: Option<Value>,
}

impl AttemptFailure {
    /// Another attempt could help.
    pub fn new(error: impl fmt::Display) -> AttemptFailure {
        AttemptFailure { error: error.to_string(), retryable: true, output: None }
    }

    /// No other attempt could help.
    pub fn fatal(error: impl fmt::Display) -> AttemptFailure {
        AttemptFailure { error: error.to_string(), retryable: false, output: None }
    }

    /// Keeps what the attempt produced all the same. The task has it as its result, with the error.
    pub fn with_output(self, output: impl Into<Value>) -> AttemptFailure {
        AttemptFailure { output: Some(output.into()), ..self }
    }
}

/// Why an attempt should end before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StopCause {
    /// The task was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The lease lapsed. Another worker may have the task now, so this attempt must not go on.
    #[error("its lease lapsed")]
    LeaseLost,
    /// It took longer than it may.
    #[error("it took too long")]
    TimedOut,
    /// The worker ends, and its grace is over.
    #[error("the worker was stopped")]
    Shutdown,
}

/// One attempt at a task. Clones are the same attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    task: Arc<ClaimedTask>,
    shared: Arc<Shared>,
}

/// What the handler and the keeper of the lease share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    stop: CancellationToken,
    /// Notified when the next heartbeat should not wait until it is due.
    pub(super) urgent: Notify,
    /// Notified when the server has something to say.
    pub(super) wanted: Notify,
    /// Notified when a message is offered.
    offered: Notify,
}

#[derive(Debug, Default)]
struct State {
    cause: Option<StopCause>,
    output: Output,
    takes_steering: bool,
    /// Messages that the handler has not taken: never more than the server offers a turn at once.
    offered: VecDeque<TurnMessageView>,
    /// The ids of messages that the handler has taken and the server has not confirmed.
    taken: Vec<String>,
}

/// What the handler says to clients that watch, and was not sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Output {
    pub(super) progress: Option<Value>,
    pub(super) delta: String,
    pub(super) usage: Option<Value>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the handler to end. The first cause stays.
    pub(super) fn stop(&self, cause: StopCause) {
        self.state().cause.get_or_insert(cause);
        self.stop.cancel();
    }

    pub(super) fn cause(&self) -> Option<StopCause> {
        self.state().cause
    }

    /// The output that was not sent.
    pub(super) fn take_output(&self) -> Output {
        std::mem::take(&mut self.state().output)
    }

    /// Puts back output that could not be sent: text before the text since then, the rest unless there is something newer.
    pub(super) fn return_output(&self, unsent: Output) {
        let mut state = self.state();
        let output = &mut state.output;
        output.delta.insert_str(0, &unsent.delta);
        output.progress = output.progress.take().or(unsent.progress);
        output.usage = output.usage.take().or(unsent.usage);
    }

    pub(super) fn has_output(&self) -> bool {
        self.state().output != Output::default()
    }

    pub(super) fn has_delta(&self) -> bool {
        !self.state().output.delta.is_empty()
    }

    pub(super) fn takes_steering(&self) -> bool {
        self.state().takes_steering
    }

    /// The ids of messages that the handler has taken and the server has not confirmed.
    pub(super) fn taken(&self) -> Vec<String> {
        self.state().taken.clone()
    }

    /// Takes in an answer of the server: it knows that `confirmed` were taken, and offers messages. One that it offers
    /// again, because it does not know yet, reaches the handler once.
    pub(super) fn on_heartbeat(&self, confirmed: &[String], offered: Vec<TurnMessageView>) {
        let mut state = self.state();
        state.taken.retain(|id| !confirmed.contains(id));
        for message in offered {
            let is_known =
                state.taken.contains(&message.id) || state.offered.iter().any(|known| known.id == message.id);
            if !is_known {
                state.offered.push_back(message);
            }
        }
        if !state.offered.is_empty() {
            self.offered.notify_one();
        }
    }
}

impl Attempt {
    pub(super) fn new(task: ClaimedTask) -> Attempt {
        Attempt { task: Arc::new(task), shared: Arc::default() }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The task, with its payload.
    pub fn task(&self) -> &ClaimedTask {
        &self.task
    }

    /// Reports how far the attempt is. At most two reports a second are sent, and only the newest counts.
    pub fn progress(&self, progress: impl Into<Value>) {
        self.shared.state().output.progress = Some(progress.into());
        self.shared.urgent.notify_one();
    }

    /// Publishes more of the text that the attempt produces. Pieces in quick succession are sent together.
    pub fn delta(&self, text: &str) {
        self.shared.state().output.delta.push_str(text);
        self.shared.urgent.notify_one();
    }

    /// Reports what the attempt has used so far, such as tokens. Only the newest report counts.
    pub fn usage(&self, usage: impl Into<Value>) {
        self.shared.state().output.usage = Some(usage.into());
        self.shared.urgent.notify_one();
    }

    /// Why the attempt should end; `None`: it should go on.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.shared.cause()
    }

    /// Waits until the attempt should end. A handler that does not wait for it is dropped after the worker's grace.
    pub async fn stopped(&self) -> StopCause {
        self.shared.stop.cancelled().await;
        self.shared.cause().unwrap_or(StopCause::Shutdown)
    }

    /// Waits for the next message to this turn, which takes steering from the first call on. A task that is no turn
    /// waits for ever. A message that this has not returned when the handler ends becomes a turn of its own. Dropping
    /// the future loses nothing.
    pub async fn next_steering(&self) -> TurnMessageView {
        loop {
            let next = {
                let mut state = self.shared.state();
                let is_new = !std::mem::replace(&mut state.takes_steering, true);
                let next = state.offered.pop_front();
                if let Some(message) = &next {
                    state.taken.push(message.id.clone());
                }
                // An early heartbeat fetches messages that wait, and confirms those that were taken.
                if is_new || next.is_some() {
                    self.shared.urgent.notify_one();
                }
                next
            };
            match next {
                Some(message) => return message,
                None => self.shared.offered.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use super::*;

    fn message(id: &str) -> TurnMessageView {
        serde_json::from_value(serde_json::json!({ "id": id, "text": format!("say {id}") })).unwrap()
    }

    #[tokio::test]
    async fn a_message_that_is_offered_again_is_taken_once_and_named_until_the_server_confirms_it() {
        let task = serde_json::json!({
            "id": "t", "lane": "l", "kind": "k", "payload": null, "attempt": 1, "fence": 7,
            "lease_until": "2030-01-01T00:00:00.000Z", "timeout_ms": null, "remaining_ms": null,
        });
        let attempt = Attempt::new(serde_json::from_value(task).unwrap());
        let shared = attempt.shared();
        shared.on_heartbeat(&[], vec![message("a"), message("b")]);
        shared.on_heartbeat(&[], vec![message("a"), message("b")]);
        assert_eq!(attempt.next_steering().await.text, "say a");
        shared.on_heartbeat(&[], vec![message("a"), message("b")]);
        assert_eq!(attempt.next_steering().await.text, "say b");
        assert_eq!(shared.taken(), ["a", "b"]);
        shared.on_heartbeat(&["a".to_owned()], vec![message("b"), message("c")]);
        assert_eq!(shared.taken(), ["b"]);
        assert_eq!(attempt.next_steering().await.text, "say c");
        assert_eq!(shared.taken(), ["b", "c"]);
    }

    #[test]
    fn output_that_could_not_be_sent_is_sent_later_and_in_order() {
        let task = serde_json::json!({
            "id": "t", "lane": "l", "kind": "k", "payload": null, "attempt": 1, "fence": 7,
            "lease_until": "2030-01-01T00:00:00.000Z", "timeout_ms": null, "remaining_ms": null,
        });
        let attempt = Attempt::new(serde_json::from_value(task).unwrap());
        attempt.delta("one ");
        attempt.delta("two ");
        attempt.progress(1);
        let unsent = attempt.shared().take_output();
        assert!(!attempt.shared().has_output());
        attempt.delta("three");
        attempt.progress(2);
        attempt.usage(9);
        attempt.shared().return_output(unsent);
        let output = attempt.shared().take_output();
        assert_eq!(
            (output.delta.as_str(), output.progress, output.usage),
            ("one two three", Some(2.into()), Some(9.into()))
        );
    }
}
