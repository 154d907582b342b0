//! Following the log: one task reads how far it goes, for all who wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::Backoff;
use laneway_store::{ErrorKind, Head, StoreError, Version};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::read::reaching;
use crate::store::AbortOnDrop;

/// The waits before a backend that failed is asked again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));

/// How far the log goes; `None`: not known yet.
pub(crate) type Known = Option<Result<Version, StoreError>>;

/// The task that follows the log, started for the first waiting caller.
#[derive(Default)]
pub(crate) struct Following(Mutex<Option<(watch::Sender<Known>, JoinHandle<()>)>>);

impl Following {
    pub(crate) fn subscribe<B: Backend>(&self, runtime: &Handle, backend: &Arc<B>) -> watch::Receiver<Known> {
        let mut following = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, task)) = &*following
            && !task.is_finished()
        {
            return known.subscribe();
        }
        let known = watch::Sender::new(None);
        let receiver = known.subscribe();
        let task = runtime.spawn(follow(Arc::clone(backend), known.clone()));
        *following = Some((known, task));
        receiver
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let following = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, task)) = following {
            task.abort();
        }
    }
}

/// Waits until the log has grown beyond a version.
pub(crate) async fn tail<B: Backend>(
    backend: Arc<B>,
    mut known: watch::Receiver<Known>,
    after: Version,
) -> Result<Version, StoreError> {
    loop {
        let latest = known.borrow_and_update().clone();
        match latest {
            Some(Err(error)) => return Err(error),
            Some(Ok(version)) if version > after => return Ok(version),
            // The follower may only be late.
            Some(Ok(version)) if version < after => {
                let head = reaching_apart(&backend, after).await?;
                if head.version > after {
                    return Ok(head.version);
                }
            }
            Some(Ok(_)) | None => {}
        }
        known.changed().await.map_err(|_| StoreError::closed(backend.name()))?;
    }
}

/// Asks in a task of its own: a caller may stop polling [`tail`] for a while, and must not hold the lock of a connection
/// meanwhile.
async fn reaching_apart<B: Backend>(backend: &Arc<B>, after: Version) -> Result<Head, StoreError> {
    let own = Arc::clone(backend);
    let answer = AbortOnDrop(tokio::spawn(async move { reaching(&*own, after).await }));
    answer.await.unwrap_or_else(|| Err(StoreError::closed(backend.name())))
}

/// Follows the log for as long as the store is open.
async fn follow<B: Backend>(backend: Arc<B>, known: watch::Sender<Known>) {
    let (mut follower, mut backoff) = (backend.follower(), BACKOFF);
    let mut last = None;
    loop {
        match backend.grown(&mut follower, last).await {
            Ok(version) => {
                backoff.reset();
                last = Some(version);
                announce(&known, Ok(version));
            }
            Err(error) => {
                // The log that comes back may be another one.
                last = None;
                backend.recent().clear();
                let is_fatal = error.kind() == ErrorKind::Corrupt;
                announce(&known, Err(error));
                if is_fatal {
                    return;
                }
                tokio::time::sleep(backoff.next_wait()).await;
            }
        }
    }
}

fn announce(known: &watch::Sender<Known>, news: Result<Version, StoreError>) {
    known.send_if_modified(|known| {
        let news = Some(news);
        let is_new = *known != news;
        *known = news;
        is_new
    });
}
