//! Keeps the lease of one attempt alive, and tells the attempt when it should end.

use std::time::Duration;

use laneway_protocol::{Code, HeartbeatAnswer, HeartbeatBody};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::attempt::{Attempt, Shared, StopReason};
use crate::client::Client;
use crate::error::Error;
use crate::patience::{doubled, jittered};

/// So often at least, however long the lease is: cancellations are told in the answers, and the server does not wait
/// for long until what was cancelled has ended.
const BEAT_MAX: Duration = Duration::from_secs(2);
/// So often while somebody may speak to the run.
const BEAT_STEERED: Duration = Duration::from_secs(1);
/// What is urgent waits for so long after the last sign of life.
const BEAT_MIN: Duration = Duration::from_millis(500);
const RETRY_FIRST: Duration = Duration::from_millis(100);

/// The lease of one attempt.
pub(crate) struct Lease<'a> {
    pub(crate) client: &'a Client,
    pub(crate) attempt: &'a Attempt,
    pub(crate) length: Duration,
    /// When the attempt has taken too long.
    pub(crate) times_out: Option<Instant>,
    /// When the claim was sent. One that waited for work says nothing about when the lease began, so that the first
    /// sign of life is given at once.
    pub(crate) asked: Instant,
    /// When it lapses. Counted from before the request that renewed it, so that it ends before the server's does.
    pub(crate) until: Instant,
}

impl Lease<'_> {
    /// Gives signs of life until the attempt is dropped or must end; then waits for ever.
    pub(crate) async fn keep(mut self) {
        let shared = std::sync::Arc::clone(self.attempt.shared());
        let mut failed = 0;
        let mut beaten = self.asked;
        loop {
            let due = beaten + self.pause(&shared, failed);
            if !self.wait(&shared, beaten, due).await {
                break;
            }
            beaten = Instant::now();
            match self.beat(&shared).await {
                Ok(answer) => {
                    failed = 0;
                    self.until = beaten + self.length;
                    if answer.cancel_requested {
                        // The lease is kept while the handler ends.
                        shared.stop(StopReason::Cancelled);
                    }
                }
                Err(Gone::Stale) => {
                    shared.stop(StopReason::LeaseLost);
                    break;
                }
                Err(Gone::Away) => failed += 1,
            }
        }
        std::future::pending().await
    }

    fn pause(&self, shared: &Shared, failed: u32) -> Duration {
        let beat = (self.length / 3).min(BEAT_MAX);
        match failed {
            0 if shared.takes_steering() => beat.min(BEAT_STEERED),
            0 => beat,
            failed => jittered(doubled(RETRY_FIRST, failed, beat)),
        }
    }

    /// Waits for the next sign of life; `false`: there is none, because the attempt is out of time.
    async fn wait(&self, shared: &Shared, beaten: Instant, due: Instant) -> bool {
        let ends = self.times_out.map_or(self.until, |at| at.min(self.until));
        let urgent = async {
            shared.urgent.notified().await;
            sleep_until(beaten + BEAT_MIN).await;
        };
        tokio::select! {
            () = sleep_until(due.min(ends)) => {}
            () = urgent => {}
        }
        let now = Instant::now();
        if self.times_out.is_some_and(|at| at <= now) {
            shared.stop(StopReason::TimedOut);
            return false;
        }
        if self.until <= now {
            shared.stop(StopReason::LeaseLost);
            return false;
        }
        true
    }

    async fn beat(&self, shared: &Shared) -> Result<HeartbeatAnswer, Gone> {
        let task = self.attempt.task();
        let progress = shared.take_progress();
        let takes_steering = (task.session.is_some() && shared.takes_steering()).then_some(true);
        // Named again until an answer says that the server knows.
        let steered = takes_steering.map(|_| shared.taken());
        let body = HeartbeatBody { fence: task.fence, progress: progress.clone(), takes_steering, steered };
        // No answer is worth waiting for when the lease is over.
        let answer = timeout_at(self.until, self.client.heartbeat(&task.id, &body)).await;
        let error = match answer {
            Ok(Ok(mut answer)) => {
                shared
                    .hear(body.steered.as_deref().unwrap_or_default(), std::mem::take(&mut answer.steering));
                return Ok(answer);
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        shared.return_progress(progress);
        let is_stale = error.as_ref().is_some_and(is_stale);
        match is_stale || self.until <= Instant::now() {
            true => Err(Gone::Stale),
            false => Err(Gone::Away),
        }
    }
}

/// Why a sign of life was not taken.
enum Gone {
    /// The attempt is no longer this worker's, or nobody can say that it still is.
    Stale,
    /// The server was not there.
    Away,
}

/// Whether the server says that the attempt is not this worker's any more.
pub(crate) fn is_stale(error: &Error) -> bool {
    matches!(error.code(), Some(Code::StaleLease | Code::NotFound))
}
