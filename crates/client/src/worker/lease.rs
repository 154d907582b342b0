//! Keeps the lease of one attempt alive, and stops the attempt when it should end.

use std::sync::Arc;
use std::time::Duration;

use laneway_protocol::{Backoff, Code, HeartbeatAnswer, HeartbeatBody};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::attempt::{Attempt, Output, Shared, StopCause};
use crate::client::Client;
use crate::error::Error;
use crate::retry::jittered;

/// The shortest pause before a heartbeat that the handler caused.
const BEAT_MIN: Duration = Duration::from_millis(500);
/// The shortest pause while the attempt produces text.
const DELTA_MIN: Duration = Duration::from_millis(50);
const RETRY_FIRST: Duration = Duration::from_millis(100);

/// The lease of one attempt.
pub(super) struct Lease<'a> {
    pub(super) client: &'a Client,
    pub(super) attempt: &'a Attempt,
    pub(super) length: Duration,
    /// When the attempt has taken too long.
    pub(super) times_out: Option<Instant>,
    /// When the claim was sent. A claim that waited for work does not show when the lease began, so the first heartbeat
    /// goes out at once.
    pub(super) claimed: Instant,
    /// When it lapses. Counted from before the request that renewed it, so that it ends before the server's does.
    pub(super) until: Instant,
}

impl Lease<'_> {
    /// Sends heartbeats until the attempt must end; then waits for ever.
    pub(super) async fn keep(&mut self) {
        let shared = Arc::clone(self.attempt.shared());
        let mut failed = 0;
        let mut beaten = self.claimed;
        loop {
            let due = beaten + self.pause(failed);
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
                        shared.stop(StopCause::Cancelled);
                    }
                }
                Err(Missed::Stale) => {
                    shared.stop(StopCause::LeaseLost);
                    break;
                }
                Err(Missed::Away) => failed += 1,
            }
        }
        std::future::pending().await
    }

    fn pause(&self, failed: u32) -> Duration {
        let beat = self.length / 3;
        match failed {
            0 => beat,
            failed => jittered(Backoff::new(RETRY_FIRST, beat).wait_after(failed)),
        }
    }

    /// Waits for the next heartbeat; `false`: there is none, because the attempt is out of time.
    async fn wait(&self, shared: &Shared, beaten: Instant, due: Instant) -> bool {
        let ends = self.times_out.map_or(self.until, |at| at.min(self.until));
        let urgent = async {
            shared.urgent.notified().await;
            sleep_until(beaten + if shared.has_delta() { DELTA_MIN } else { BEAT_MIN }).await;
        };
        tokio::select! {
            () = sleep_until(due.min(ends)) => {}
            () = urgent => {}
            () = shared.wanted.notified() => {}
        }
        let now = Instant::now();
        let cause = if self.times_out.is_some_and(|at| at <= now) {
            StopCause::TimedOut
        } else if self.until <= now {
            StopCause::LeaseLost
        } else {
            return true;
        };
        shared.stop(cause);
        false
    }

    /// Sends the output that is left when the handler has ended: watchers get it before the end.
    pub(super) async fn flush(&self) {
        let shared = self.attempt.shared();
        if shared.has_output() && shared.cause() != Some(StopCause::LeaseLost) {
            // Output is not stored, so its loss does not matter.
            drop(self.beat(shared).await);
        }
    }

    async fn beat(&self, shared: &Shared) -> Result<HeartbeatAnswer, Missed> {
        let task = self.attempt.task();
        let output = shared.take_output();
        let takes_steering = (task.session.is_some() && shared.takes_steering()).then_some(true);
        // Named again until an answer confirms them.
        let steered = takes_steering.map(|_| shared.taken());
        let Output { progress, delta, usage } = output.clone();
        let delta = Some(delta).filter(|text| !text.is_empty());
        let body = HeartbeatBody { fence: task.fence, progress, delta, usage, takes_steering, steered };
        // An answer after the end of the lease is worth nothing.
        let answer = timeout_at(self.until, self.client.heartbeat(&task.id, &body)).await;
        let error = match answer {
            Ok(Ok(mut answer)) => {
                let confirmed = body.steered.as_deref().unwrap_or_default();
                shared.on_heartbeat(confirmed, std::mem::take(&mut answer.steering));
                return Ok(answer);
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        shared.return_output(output);
        let is_stale = error.as_ref().is_some_and(is_stale);
        Err(if is_stale || self.until <= Instant::now() { Missed::Stale } else { Missed::Away })
    }
}

/// Why a heartbeat did not renew the lease.
enum Missed {
    /// The attempt is no longer this worker's, or may no longer be.
    Stale,
    /// The server was not there.
    Away,
}

/// Whether the server says that the attempt is no longer this worker's.
pub(super) fn is_stale(error: &Error) -> bool {
    matches!(error.code(), Some(Code::StaleLease | Code::NotFound))
}
