//! A worker: what it takes, how it does it, and what it has done.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, Failure};
use crate::client::Client;
use crate::crew::Crew;
use crate::error::Error;

pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Attempt) -> Outcome + Send + Sync>;

/// Does tasks of some kinds that wait in some lanes.
///
/// ```no_run
/// # async fn sample() -> Result<(), laneway_client::Error> {
/// use laneway_client::{Attempt, Client, Failure, Worker};
/// use serde_json::json;
///
/// let client = Client::new("http://127.0.0.1:7717", None)?;
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
/// - When `shutdown` is ready nothing more is claimed (a claim that is under way is heard, and what it brings is done), and
///   what runs may end within `drain_grace`. What does not is stopped and left to others, who get it when its lease lapses.
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) lanes: Vec<String>,
    pub(crate) handlers: BTreeMap<String, Handler>,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) poll: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) drain_grace: Duration,
    pub(crate) until_idle: bool,
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
            poll: Duration::from_secs(5),
            stop_grace: Duration::from_secs(10),
            drain_grace: Duration::from_secs(30),
            until_idle: false,
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

    /// How long one claim waits for work: 100 ms to a minute. Default 5 s. A worker that is to stop waits for so long
    /// for the claim that is under way.
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

    /// Ends when nothing runs and a claim has waited in vain, rather than working for ever.
    pub fn until_idle(mut self, until_idle: bool) -> Worker {
        self.until_idle = until_idle;
        self
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
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(Error::Invalid((*why).to_owned())),
            None => Ok(()),
        }
    }

    /// Works until `shutdown` is ready or, if asked, nothing is left to do; then ends in good order.
    ///
    /// An error means that the worker never got to work: the server refuses its claims, and would refuse them again.
    /// A server that is away, now or later, is waited for. Dropping the future drops all attempts.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Tally, Error> {
        self.check()?;
        let mut crew = Crew::new(self);
        let stopping = CancellationToken::new();
        let told_to_stop = async {
            shutdown.await;
            stopping.cancel();
            std::future::pending::<()>().await;
        };
        let claimed = tokio::select! {
            biased;
            () = told_to_stop => Ok(()),
            claimed = crew.claim(&stopping) => claimed,
        };
        crew.drain().await;
        claimed.map(|()| crew.tally)
    }
}
