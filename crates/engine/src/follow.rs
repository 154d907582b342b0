//! Hears of what others append.

use std::sync::Arc;
use std::time::Duration;

use laneway_store::{ErrorKind, Store, StoreError, Version};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::tasks::Tasks;

/// How long to wait before a store that is away is asked again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Tells the loop when the log goes on without it. It ends with the value.
pub(crate) struct Follower {
    /// How far the loop has read; `None`: it has not begun.
    read: watch::Sender<Option<Version>>,
    /// One piece of news waits at most; the next is asked for when the loop has taken it.
    news: mpsc::Receiver<News>,
    task: JoinHandle<()>,
}

/// What a follower has to tell.
pub(crate) enum News {
    /// The log goes at least so far.
    Grown(Version),
    /// The store is away, or its log is not the one that we have read.
    Trouble(StoreError),
}

impl Follower {
    pub(crate) fn start(store: Arc<dyn Store>, tasks: &Tasks) -> Follower {
        let (told, news) = mpsc::channel(1);
        let read = watch::Sender::new(None);
        let task = tasks.spawn(follow(store, read.subscribe(), told));
        Follower { read, news, task }
    }

    /// Says how far the loop has read.
    pub(crate) fn has_read(&self, version: Version) {
        self.read.send_if_modified(|read| read.replace(version) != Some(version));
    }

    pub(crate) async fn news(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            // The runtime ends, and the loop with it.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(store: Arc<dyn Store>, mut read: watch::Receiver<Option<Version>>, told: mpsc::Sender<News>) {
    let mut pause = PAUSES.0;
    loop {
        let Ok(Some(after)) = read.wait_for(Option::is_some).await.map(|read| *read) else { return };
        let news = match store.tail(after).await {
            Ok(version) if Some(version) <= *read.borrow() => continue,
            Ok(version) => {
                pause = PAUSES.0;
                News::Grown(version)
            }
            Err(error) => News::Trouble(error),
        };
        let (grown, is_trouble) = match &news {
            News::Grown(version) => (*version, None),
            News::Trouble(error) => (after, Some(error.kind())),
        };
        if told.send(news).await.is_err() || is_trouble == Some(ErrorKind::Corrupt) {
            return;
        }
        match is_trouble {
            None => {
                if read.wait_for(|read| *read >= Some(grown)).await.is_err() {
                    return;
                }
            }
            Some(_) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }
}
