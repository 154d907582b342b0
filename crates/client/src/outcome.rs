//! How an attempt went, and telling the server until it has heard.

use std::time::Duration;

use laneway_protocol::{ClaimedTask, CompleteBody};
use serde_json::Value;

use crate::attempt::{Attempt, Failure};
use crate::client::Client;
use crate::error::Error;
use crate::lease::is_stale;
use crate::patience::{doubled, jittered};

const RETRY_FIRST: Duration = Duration::from_millis(200);
/// No wait between two tries is longer: when the server is back, the lease has not long to live.
const RETRY_MAX: Duration = Duration::from_secs(3);

/// What became of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The server has taken it.
    Taken,
    /// The task was not this worker's any more.
    Stale,
}

/// The words for an outcome, with what the attempt has heard and nobody knows of yet.
fn body(fence: u64, outcome: Result<Value, Failure>, steered: Vec<String>) -> CompleteBody {
    match outcome {
        Ok(result) => {
            CompleteBody { fence, success: true, result: Some(result), error: None, retryable: None, steered }
        }
        Err(failure) => CompleteBody {
            fence,
            success: false,
            result: None,
            error: Some(failure.error),
            retryable: Some(failure.retryable),
            steered,
        },
    }
}

/// Tells the server, however long it is away.
pub(crate) async fn tell(client: &Client, attempt: &Attempt, outcome: Result<Value, Failure>) -> Told {
    let task = attempt.task();
    let mut body = body(task.fence, outcome, attempt.shared().taken());
    let mut tried = 0;
    // Whether a try may have arrived without its answer having come back.
    let mut may_have_arrived = false;
    loop {
        let error = match client.complete(&task.id, &body).await {
            Ok(_) => return Told::Taken,
            // The first try was the one that counted.
            Err(error) if is_stale(&error) && may_have_arrived => return told_before(client, task).await,
            Err(error) if is_stale(&error) => return Told::Stale,
            Err(error) => error,
        };
        may_have_arrived |= !matches!(error, Error::Unreachable { .. });
        let is_wrong =
            matches!(&error, Error::Refused(problem) if !problem.retryable && problem.status < 500);
        if is_wrong && !body.success {
            tracing::error!(task = task.id, %error, "the server takes no word of how it went");
            return Told::Stale;
        }
        if is_wrong {
            // It would be refused for ever: the task ends with why, rather than with its lease.
            let failure = Failure::fatal(format!("its result was refused: {error}"));
            tracing::warn!(task = task.id, %error, "the server does not take the result");
            body = self::body(task.fence, Err(failure), body.steered);
            continue;
        }
        let wait = jittered(doubled(RETRY_FIRST, tried, RETRY_MAX));
        tracing::warn!(task = task.id, %error, wait_ms = wait.as_millis() as u64, "the outcome is kept and told later");
        tokio::time::sleep(wait).await;
        tried = tried.saturating_add(1);
    }
}

/// Whether the task ended by this worker's own words, as far as the server remembers.
async fn told_before(client: &Client, task: &ClaimedTask) -> Told {
    match client.task(&task.id).await {
        Ok(view) if view.status == "completed" && view.attempts == task.attempt => Told::Taken,
        _ => Told::Stale,
    }
}
