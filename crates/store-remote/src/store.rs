//! A store on any backend that is reached over a network.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{
    Answer, Append, Author, Durability, Head, HistoryQuery, Retention, Store, StoreError, StoredBatch,
    StoredFinished, StoredSnapshot, UNREAD_MAX, Version,
};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::follow::{Following, tail};
use crate::read::read;
use crate::warn::look;

/// The most payloads that one command removes.
const REMOVED_MAX: usize = 512;

/// A log in a backend that any number of replicas share. They race for each version, and exactly one wins; where many
/// append, they pass an append turn.
///
/// A broken connection is made again. A command that may or may not have arrived is sent again, since all of them may be
/// repeated: the same batch is never written twice.
///
/// Connections belong to the runtime in which the store was opened. Calls from other runtimes run there too.
pub struct RemoteStore<B: Backend> {
    backend: Arc<B>,
    runtime: Handle,
    durability: Durability,
    following: Following,
    warnings: watch::Receiver<Option<Arc<str>>>,
}

impl<B: Backend> RemoteStore<B> {
    /// Opens the log at an address, with the default options.
    ///
    /// [`Unavailable`](StoreError::Unavailable) when nothing answers there, [`Unfit`](StoreError::Unfit) when the backend
    /// is too old or would not keep what it is given, [`Corrupt`](StoreError::Corrupt) when a newer program made the log.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, like [`tokio::spawn`].
    pub async fn open(url: &str) -> Result<RemoteStore<B>, StoreError> {
        RemoteStore::open_with(url, B::Options::default()).await
    }

    /// Opens the log with other options than the defaults.
    pub async fn open_with(url: &str, options: B::Options) -> Result<RemoteStore<B>, StoreError> {
        let (backend, durability) = B::open(url, options).await?;
        let (backend, (warning, warnings)) = (Arc::new(backend), watch::channel(None));
        tokio::spawn(look(Arc::downgrade(&backend), warning));
        let (runtime, following) = (Handle::current(), Following::default());
        Ok(RemoteStore { backend, runtime, durability, following, warnings })
    }

    /// Runs work on the store's runtime, until the caller drops the answer.
    fn run<T: Send + 'static, F>(&self, work: impl FnOnce(Arc<B>) -> F + Send + 'static) -> Answer<'_, T>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let backend = Arc::clone(&self.backend);
        Box::pin(async move {
            // A change of tasks takes time, and the caller is usually on that runtime already.
            if Handle::try_current().is_ok_and(|current| current.id() == self.runtime.id()) {
                return work(backend).await;
            }
            let task = AbortOnDrop(self.runtime.spawn(work(backend)));
            task.await.unwrap_or_else(|| Err(StoreError::closed(self.name())))
        })
    }
}

/// A task that ends when its answer is no longer awaited. The answer is `None` when the runtime has gone.
pub(crate) struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<B: Backend> Store for RemoteStore<B> {
    fn name(&self) -> &str {
        self.backend.name()
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn warnings(&self) -> Option<watch::Receiver<Option<Arc<str>>>> {
        Some(self.warnings.clone())
    }

    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        self.run(async move |backend| backend.time().await.map(Some))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn head(&self) -> Answer<'_, Head> {
        self.run(async move |backend| backend.head().await)
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        self.run(async move |backend| backend.append(append).await)
    }

    fn request_append_turn(&self, author: Author) -> Answer<'_, ()> {
        if author == Author(0) {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.run(async move |backend| backend.request_append_turn(author).await)
    }

    fn publish(&self, text: Arc<str>) -> Answer<'_, ()> {
        self.run(async move |backend| backend.publish(text).await)
    }

    fn subscribe(&self) -> Answer<'_, Option<mpsc::Receiver<Arc<str>>>> {
        self.run(async move |backend| {
            let (subscriber, texts) = mpsc::channel(UNREAD_MAX);
            let passes_on = backend.subscribe(subscriber).await?;
            Ok(passes_on.then_some(texts))
        })
    }

    fn newest(&self) -> Option<(Version, Option<Author>)> {
        Some(self.backend.recent().newest())
    }

    fn forget_log(&self) {
        self.backend.recent().clear();
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        self.run(async move |backend| read(&*backend, after).await)
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        let known = self.following.subscribe(&self.runtime, &self.backend);
        self.run(async move |backend| tail(backend, known, after).await)
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        self.run(async move |backend| backend.snapshot().await)
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        self.run(async move |backend| backend.save_snapshot(snapshot).await)
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        self.run(async move |backend| backend.trim(through).await)
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        self.run(async move |backend| backend.blob(id).await)
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        self.run(async move |backend| {
            for some in ids.chunks(REMOVED_MAX) {
                backend.remove_blobs(some).await?;
            }
            Ok(())
        })
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        self.run(async move |backend| backend.finished(task).await)
    }

    fn results(&self, tasks: Vec<TaskId>) -> Answer<'_, Vec<Option<Bytes>>> {
        self.run(async move |backend| backend.results(tasks).await)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        self.run(async move |backend| backend.history(query).await)
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        self.run(async move |backend| backend.trim_history(keep).await)
    }
}
