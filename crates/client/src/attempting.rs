//! One attempt at a task, from its start until the server has heard how it went.

use std::time::Duration;

use laneway_protocol::ClaimedTask;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, Failure, StopReason};
use crate::lease::Lease;
use crate::outcome::{self, Told};
use crate::worker::Worker;

/// How an attempt ended.
pub(crate) enum Ended {
    Completed,
    Failed,
    Stale,
    Left,
}

impl Worker {
    /// One attempt, from its start until the server has heard how it went.
    pub(crate) async fn attempt(
        &self,
        task: ClaimedTask,
        asked: Instant,
        must_end: CancellationToken,
    ) -> Ended {
        let attempt = Attempt::new(task);
        let (task, shared) = (attempt.task(), attempt.shared());
        tracing::info!(task = task.id, kind = task.kind, attempt = task.attempt, "starts");
        let lease = Lease {
            client: &self.client,
            attempt: &attempt,
            length: self.lease,
            times_out: task.remaining_ms.map(|left| Instant::now() + Duration::from_millis(left)),
            asked,
            until: Instant::now() + self.lease * 3 / 4,
        };
        let ending = async {
            must_end.cancelled().await;
            shared.stop(StopReason::Shutdown);
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            outcome = self.handle(&attempt) => outcome,
            () = lease.keep() => Err(Failure::new("its lease ended")),
            () = ending => Err(Failure::new("the worker ended")),
        };
        match (shared.reason(), &outcome) {
            // One that came to its end all the same is told of: the server knows best whose the task is.
            (Some(StopReason::LeaseLost), Err(_)) => {
                tracing::warn!(task = task.id, attempt = task.attempt, "ended: its lease lapsed");
                return Ended::Stale;
            }
            // A failure would be the task's end; a lease that lapses brings it to somebody else.
            (Some(StopReason::Shutdown), Err(_)) => {
                tracing::warn!(task = task.id, attempt = task.attempt, "ended: left to others");
                return Ended::Left;
            }
            _ => {}
        }
        let is_success = outcome.is_ok();
        let told = outcome::tell(&self.client, &attempt, outcome).await;
        tracing::info!(task = task.id, attempt = task.attempt, is_success, ?told, "ended");
        match (told, is_success) {
            (Told::Stale, _) => Ended::Stale,
            (Told::Taken, true) => Ended::Completed,
            (Told::Taken, false) => Ended::Failed,
        }
    }

    /// What the handler says, or why it was given up.
    async fn handle(&self, attempt: &Attempt) -> Result<Value, Failure> {
        let Some(handler) = self.handlers.get(&attempt.task().kind) else {
            return Err(Failure::new("this worker has no handler for its kind"));
        };
        let mut running = tokio::spawn(handler(attempt.clone()));
        let drops = DropsTask(running.abort_handle());
        let given_up = async {
            let reason = attempt.stopped().await;
            sleep(self.stop_grace).await;
            reason
        };
        let ended = tokio::select! {
            ended = &mut running => ended,
            reason = given_up => return Err(stopped(reason)),
        };
        drop(drops);
        match (ended, attempt.stop_reason()) {
            (Ok(Ok(result)), _) => Ok(result),
            // Why it was stopped says more than what it says about having been stopped.
            (Ok(Err(_)), Some(reason)) => Err(stopped(reason)),
            (Ok(Err(failure)), None) => Err(failure),
            (Err(error), _) if error.is_panic() => Err(Failure::new("its handler panicked")),
            (Err(_), _) => Err(Failure::new("its handler was dropped")),
        }
    }
}

fn stopped(reason: StopReason) -> Failure {
    Failure { error: reason.to_string(), retryable: reason != StopReason::Cancelled }
}

/// Ends a handler whose worker has gone.
struct DropsTask(tokio::task::AbortHandle);

impl Drop for DropsTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
