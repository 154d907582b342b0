//! Opening a queue that is kept on disk.

use std::future::IntoFuture;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use laneway_engine::{Context, Error, Failure, Handle, Options};
use laneway_store_sqlite::SqliteStore;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Laneway;

/// A queue to be opened, with the handlers that it needs from the start: `Laneway::open(dir).handler(…).await?`.
#[must_use = "nothing is opened before this is awaited"]
pub struct Open {
    dir: PathBuf,
    options: Result<Options, Error>,
}

impl Open {
    pub(crate) fn new(dir: PathBuf) -> Open {
        Open { dir, options: Ok(Options::default()) }
    }

    /// Says who runs tasks of a kind, those included that are there already; see [`Handle::handler`].
    pub fn handler<P, R, F, Fut>(mut self, kind: impl Into<Arc<str>>, function: F) -> Open
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.options = self.options.and_then(|options| options.handler(kind, function));
        self
    }

    /// Changes the options.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Open {
        if let Ok(options) = &mut self.options {
            change(options);
        }
        self
    }
}

impl IntoFuture for Open {
    type Output = Result<Laneway, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Laneway, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let options = self.options?;
            // Opening waits for the disk.
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(self.dir)).await;
            let store = opened.map_err(|_| Error::Closed)??;
            Ok(Laneway::from(Handle::open(Arc::new(store), options).await?))
        })
    }
}
