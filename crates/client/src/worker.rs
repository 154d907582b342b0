//! The loop of a worker: claims, runs, keeps leases, reports, and ends in good order.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_protocol::{ClaimBody, ClaimedTask};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, Failure, StopReason};
use crate::client::Client;
use crate::error::Error;
use crate::lease::Lease;
use crate::outcome::{self, Told};
use crate::patience::{doubled, jittered};

const BACK_OFF_FIRST: Duration = Duration::from_millis(200);
/// No wait between two claims is longer, however long the server is away.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);
/// The most tasks that one claim may bring.
const CLAIM_MAX: usize = 1000;

type Outcome = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;
type Handler = Arc<dyn Fn(Attempt) -> Outcome + Send + Sync>;

/// Does tasks of some kinds that wait in some lanes.
///
/// ```no_run
/// # async fn sample(client: laneway_client::Client) -> Result<(), laneway_client::Error> {
/// use laneway_client::{Attempt, Failure, Worker};
/// use serde_json::json;
///
/// let tally = Worker::new(client, "resizer-1")
///     .lanes(["external"])
///     .concurrency(4)
///     .handler("resize", |attempt: Attempt| async move {
///         let path = attempt.task().payload["path"].as_str();
///         let path = path.ok_or_else(|| Failure::fatal("payload.path must be a text"))?;
///         attempt.progress(json!({ "percent": 50 }));
///         Ok(json!({ "resized": path }))
///     })
///     .run(async { drop(tokio::signal::ctrl_c().await) })
///     .await?;
/// println!("{tally}");
/// # Ok(())
/// # }
/// ```
///
/// - At most `concurrency` attempts run at once; an attempt counts until the server has heard how it went.
/// - A lease is renewed until the attempt ends. When it lapses, or the task is cancelled or takes too long, the attempt
///   is told to stop, and dropped when `stop_grace` is over.
/// - When the server is away, claims back off up to 30 s with jitter, and outcomes are kept and told later.
/// - When `shutdown` is ready nothing more is claimed, and what runs may end within `drain_grace`. What does not is
///   stopped and left to others, who get it when its lease lapses.
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    client: Client,
    name: String,
    lanes: Vec<String>,
    handlers: BTreeMap<String, Handler>,
    concurrency: usize,
    lease: Duration,
    poll: Duration,
    stop_grace: Duration,
    drain_grace: Duration,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks claimed.
    pub claimed: u64,
    /// Attempts that succeeded, as the server has heard.
    pub completed: u64,
    /// Attempts that did not, as the server has heard.
    pub failed: u64,
    /// Attempts that were no longer this worker's when they ended.
    pub stale: u64,
    /// Attempts that the shutdown cut off: others get them when their leases lapse.
    pub left: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { claimed, completed, failed, stale, left } = self;
        write!(
            f,
            "{claimed} claimed, {completed} completed, {failed} failed, {stale} stale, {left} left to others"
        )
    }
}

impl Worker {
    /// A worker of this name, which should be another for each process.
    pub fn new(client: Client, name: impl Into<String>) -> Worker {
        Worker {
            client,
            name: name.into(),
            lanes: Vec::new(),
            handlers: BTreeMap::new(),
            concurrency: 1,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(20),
            stop_grace: Duration::from_secs(10),
            drain_grace: Duration::from_secs(30),
        }
    }

    /// From which home lanes it takes work: names or patterns.
    pub fn lanes(mut self, lanes: impl IntoIterator<Item = impl Into<String>>) -> Worker {
        self.lanes.extend(lanes.into_iter().map(Into::into));
        self
    }

