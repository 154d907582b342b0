//! Reports how an attempt ended, until the server has accepted the report.

use std::time::Duration;

use laneway_protocol::{Backoff, ClaimedTask, CompleteBody};
use serde_json::Value;

use super::attempt::{Attempt, AttemptFailure};
use super::lease::is_stale;
use crate::client::Client;
use crate::error::Error;
use crate::retry::jittered;

/// The longest wait is short: when the server is back, the lease has not long to live.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(3));

/// What the server did with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reported {
    Accepted,
    /// The task was no longer this worker's.
    Stale,
}

fn body(fence: u64, outcome: Result<Value, AttemptFailure>, steered: Vec<String>) -> CompleteBody {
    let success = outcome.is_ok();
    let (result, error, retryable) = match outcome {
        Ok(result) => (Some(result), None, None),
        Err(failure) => (failure.output, Some(failure.error), Some(failure.retryable)),
    };
    CompleteBody { fence, success, result, error, retryable, steered }
}

/// Reports the outcome, however long the server is away.
pub(super) async fn report(
    client: &Client,
    attempt: &Attempt,
    outcome: Result<Value, AttemptFailure>,
) -> Reported {
    let task = attempt.task();
    let mut body = body(task.fence, outcome, attempt.shared().taken());
    let mut backoff = BACKOFF;
    // Whether a report may have arrived without its answer having come back.
    let mut may_have_arrived = false;
    loop {
        let error = match client.complete(&task.id, &body).await {
            Ok(_) => return Reported::Accepted,
            // An earlier report may have been the one that counted.
            Err(error) if is_stale(&error) && may_have_arrived => return reported_before(client, task).await,
            Err(error) if is_stale(&error) => return Reported::Stale,
            Err(error) => error,
        };
        may_have_arrived |= !matches!(error, Error::Unreachable { .. });
        let is_refused =
            matches!(&error, Error::Refused(problem) if !problem.retryable && problem.status < 500);
        if is_refused && !body.success {
            tracing::error!(task = task.id, %error, "the server refuses the report of a failure");
            return Reported::Stale;
        }
        if is_refused {
            // The server would refuse the result for ever, so the task ends with the reason instead of with its lease.
            let failure = AttemptFailure::fatal(format!("its result was refused: {error}"));
            tracing::warn!(task = task.id, %error, "the server refuses the result");
            body = self::body(task.fence, Err(failure), body.steered);
            continue;
        }
        let wait = jittered(backoff.next_wait());
        tracing::warn!(task = task.id, %error, wait_ms = wait.as_millis() as u64, "the outcome is kept and reported later");
        tokio::time::sleep(wait).await;
    }
}

/// Whether the server has accepted an earlier report of this attempt, as far as it remembers.
async fn reported_before(client: &Client, task: &ClaimedTask) -> Reported {
    match client.task(&task.id).await {
        Ok(view) if view.status == "completed" && view.attempts == task.attempt => Reported::Accepted,
        _ => Reported::Stale,
    }
}
