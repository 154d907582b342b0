//! Where the futures of an engine run: on its runtime, or where a simulation puts them.

use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime;
use tokio::task::JoinHandle;

/// Starts the futures of one engine, for a simulation that stops or ends an engine as a machine would.
pub trait Spawn: Send + Sync + 'static {
    /// Starts a task.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> JoinHandle<()>;
}

/// Starts the futures of this engine.
#[derive(Clone)]
pub(crate) enum Spawner {
    Runtime(runtime::Handle),
    Given(Arc<dyn Spawn>),
}

impl Spawner {
    /// The given one, or the runtime that this is called on.
    pub(crate) fn new(given: Option<Arc<dyn Spawn>>) -> Spawner {
        given.map_or_else(|| Spawner::Runtime(runtime::Handle::current()), Spawner::Given)
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match self {
            Spawner::Runtime(runtime) => runtime.spawn(task),
            Spawner::Given(given) => given.spawn(Box::pin(task)),
        }
    }

    /// Runs work that blocks on another thread, or here in a simulation, where threads would spoil the order. `None`: the
    /// runtime ends.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Spawner::Runtime(runtime) => runtime.spawn_blocking(work).await.ok(),
            Spawner::Given(_) => Some(work()),
        }
    }
}
