//! Runs one attempt, from its start until the server knows how it ended.

use std::time::Duration;

use laneway_protocol::ClaimedTask;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, AttemptFailure, StopCause};
use super::lease::Lease;
use super::report::{Reported, report};
use super::{ANY_KIND, Worker};
use crate::running::running_as;

/// How an attempt ended.
pub(super) enum AttemptEnd {
    Completed,
    Failed,
    Stale,
    Left,
}

impl Worker {
    /// Runs one attempt. `claimed` is when the claim was sent.
    pub(super) async fn run_attempt(
        &self,
        task: ClaimedTask,
        claimed: Instant,
        must_end: CancellationToken,
    ) -> AttemptEnd {
        let attempt = Attempt::new(task);
        let (task, shared) = (attempt.task(), attempt.shared());
        tracing::info!(task = task.id, kind = task.kind, attempt = task.attempt, "starts");
        let _listed = self.running.list(&task.id, shared);
        let mut lease = Lease {
            client: &self.client,
            attempt: &attempt,
            length: self.lease,
            times_out: task.remaining_ms.map(|left| Instant::now() + Duration::from_millis(left)),
            claimed,
            until: Instant::now() + self.lease * 3 / 4,
        };
        let shutdown = async {
            must_end.cancelled().await;
            shared.stop(StopCause::Shutdown);
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! {
            outcome = self.handle(&attempt) => outcome,
            () = lease.keep() => Err(AttemptFailure::new("its lease ended")),
            () = shutdown => Err(AttemptFailure::new("the worker ended")),
        };
        match (shared.cause(), &outcome) {
            // A success is reported all the same: the server knows best who has the task.
            (Some(StopCause::LeaseLost), Err(_)) => {
                tracing::warn!(task = task.id, attempt = task.attempt, "ended: its lease lapsed");
                return AttemptEnd::Stale;
            }
            // A failure could end the task. A lease that lapses brings it to another worker.
            (Some(StopCause::Shutdown), Err(_)) => {
                tracing::warn!(task = task.id, attempt = task.attempt, "ended: left to others");
                return AttemptEnd::Left;
            }
            _ => {}
        }
        lease.flush().await;
        let is_success = outcome.is_ok();
        let reported = report(&self.client, &attempt, outcome).await;
        tracing::info!(task = task.id, attempt = task.attempt, is_success, ?reported, "ended");
        match (reported, is_success) {
            (Reported::Stale, _) => AttemptEnd::Stale,
            (Reported::Accepted, true) => AttemptEnd::Completed,
            (Reported::Accepted, false) => AttemptEnd::Failed,
        }
    }

    /// Runs the handler; a handler that does not stop in time is dropped.
    async fn handle(&self, attempt: &Attempt) -> Result<Value, AttemptFailure> {
        let handler = self.handlers.get(&attempt.task().kind).or_else(|| self.handlers.get(ANY_KIND));
        let Some(handler) = handler else {
            return Err(AttemptFailure::new("this worker has no handler for its kind"));
        };
        let mut running = tokio::task::JoinSet::new();
        let (url, task) = (self.client.url().to_owned(), attempt.task().id.clone());
        let handler = handler(attempt.clone());
        running.spawn(async move { running_as(&url, &task, handler).await });
        let given_up = async {
            let cause = attempt.stopped().await;
            sleep(self.stop_grace).await;
            cause
        };
        let ended = tokio::select! {
            ended = running.join_next() => ended,
            cause = given_up => return Err(stopped(cause)),
        };
        match (ended, attempt.stop_cause()) {
            (Some(Ok(Ok(result))), _) => Ok(result),
            // The cause says more than the handler's own words about having been stopped.
            (Some(Ok(Err(_))), Some(cause)) => Err(stopped(cause)),
            (Some(Ok(Err(failure))), None) => Err(failure),
            (Some(Err(error)), _) if error.is_panic() => Err(AttemptFailure::new("its handler panicked")),
            (Some(Err(_)) | None, _) => Err(AttemptFailure::new("its handler was dropped")),
        }
    }
}

fn stopped(cause: StopCause) -> AttemptFailure {
    AttemptFailure { retryable: cause != StopCause::Cancelled, ..AttemptFailure::new(cause) }
}