    /// How tasks of a kind are done. Only kinds with a handler are claimed.
    pub fn handler<F, R>(mut self, kind: impl Into<String>, handler: F) -> Worker
    where
        F: Fn(Attempt) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        self.handlers.insert(kind.into(), Arc::new(move |attempt| Box::pin(handler(attempt))));
        self
    }

    /// How many attempts run at once. Default 1.
    pub fn concurrency(mut self, concurrency: usize) -> Worker {
        self.concurrency = concurrency;
        self
    }

    /// How long the server waits for a sign of life. Default 30 s.
    pub fn lease(mut self, lease: Duration) -> Worker {
        self.lease = lease;
        self
    }

    /// How long one claim waits for work, at most a minute. Default 20 s.
    pub fn poll(mut self, poll: Duration) -> Worker {
        self.poll = poll;
        self
    }

    /// How long a handler that was told to stop may go on before it is dropped. Default 10 s.
    pub fn stop_grace(mut self, grace: Duration) -> Worker {
        self.stop_grace = grace;
        self
    }

    /// How long what runs at a shutdown may go on before it is told to stop. Default 30 s.
    pub fn drain_grace(mut self, grace: Duration) -> Worker {
        self.drain_grace = grace;
        self
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = [
            (self.lanes.is_empty(), "a worker needs at least one lane to claim from"),
            (self.handlers.is_empty(), "a worker needs a handler for at least one kind"),
            (self.concurrency == 0, "the concurrency of a worker must be at least 1"),
            (self.lease < Duration::from_millis(100), "the lease of a worker must be at least 100 ms"),
            (self.poll > Duration::from_secs(60), "a claim waits for at most a minute"),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(Error::Invalid((*why).to_owned())),
            None => Ok(()),
        }
    }

    /// Works until `shutdown` is ready, then ends in good order.
    ///
    /// An error means that the worker never got to work: the server refuses its claims, and would refuse them again.
    /// A server that is away, now or later, is waited for. Dropping the future drops all attempts.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Tally, Error> {
        self.check()?;
        let mut crew = Crew {
            slots: Arc::new(Semaphore::new(self.concurrency)),
            worker: Arc::new(self),
            must_end: CancellationToken::new(),
            attempts: JoinSet::new(),
            tally: Tally::default(),
        };
        let claimed = {
            let mut shutdown = std::pin::pin!(shutdown);
            tokio::select! {
                biased;
                () = shutdown.as_mut() => Ok(()),
                error = crew.claim() => Err(error),
            }
        };
        crew.drain().await;
        claimed.map(|()| crew.tally)
    }
}

/// A worker at work.
struct Crew {
    worker: Arc<Worker>,
    slots: Arc<Semaphore>,
    /// The grace of a shutdown is over.
    must_end: CancellationToken,
    /// At most `concurrency` of them: each holds a slot.
    attempts: JoinSet<Ended>,
    tally: Tally,
}

/// How an attempt ended.
enum Ended {
    Completed,
    Failed,
    Stale,
    Left,
}

impl Crew {
    /// Claims for ever; an error is one that waiting would not cure.
    async fn claim(&mut self) -> Error {
        let mut away = 0u32;
        let mut has_worked = false;
        loop {
            let slots = self.free_slots().await;
            let asked = Instant::now();
            let wait = match self.worker.client.claim(&self.request(slots.len())).await {
                Ok(answer) if !answer.tasks.is_empty() => {
                    (has_worked, away) = (true, 0);
                    self.start(answer.tasks, slots, asked);
                    continue;
                }
                // A server that drains answers at once, and would be asked again at once.
                Ok(_) if asked.elapsed() < self.worker.poll / 2 => None,
                Ok(_) => {
                    (has_worked, away) = (true, 0);
                    continue;
                }
                Err(error) if error.is_away() || has_worked => {
                    tracing::warn!(%error, "no work can be claimed for now");
                    error.problem().and_then(|problem| problem.retry_after_ms).map(Duration::from_millis)
                }
                Err(error) => return error,
            };
            drop(slots);
            let own = jittered(doubled(BACK_OFF_FIRST, away, BACK_OFF_MAX));
            sleep(wait.unwrap_or(own).clamp(own, BACK_OFF_MAX)).await;
            away = away.saturating_add(1);
        }
    }

    fn request(&self, max: usize) -> ClaimBody {
        let worker = &self.worker;
        ClaimBody {
            worker: worker.name.clone(),
            lanes: worker.lanes.clone(),
            kinds: worker.handlers.keys().cloned().collect(),
            max: u32::try_from(max).ok(),
            wait_ms: Some(worker.poll.as_millis() as u64),
            lease_ms: Some(worker.lease.as_millis() as u64),
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
    async fn drain(&mut self) {
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

impl Worker {
    /// One attempt, from its start until the server has heard how it went.
    async fn attempt(&self, task: ClaimedTask, asked: Instant, must_end: CancellationToken) -> Ended {
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
            (Some(StopReason::LeaseLost), _) => {
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
        let told = outcome::tell(&self.client, task, outcome).await;
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
