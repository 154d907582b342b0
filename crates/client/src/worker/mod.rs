//! A worker: which tasks it claims, how it runs them, and a tally of them.

mod attempt;
mod lease;
mod listener;
mod pool;
mod report;
mod run_attempt;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::error::Error;
pub use attempt::{Attempt, AttemptFailure, StopCause};
use listener::Running;
use pool::Pool;

/// The kind of the handler that runs tasks of all other kinds.
const ANY_KIND: &str = "*";

type Outcome = Pin<Box<dyn Future<Output = Result<Value, AttemptFailure>> + Send>>;
type Handler = Arc<dyn Fn(Attempt) -> Outcome + Send + Sync>;

/// Runs tasks of some kinds that wait in some lanes.
///
/// ```no_run
/// # async fn sample() -> Result<(), laneway_client::Error> {
/// use laneway_client::{Attempt, AttemptFailure, Client, Worker};
/// use serde_json::json;
///
/// let client = Client::new("http://127.0.0.1:7717", None)?;
/// let tally = Worker::new(client, "resizer-1")
///     .lanes(["external"])
///     .concurrency(4)
///     .handler("resize", |attempt: Attempt| async move {
///         let path = attempt.task().payload["path"].as_str();
///         let path = path.ok_or_else(|| AttemptFailure::fatal("payload.path must be a text"))?;
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
/// - At most `concurrency` attempts run at once. An attempt counts until the server has accepted its report.
/// - The worker renews a lease until the attempt ends. When it lapses, or the task is cancelled or takes too long, the
///   worker asks the attempt to stop, and drops it when `stop_grace` is over.
/// - The worker keeps one event stream open, on which it hears at once of cancels and of messages for its turns.
/// - When the server is away, claims back off up to 30 s with jitter, and outcomes are kept and reported later.
/// - When `shutdown` is ready, the worker claims nothing more, but runs the tasks of a claim that is under way. Attempts may
///   end within `drain_grace`. The others are stopped, and other workers get them when their leases lapse.
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
    until_idle: bool,
    running: Running,
}

/// How many tasks a worker has run, and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks claimed.
    pub claimed: u64,
    /// Attempts whose success the server has accepted.
    pub completed: u64,
    /// Attempts whose failure the server has accepted.
    pub failed: u64,
    /// Attempts that were no longer this worker's when they ended.
    pub stale: u64,
    /// Attempts that the shutdown cut off: other workers get them when their leases lapse.
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
    /// A worker with this name, which should differ for each process.
    pub fn new(client: Client, name: impl Into<String>) -> Worker {
        Worker {
            client,
            name: name.into(),
            lanes: Vec::new(),
            handlers: BTreeMap::new(),
            concurrency: 1,
            lease: Duration::from_secs(10),
            poll: Duration::from_secs(5),
            stop_grace: Duration::from_secs(10),
            drain_grace: Duration::from_secs(30),
            until_idle: false,
            running: Running::default(),
        }
    }

    /// The home lanes to claim from: names or patterns.
    pub fn lanes(mut self, lanes: impl IntoIterator<Item = impl Into<String>>) -> Worker {
        self.lanes.extend(lanes.into_iter().map(Into::into));
        self
    }

    /// Runs tasks of a kind. Only kinds with a handler are claimed. The handler of `*` runs all other kinds.
    pub fn handler<F, R>(mut self, kind: impl Into<String>, handler: F) -> Worker
    where
        F: Fn(Attempt) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, AttemptFailure>> + Send + 'static,
    {
        self.handlers.insert(kind.into(), Arc::new(move |attempt| Box::pin(handler(attempt))));
        self
    }

    /// How many attempts run at once. Default 1.
    pub fn concurrency(mut self, concurrency: usize) -> Worker {
        self.concurrency = concurrency;
        self
    }

    /// How long an attempt may go without a heartbeat. Default 10 s.
    pub fn lease(mut self, lease: Duration) -> Worker {
        self.lease = lease;
        self
    }

    /// How long one claim waits for work: 100 ms to a minute. Default 5 s. A worker that stops waits as long for the
    /// claim that is under way.
    pub fn poll(mut self, poll: Duration) -> Worker {
        self.poll = poll;
        self
    }

    /// How long a handler may go on after it was asked to stop. Default 10 s.
    pub fn stop_grace(mut self, grace: Duration) -> Worker {
        self.stop_grace = grace;
        self
    }

    /// How long attempts may go on after a shutdown began. Default 30 s.
    pub fn drain_grace(mut self, grace: Duration) -> Worker {
        self.drain_grace = grace;
        self
    }

    /// Ends when nothing runs and a claim has brought nothing.
    pub fn until_idle(mut self, until_idle: bool) -> Worker {
        self.until_idle = until_idle;
        self
    }

    /// The kinds to claim; none means all.
    fn kinds(&self) -> Vec<String> {
        if self.handlers.contains_key(ANY_KIND) {
            return Vec::new();
        }
        self.handlers.keys().cloned().collect()
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = [
            (self.lanes.is_empty(), "a worker needs at least one lane to claim from"),
            (self.handlers.is_empty(), "a worker needs a handler for at least one kind"),
            (self.concurrency == 0, "the concurrency of a worker must be at least 1"),
            (self.lease < Duration::from_millis(100), "the lease of a worker must be at least 100 ms"),
            (self.poll < Duration::from_millis(100), "a claim waits for at least 100 ms"),
            (self.poll > Duration::from_secs(60), "a claim waits for at most a minute"),
        ];
        let first = wrong.into_iter().find(|(is_wrong, _)| *is_wrong);
        first.map_or(Ok(()), |(_, why)| Err(Error::Invalid(why.to_owned())))
    }

    /// Works until `shutdown` is ready or, if asked, nothing is left to do; then drains.
    ///
    /// An error means that the server refuses the first claim, and would refuse it again. The worker waits for a server
    /// that is away. Dropping the future drops all attempts.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Tally, Error> {
        self.check()?;
        let mut pool = Pool::new(self);
        let stopping = CancellationToken::new();
        let stop = async {
            shutdown.await;
            stopping.cancel();
            std::future::pending::<()>().await;
        };
        let listening = Arc::clone(pool.worker());
        let work = async {
            let claimed = tokio::select! {
                biased;
                () = stop => Ok(()),
                claimed = pool.claim(&stopping) => claimed,
            };
            pool.drain().await;
            claimed.map(|()| pool.tally)
        };
        tokio::select! {
            tally = work => tally,
            never = listening.listen() => match never {},
        }
    }
}
