//! A machine: everything that runs on it can stand still or die at once, at whatever it waits for.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use laneway_engine::Spawn;
use tokio::task::{AbortHandle, JoinHandle};

/// One life of a machine. After a crash there is another one.
#[derive(Default)]
pub(crate) struct Host(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    is_paused: bool,
    is_dead: bool,
    /// What would have gone on if it did not stand still.
    waiting: Vec<Waker>,
    tasks: Vec<AbortHandle>,
}

impl Host {
    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.inside().is_dead
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.inside().is_paused
    }

    /// Whether anything on it has not come to its end.
    pub(crate) fn is_busy(&self) -> bool {
        self.inside().tasks.iter().any(|task| !task.is_finished())
    }

    /// Everything on it stands still while time goes on.
    pub(crate) fn pause(&self) {
        self.inside().is_paused = true;
    }

    pub(crate) fn resume(&self) {
        let waiting = {
            let mut inside = self.inside();
            inside.is_paused = false;
            std::mem::take(&mut inside.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Everything on it is gone.
    pub(crate) fn crash(&self) {
        let (tasks, waiting) = {
            let mut inside = self.inside();
            inside.is_dead = true;
            (std::mem::take(&mut inside.tasks), std::mem::take(&mut inside.waiting))
        };
        tasks.iter().for_each(AbortHandle::abort);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Starts something on it.
    pub(crate) fn start(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.spawn_here(Box::pin(task)));
    }

    fn spawn_here(self: &Arc<Self>, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> JoinHandle<()> {
        let running = tokio::spawn(Hosted { host: Arc::clone(self), task });
        let mut inside = self.inside();
        if inside.tasks.len() >= 64 {
            inside.tasks.retain(|task| !task.is_finished());
        }
        inside.tasks.push(running.abort_handle());
        running
    }
}

/// What an engine needs of its machine.
pub(crate) struct Machine(pub(crate) Arc<Host>);

impl Spawn for Machine {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> JoinHandle<()> {
        self.0.spawn_here(task)
    }
}

struct Hosted {
    host: Arc<Host>,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Hosted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut inside = self.host.inside();
            if inside.is_dead {
                return Poll::Ready(());
            }
            if inside.is_paused {
                inside.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
        }
        self.task.as_mut().poll(context)
    }
}
