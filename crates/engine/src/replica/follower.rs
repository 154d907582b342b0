//! Follows what other replicas append.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::Backoff;
use laneway_store::{Answer, ErrorKind, Store, StoreError, Version};

/// The pauses before a store that is away is asked again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// Tells the loop when the log has grown. The loop itself waits for the store: a task in between would cost time that a
/// replica with the append turn does not have.
pub(crate) struct Follower {
    store: Arc<dyn Store>,
    /// How far the loop has read; `None`: it has not begun.
    read: Option<Version>,
    /// The version that the last news named. There is no more news until the loop has read that far.
    told: Option<Version>,
    /// What the store was asked and has not answered.
    asked: Option<Answer<'static, Version>>,
    /// How long to wait before the next question, after so much trouble.
    pause: Option<Duration>,
    backoff: Backoff,
    /// What was read cannot be understood, so that nothing more is asked.
    is_broken: bool,
}

/// What a follower has to tell.
pub(crate) enum News {
    /// The log goes at least so far.
    Grown(Version),
    /// The store is away, or its log is not the one that we have read.
    Trouble(StoreError),
}

impl Follower {
    pub(crate) fn new(store: Arc<dyn Store>) -> Follower {
        Follower {
            store,
            read: None,
            told: None,
            asked: None,
            pause: None,
            backoff: BACKOFF,
            is_broken: false,
        }
    }

    /// Says how far the loop has read.
    pub(super) fn has_read(&mut self, version: Version) {
        if self.read.is_some_and(|read| version < read) {
            // The log is another one, and the question was about the former.
            (self.asked, self.told) = (None, None);
        }
        self.read = Some(version);
    }

    /// The next news. Cancel safe.
    pub(super) async fn news(&mut self) -> News {
        loop {
            let may_ask = !self.is_broken && self.told <= self.read;
            let Some(read) = self.read.filter(|_| may_ask) else {
                return std::future::pending().await;
            };
            let (store, pause) = (&self.store, self.pause);
            let asked = self.asked.get_or_insert_with(|| {
                let store = Arc::clone(store);
                Box::pin(async move {
                    if let Some(pause) = pause {
                        tokio::time::sleep(pause).await;
                    }
                    store.tail(read).await
                })
            });
            let told = asked.await;
            self.asked = None;
            match told {
                Ok(version) => {
                    self.pause = None;
                    self.backoff.reset();
                    if Some(version) > self.read {
                        self.told = Some(version);
                        return News::Grown(version);
                    }
                }
                Err(error) => {
                    self.is_broken = error.kind() == ErrorKind::Corrupt;
                    self.pause = Some(self.backoff.next_wait());
                    return News::Trouble(error);
                }
            }
        }
    }
}
