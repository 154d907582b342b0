//! The store: everything is done on the runtime in which it was opened, whoever asks from wherever.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{
    Answer, Append, Author, Durability, Head, HistoryQuery, Retention, Store, StoreError, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;

use crate::address::Address;
use crate::baton::Newest;
use crate::failure::{closed, from_postgres};
use crate::follow::Known;
use crate::link::Link;
use crate::options::Options;
use crate::schema;

/// A log in a Postgres that any number of processes share. They race for each version, and exactly one wins; where many do,
/// they pass a baton.
///
/// A broken connection is made anew, by itself. A statement whose fate is unknown is sent again where that is right,
/// which it is for all of them: the same batch is never written twice.
///
/// It uses up to four connections: for appends, for questions, for snapshots, for listening; and one for each who
/// [listens](Store::listen).
pub struct PostgresStore {
    shared: Arc<Shared>,
    durability: Durability,
}

/// What questions and the follower share.
pub(crate) struct Shared {
    pub(crate) runtime: Handle,
    pub(crate) options: Options,
    pub(crate) address: Arc<Address>,
    pub(crate) writer: Link,
    pub(crate) reader: Link,
    pub(crate) saver: Link,
    /// One at a time uses the saver's connection.
    pub(crate) saving: Mutex<()>,
    pub(crate) newest: Arc<Newest>,
    pub(crate) follower: StdMutex<Option<(watch::Sender<Known>, JoinHandle<()>)>>,
}

impl PostgresStore {
    /// Opens the log in the Postgres at an address like `postgres://user:password@host:5432/database`, and makes or
    /// migrates its tables.
    ///
    /// [`Unavailable`](StoreError::Unavailable) when nothing answers there, [`Unfit`](StoreError::Unfit) when it is too
    /// old, [`Corrupt`](StoreError::Corrupt) when a newer program made the tables.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, like [`tokio::spawn`].
    pub async fn open(url: &str) -> Result<PostgresStore, StoreError> {
        PostgresStore::open_with(url, Options::default()).await
    }

    /// Opens the log with other options than the defaults.
    pub async fn open_with(url: &str, options: Options) -> Result<PostgresStore, StoreError> {
        let address = Arc::new(Address::parse(url, &options.namespace)?);
        let link = || Link::new(&address, options.patience);
        let shared = Shared {
            runtime: Handle::current(),
            writer: link(),
            reader: link(),
            saver: link(),
            saving: Mutex::new(()),
            newest: Arc::default(),
            follower: StdMutex::new(None),
            address: Arc::clone(&address),
            options: options.clone(),
        };
        let session = shared.writer.session().await?;
        let durability = schema::durability(&session.client).await;
        let durability = durability.map_err(|error| from_postgres(&address.name, &error))?;
        Ok(PostgresStore { shared: Arc::new(shared), durability })
    }

    /// Has something done on the store's runtime, until whoever asked does not wait for it any more.
    fn run<T: Send + 'static, F>(&self, work: impl FnOnce(Arc<Shared>) -> F + Send + 'static) -> Answer<'_, T>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let name = self.name();
            let task = Ended(shared.runtime.clone().spawn(work(shared)));
            task.await.unwrap_or_else(|| Err(closed(name)))
        })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let mut follower = self.shared.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, task)) = follower.take() {
            task.abort();
        }
    }
}

/// A task that ends with whoever waits for it. Its answer is `None` when the runtime has gone.
struct Ended<T>(JoinHandle<T>);

impl<T> Future for Ended<T> {
    type Output = Option<T>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        std::pin::Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Store for PostgresStore {
    fn name(&self) -> &str {
        &self.shared.address.name
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        self.run(async move |shared| shared.time().await.map(Some))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn head(&self) -> Answer<'_, Head> {
        self.run(async move |shared| shared.head().await)
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        self.run(async move |shared| shared.append(append).await)
    }

    fn want_baton(&self, author: Author) -> Answer<'_, ()> {
        self.run(async move |shared| shared.want_baton(author).await)
    }

    fn say(&self, words: Arc<str>) -> Answer<'_, ()> {
        self.run(async move |shared| shared.say(words).await)
    }

    fn listen(&self) -> Answer<'_, Option<mpsc::Receiver<Arc<str>>>> {
        self.run(async move |shared| shared.listen().await.map(Some))
    }

    fn newest(&self) -> Option<(Version, Option<Author>)> {
        Some(self.shared.newest.get())
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        self.run(async move |shared| shared.read(after).await)
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        self.run(async move |shared| shared.tail(after).await)
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        self.run(async move |shared| shared.snapshot().await)
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        self.run(async move |shared| shared.save_snapshot(snapshot).await)
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        self.run(async move |shared| shared.trim(through).await)
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        self.run(async move |shared| shared.blob(id).await)
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        self.run(async move |shared| shared.remove_blobs(ids).await)
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        self.run(async move |shared| shared.finished(task).await)
    }

    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        self.run(async move |shared| shared.history(asked).await)
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        self.run(async move |shared| shared.trim_history(keep).await)
    }
}
