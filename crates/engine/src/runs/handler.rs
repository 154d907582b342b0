//! Named handlers, and how one attempt runs.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Backoff, BlobId, Name, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::driver::effects::Payload;
use crate::driver::mailbox::Report;
use crate::error::Failure;
use crate::journal::Journal;
use crate::runs::context::Context;
use crate::runs::panic::catch_panic;
use crate::runs::stop::Stopped;

pub(super) type Work = Pin<Box<dyn Future<Output = Result<Bytes, Failure>> + Send>>;

/// Runs tasks of one kind.
#[derive(Clone)]
pub(crate) struct Handler {
    work: Arc<dyn Fn(Context, Bytes) -> Work + Send + Sync>,
    /// How long it may go on when it was told to stop, if it knows that better than the engine.
    grace: Option<Duration>,
}

impl Handler {
    pub(crate) fn new(work: impl Fn(Context, Bytes) -> Work + Send + Sync + 'static) -> Handler {
        Handler { work: Arc::new(work), grace: None }
    }

    pub(super) fn with_grace(self, grace: Duration) -> Handler {
        Handler { grace: Some(grace), ..self }
    }

    /// Starts the work on a payload.
    pub(super) fn start(&self, context: Context, payload: Bytes) -> Work {
        (self.work)(context, payload)
    }
}

/// All handlers of a program, by kind.
#[derive(Default)]
pub(crate) struct Handlers(Mutex<HashMap<Name, Handler>>);

impl Handlers {
    /// Replaces an earlier handler of the kind.
    pub(crate) fn insert(&self, kind: Name, handler: Handler) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, handler);
    }

    /// How long an attempt that was told to stop may take to do so, whichever handler it is of.
    pub(crate) fn longest_grace(&self, usual: Duration) -> Duration {
        let handlers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.values().filter_map(|handler| handler.grace).fold(usual, Duration::max)
    }

    pub(crate) fn remove(&self, kind: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
    }

    pub(crate) fn get(&self, kind: &Name) -> Option<Handler> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }
}

/// Wraps a function of typed values into one of bytes. A payload that does not fit is hopeless.
pub(crate) fn typed<P, R, F, Fut>(function: F) -> Handler
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    F: Fn(Context, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Failure>> + Send + 'static,
{
    let function = Arc::new(function);
    Handler::new(move |context, payload| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let payload: P = serde_json::from_slice(&payload)
                .map_err(|error| Failure::fatal(format!("the payload does not fit: {error}")))?;
            let result = function(context, payload).await?;
            let result = serde_json::to_vec(&result)
                .map_err(|error| Failure::fatal(format!("the result cannot be written: {error}")))?;
            Ok(result.into())
        })
    })
}

/// Runs one attempt to its end and reports that. After a stop signal it has `grace` to end by itself; then its future is
/// dropped, and only then the slot is free.
pub(crate) async fn run(
    handler: Handler,
    context: Context,
    journal: Journal,
    payload: Payload,
    grace: Duration,
    kept_max: usize,
) {
    let (handle, stop) = (context.handle().clone(), context.stop().clone());
    let (task, fence) = (context.task(), context.fence());
    let grace = handler.grace.unwrap_or(grace);
    let kept = OnceLock::new();
    let (outcome, result) = {
        let kept = &kept;
        let work = async move {
            let has_payload = !matches!(payload, Payload::Stored(None));
            let payload = match payload {
                Payload::Ready(payload) => payload,
                Payload::Stored(payload) => load(&journal, payload).await?,
            };
            if has_payload && payload.len() <= kept_max {
                kept.get_or_init(|| payload.clone());
            }
            handler.start(context, payload).await
        };
        let mut work = std::pin::pin!(work);
        let ended = tokio::select! {
            biased;
            ended = catch_panic(work.as_mut()) => Some(ended),
            _ = stop.wait() => tokio::time::timeout(grace, catch_panic(work.as_mut())).await.ok(),
        };
        match ended {
            None => (Outcome::Stopped, None),
            Some(Ok(Ok(result))) => (Outcome::Success, Some(result)),
            // It failed because it was stopped; what it says of that is not the task's own.
            Some(_) if stop.reason() == Some(Stopped::Shutdown) => (Outcome::Stopped, None),
            Some(Ok(Err(failure))) => {
                let output = failure.output_bytes();
                let Failure { error, retryable, .. } = failure;
                (Outcome::Failure { error: error.into(), retryable }, output)
            }
            Some(Err(panic)) => (Outcome::Failure { error: panic.to_string().into(), retryable: true }, None),
        }
    };
    if let Some(broadcast) = &handle.resources().broadcast {
        broadcast.flush(task).await;
    }
    handle.report(Report::Finish {
        task,
        fence,
        outcome,
        result,
        work: kept.into_inner(),
        at: Instant::now(),
    });
}

/// The pauses before a payload is asked for again.
const LOAD_BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));

/// The payload, as soon as the store can be reached; nothing is read as `null`.
async fn load(journal: &Journal, payload: Option<BlobId>) -> Result<Bytes, Failure> {
    let Some(id) = payload else { return Ok(Bytes::from_static(b"null")) };
    let mut backoff = LOAD_BACKOFF;
    loop {
        match journal.payload(id).await {
            Ok(Some(payload)) => return Ok(payload),
            Ok(None) => return Err(Failure::fatal("its payload is missing in the store")),
            Err(error) if error.kind() == laneway_store::ErrorKind::Corrupt => {
                return Err(Failure::fatal(error));
            }
            Err(_) => tokio::time::sleep(backoff.next_wait()).await,
        }
    }
}
