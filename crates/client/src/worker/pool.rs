//! The attempts of a worker: claims, starts them, counts how they ended, and drains them.

use std::sync::Arc;
use std::time::Duration;

use laneway_protocol::{Backoff, ClaimAnswer, ClaimBody, ClaimedTask};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::run_attempt::AttemptEnd;
use super::{Tally, Worker};
use crate::error::Error;
use crate::retry::jittered;

/// The longest wait between two claims, however long the server is away.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), BACKOFF_MAX);
/// How long a claim waits when finding no work ends the worker.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// How much longer than its claim an answer may take when the worker stops.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);
/// The most tasks that one claim may bring.
const CLAIM_MAX: usize = 1000;

/// The attempts of a worker.
pub(super) struct Pool {
    worker: Arc<Worker>,
    slots: Arc<Semaphore>,
    /// The grace of a shutdown is over.
    must_end: CancellationToken,
    /// At most `concurrency` of them: each holds a slot.
    attempts: JoinSet<AttemptEnd>,
    pub(super) tally: Tally,
}

impl Pool {
    pub(super) fn new(worker: Worker) -> Pool {
        Pool {
            slots: Arc::new(Semaphore::new(worker.concurrency)),
            worker: Arc::new(worker),
            must_end: CancellationToken::new(),
            attempts: JoinSet::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Claims until `stopping` is cancelled or nothing is left to do. An error is one that waiting would not cure.
    pub(super) async fn claim(&mut self, stopping: &CancellationToken) -> Result<(), Error> {
        let mut backoff = BACKOFF;
        let mut has_worked = false;
        loop {
            let Some(slots) = stopping.run_until_cancelled(self.free_slots()).await else { return Ok(()) };
            let claimed = Instant::now();
            tracing::debug!(max = slots.len(), "asks for work");
            let named = match self.answer(slots.len(), stopping).await {
                Ok(answer) if !answer.tasks.is_empty() => {
                    has_worked = true;
                    backoff.reset();
                    self.start(answer.tasks, slots, claimed);
                    continue;
                }
                _ if stopping.is_cancelled() => return Ok(()),
                // A draining server answers at once, so this waits before it asks again.
                Ok(_) if claimed.elapsed() < self.poll() / 2 => None,
                Ok(_) if self.worker.until_idle && self.attempts.is_empty() => return Ok(()),
                Ok(_) => {
                    has_worked = true;
                    backoff.reset();
                    continue;
                }
                Err(error) if error.is_away() || has_worked => {
                    tracing::warn!(%error, "no work can be claimed for now");
                    error.problem().and_then(|problem| problem.retry_after_ms).map(Duration::from_millis)
                }
                Err(error) => return Err(error),
            };
            drop(slots);
            let own = jittered(backoff.next_wait());
            let wait = sleep(named.unwrap_or(own).clamp(own, BACKOFF_MAX));
            if stopping.run_until_cancelled(wait).await.is_none() {
                return Ok(());
            }
        }
    }

    /// The answer to a claim. A worker that stops still waits for it: the tasks in it would otherwise wait for their
    /// leases to lapse.
    async fn answer(&self, max: usize, stopping: &CancellationToken) -> Result<ClaimAnswer, Error> {
        let request = self.request(max);
        let mut answer = std::pin::pin!(self.worker.client.claim(&request));
        if let Some(answer) = stopping.run_until_cancelled(answer.as_mut()).await {
            return answer;
        }
        tracing::info!("a claim is under way; the worker still runs its tasks");
        let answer = tokio::time::timeout(self.poll() + ANSWER_MARGIN, answer).await;
        answer.unwrap_or_else(|_| Ok(ClaimAnswer { tasks: Vec::new() }))
    }

    fn poll(&self) -> Duration {
        if self.worker.until_idle { self.worker.poll.min(IDLE_POLL) } else { self.worker.poll }
    }

    fn request(&self, max: usize) -> ClaimBody {
        let worker = &self.worker;
        ClaimBody {
            ids: Vec::new(),
            kinds: worker.kinds(),
            max: u32::try_from(max).ok(),
            wait_ms: Some(self.poll().as_millis() as u64),
            lease_ms: Some(worker.lease.as_millis() as u64),
            ..ClaimBody::new(worker.name.as_str(), worker.lanes.clone())
        }
    }

    /// All slots that are free, at least one.
    async fn free_slots(&mut self) -> Vec<OwnedSemaphorePermit> {
        let mut slots = Vec::new();
        // The semaphore is never closed.
        slots.extend(Arc::clone(&self.slots).acquire_owned().await.ok());
        while slots.len() < CLAIM_MAX
            && let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned()
        {
            slots.push(slot);
        }
        while let Some(ended) = self.attempts.try_join_next() {
            self.count(ended);
        }
        slots
    }

    fn start(&mut self, tasks: Vec<ClaimedTask>, slots: Vec<OwnedSemaphorePermit>, claimed: Instant) {
        for (task, slot) in tasks.into_iter().zip(slots) {
            self.tally.claimed += 1;
            let (worker, must_end) = (Arc::clone(&self.worker), self.must_end.clone());
            self.attempts.spawn(async move {
                let ended = worker.run_attempt(task, claimed, must_end).await;
                drop(slot);
                ended
            });
        }
    }

    fn count(&mut self, ended: Result<AttemptEnd, tokio::task::JoinError>) {
        match ended {
            Ok(AttemptEnd::Completed) => self.tally.completed += 1,
            Ok(AttemptEnd::Failed) => self.tally.failed += 1,
            Ok(AttemptEnd::Stale) => self.tally.stale += 1,
            Ok(AttemptEnd::Left) => self.tally.left += 1,
            Err(error) => tracing::error!(%error, "an attempt has no end"),
        }
    }

    /// Lets the attempts end. After the grace they are asked to stop, and after another they are dropped.
    pub(super) async fn drain(&mut self) {
        let worker = Arc::clone(&self.worker);
        let running = self.attempts.len();
        if running > 0 {
            tracing::info!(running, "claims no more work; waits for what runs");
        }
        if tokio::time::timeout(worker.drain_grace, self.all_ended()).await.is_ok() {
            return;
        }
        self.must_end.cancel();
        // Twice: once for the handler, once for its report.
        if tokio::time::timeout(worker.stop_grace * 2, self.all_ended()).await.is_err() {
            tracing::error!(left = self.attempts.len(), "ends without having reported these");
            self.attempts.shutdown().await;
        }
    }

    async fn all_ended(&mut self) {
        while let Some(ended) = self.attempts.join_next().await {
            self.count(ended);
        }
    }
}
