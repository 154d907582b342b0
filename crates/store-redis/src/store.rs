//! The store: everything is done on the runtime in which it was opened, whoever asks from wherever.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{
    Answer, Append, Author, Durability, Head, HistoryQuery, Retention, Store, StoreError, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use redis::{Cmd, Value};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::address::parse;
use crate::failure::closed;
use crate::follow::{Known, link_for};
use crate::keys::Keys;
use crate::link::{Link, Lua};
use crate::options::Options;
use crate::recent::Recent;
use crate::{append, fit, snapshot};

/// A log in a Redis that any number of processes share. They race for each version, and exactly one wins; where many do,
/// they pass a baton.
///
/// A broken connection is made anew, by itself. A command whose fate is unknown is sent again where that is right,
/// which it is for all of them: the same batch is never written twice.
pub struct RedisStore {
    shared: Arc<Shared>,
    durability: Durability,
}

/// What questions and the follower share.
pub(crate) struct Shared {
    pub(crate) runtime: Handle,
    pub(crate) options: Options,
    pub(crate) keys: Keys,
    pub(crate) link: Link,
    pub(crate) tail_link: Link,
    pub(crate) recent: Recent,
    pub(crate) append_script: Lua,
    pub(crate) want_script: Lua,
    pub(crate) snapshot_script: Lua,
    pub(crate) follower: Mutex<Option<(watch::Sender<Known>, JoinHandle<()>)>>,
}

impl RedisStore {
    /// Opens the log in the Redis at an address like `redis://user:password@host:6379/0`.
    ///
    /// [`Unavailable`](StoreError::Unavailable) when nothing answers there, [`Unfit`](StoreError::Unfit) when it is too
    /// old or would throw keys away, [`Corrupt`](StoreError::Corrupt) when a newer program made the log.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, like [`tokio::spawn`].
    pub async fn open(url: &str) -> Result<RedisStore, StoreError> {
        RedisStore::open_with(url, Options::default()).await
    }

    /// Opens the log with other options than the defaults.
    pub async fn open_with(url: &str, options: Options) -> Result<RedisStore, StoreError> {
        let (name, address) = parse(url, &options.namespace)?;
        let keys = Keys::of(&options.namespace);
        let link = Link::new(name, address.clone(), options.patience);
        let tail_link = link_for(&link, address, options.patience);
        let shared = Shared {
            runtime: Handle::current(),
            keys,
            link,
            tail_link,
            recent: Recent::default(),
            append_script: append::script(),
            want_script: Lua::new(include_str!("want.lua")),
            snapshot_script: snapshot::script(),
            follower: Mutex::new(None),
            options,
        };
        // The first answer also tells whether another node of a cluster has the keys.
        shared.head().await?;
        let mut connection = shared.link.connection(&shared.keys).await?;
        let durability = fit::durability(&mut connection, shared.options.replicas).await;
        Ok(RedisStore { shared: Arc::new(shared), durability })
    }

    /// Has something done on the store's runtime, until whoever asked does not wait for it any more.
    fn run<T: Send + 'static, F>(&self, work: impl FnOnce(Arc<Shared>) -> F + Send + 'static) -> Answer<'_, T>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            // Whoever is on that runtime already does it himself: each change of tasks takes time.
            if Handle::try_current().is_ok_and(|current| current.id() == shared.runtime.id()) {
                return work(shared).await;
            }
            let name = self.name();
            let task = Ended(shared.runtime.clone().spawn(work(shared)));
            task.await.unwrap_or_else(|| Err(closed(name)))
        })
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        let mut follower = self.shared.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, task)) = follower.take() {
            task.abort();
        }
    }
}

impl Shared {
    /// Sends commands that do not depend on each other's answers, all at once.
    pub(crate) async fn send_all(self: &Shared, commands: &[Cmd]) -> Result<Vec<Value>, StoreError> {
        let mut answers = Vec::with_capacity(commands.len());
        for some in commands.chunks(64) {
            let mut pipeline = redis::pipe();
            for command in some {
                pipeline.add_command(command.clone());
            }
            let mut connection = self.link.connection(&self.keys).await?;
            match pipeline.query_async::<Vec<Value>>(&mut connection).await {
                Ok(values) => answers.extend(values),
                // One by one, which also makes a new connection.
                Err(_) => {
                    for command in some {
                        answers.push(self.send(command).await?);
                    }
                }
            }
        }
        Ok(answers)
    }
}

/// A task that ends with whoever waits for it. Its answer is `None` when the runtime has gone.
pub(crate) struct Ended<T>(pub(crate) JoinHandle<T>);

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

impl Store for RedisStore {
    fn name(&self) -> &str {
        &self.shared.link.name
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
        Some(self.shared.recent.newest())
    }

    fn forget_log(&self) {
        self.shared.recent.clear();
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

    fn results(&self, tasks: Vec<TaskId>) -> Answer<'_, Vec<Option<Bytes>>> {
        self.run(async move |shared| shared.results(&tasks).await)
    }

    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        self.run(async move |shared| shared.history(asked).await)
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        self.run(async move |shared| shared.trim_history(keep).await)
    }
}
