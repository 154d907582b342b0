//! A worker at work: claims, starts attempts, counts how they ended, and ends in good order.

use std::sync::Arc;
use std::time::Duration;

use laneway_protocol::{ClaimAnswer, ClaimBody, ClaimedTask};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::attempting::Ended;
use crate::error::Error;
use crate::patience::{doubled, jittered};
use crate::worker::{Tally, Worker};

const BACK_OFF_FIRST: Duration = Duration::from_millis(200);
/// No wait between two claims is longer, however long the server is away.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// How long a claim waits whose failure is the end.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// How much longer than a claim waits its answer may take, when the worker is to stop.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);
/// The most tasks that one claim may bring.
const CLAIM_MAX: usize = 1000;

/// A worker at work.
pub(crate) struct Crew {
    worker: Arc<Worker>,
    slots: Arc<Semaphore>,
    /// The grace of a shutdown is over.
    must_end: CancellationToken,
    /// At most `concurrency` of them: each holds a slot.
    attempts: JoinSet<Ended>,
    pub(crate) tally: Tally,
}

impl Crew {
    pub(crate) fn new(worker: Worker) -> Crew {
        Crew {
            slots: Arc::new(Semaphore::new(worker.concurrency)),
            worker: Arc::new(worker),
            must_end: CancellationToken::new(),
            attempts: JoinSet::new(),
            tally: Tally::default(),
        }
    }

    /// Claims until it is told to stop, or nothing is left to do; an error is one that waiting would not cure.
    pub(crate) async fn claim(&mut self, stopping: &CancellationToken) -> Result<(), Error> {
        let mut away = 0u32;
        let mut has_worked = false;
        loop {
            let Some(slots) = stopping.run_until_cancelled(self.free_slots()).await else { return Ok(()) };
            let asked = Instant::now();
            tracing::debug!(max = slots.len(), "asks for work");
            let wait = match self.answer(slots.len(), stopping).await {
                Ok(answer) if !answer.tasks.is_empty() => {
                    (has_worked, away) = (true, 0);
                    self.start(answer.tasks, slots, asked);
                    continue;
                }
                _ if stopping.is_cancelled() => return Ok(()),
                // A server that drains answers at once, and would be asked again at once.
                Ok(_) if asked.elapsed() < self.poll() / 2 => None,
                Ok(_) if self.worker.until_idle && self.attempts.is_empty() => return Ok(()),
                Ok(_) => {
                    (has_worked, away) = (true, 0);
                    continue;
                }
                Err(error) if error.is_away() || has_worked => {
                    tracing::warn!(%error, "no work can be claimed for now");
                    error.problem().and_then(|problem| problem.retry_after_ms).map(Duration::from_millis)
                }
                Err(error) => return Err(error),
            };
            drop(slots);
            let own = jittered(doubled(BACK_OFF_FIRST, away, BACK_OFF_MAX));
            let wait = sleep(wait.unwrap_or(own).clamp(own, BACK_OFF_MAX));
            if stopping.run_until_cancelled(wait).await.is_none() {
                return Ok(());
            }
            away = away.saturating_add(1);
        }
    }

    /// What the server hands out. One that was asked is heard although the worker is to stop meanwhile: what it has
    /// handed out by then would be nobody's until its lease lapses.
    async fn answer(&self, max: usize, stopping: &CancellationToken) -> Result<ClaimAnswer, Error> {
        let request = self.request(max);
        let mut answer = std::pin::pin!(self.worker.client.claim(&request));
        if let Some(answer) = stopping.run_until_cancelled(answer.as_mut()).await {
            return answer;
        }
        tracing::info!("a claim is under way; what it brings is still done");
        let heard = tokio::time::timeout(self.poll() + ANSWER_MARGIN, answer).await;
        heard.unwrap_or_else(|_| Ok(ClaimAnswer { tasks: Vec::new() }))
    }

    fn poll(&self) -> Duration {
        if self.worker.until_idle { self.worker.poll.min(IDLE_POLL) } else { self.worker.poll }
    }

    fn request(&self, max: usize) -> ClaimBody {
        let worker = &self.worker;
        ClaimBody {
            ids: Vec::new(),
            kinds: worker.handlers.keys().cloned().collect(),
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

    fn start(&mut self, tasks: Vec<ClaimedTask>, slots: Vec<OwnedSemaphorePermit>, asked: Instant) {
        for (task, slot) in tasks.into_iter().zip(slots) {
            self.tally.claimed += 1;
            let (worker, must_end) = (Arc::clone(&self.worker), self.must_end.clone());
            self.attempts.spawn(async move {
                let ended = worker.attempt(task, asked, must_end).await;
                drop(slot);
                ended
            });
        }
    }

    fn count(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        match ended {
            Ok(Ended::Completed) => self.tally.completed += 1,
            Ok(Ended::Failed) => self.tally.failed += 1,
            Ok(Ended::Stale) => self.tally.stale += 1,
            Ok(Ended::Left) => self.tally.left += 1,
            Err(error) => tracing::error!(%error, "an attempt came to no end"),
        }
    }

    /// Lets what runs end; when the grace is over it is told to, and when that takes too long it is dropped.
    pub(crate) async fn drain(&mut self) {
        let worker = Arc::clone(&self.worker);
        let running = self.attempts.len();
        if running > 0 {
            tracing::info!(running, "no more work is claimed; waits for what runs");
        }
        if tokio::time::timeout(worker.drain_grace, self.all_ended()).await.is_ok() {
            return;
        }
        self.must_end.cancel();
        // Twice: once for the handler, once for the server to hear of it.
        if tokio::time::timeout(worker.stop_grace * 2, self.all_ended()).await.is_err() {
            tracing::error!(left = self.attempts.len(), "ends without having told how these went");
            self.attempts.shutdown().await;
        }
    }

    async fn all_ended(&mut self) {
        while let Some(ended) = self.attempts.join_next().await {
            self.count(ended);
        }
    }
}
