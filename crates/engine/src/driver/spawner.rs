//! Where the tasks of an engine run: on the runtime that it was started on, or wherever a simulation puts them.

use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime;
use tokio::task::JoinHandle;

/// Starts the tasks of one engine, for whoever wants to hold all of them in one hand: a simulation that stops or ends
/// an engine as a machine would.
pub trait Spawn: Send + Sync + 'static {
    /// Starts a task.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> JoinHandle<()>;
}

/// Starts the tasks of this engine, whoever has it.
#[derive(Clone)]
pub(crate) enum Tasks {
    Runtime(runtime::Handle),
    Given(Arc<dyn Spawn>),
}

impl Tasks {
    /// Those that are given, or those of the runtime that this is called on.
    pub(crate) fn new(given: Option<Arc<dyn Spawn>>) -> Tasks {
        given.map_or_else(|| Tasks::Runtime(runtime::Handle::current()), Tasks::Given)
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match self {
            Tasks::Runtime(runtime) => runtime.spawn(task),
            Tasks::Given(given) => given.spawn(Box::pin(task)),
        }
    }

    /// Does what takes a while without holding up the others; on the spot where another thread would spoil the order.
    /// `None`: the runtime ends.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Tasks::Runtime(runtime) => runtime.spawn_blocking(work).await.ok(),
            Tasks::Given(_) => Some(work()),
        }
    }
}
