//! A slot of each lane, as a value that gives them back when it is dropped.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use laneway_core::{Fence, Outcome, TaskId, Timestamp};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::driver::mailbox::Report;
use crate::error::RunError;
use crate::handle::Handle;
use crate::runs::panic::poll_catching_panic;
use crate::runs::stop::{StopSignal, Stopped};

/// The right to run: a slot of each lane that was asked for. Dropping it gives them back, as does a panic that
/// unwinds through it.
///
/// Its lease is renewed as long as it is held. Where the lane has a timeout, or the task is cancelled,
/// [`stop`](Slot::stop) says so; the slots are taken away 5 s after that at the latest.
#[must_use = "dropping a slot gives it back"]
pub struct Slot {
    task: TaskId,
    fence: Fence,
    timeout_at: Option<Timestamp>,
    stop: StopSignal,
    outcome: Outcome,
    handle: Handle,
}

impl Slot {
    pub(crate) fn new(
        task: TaskId,
        fence: Fence,
        timeout_at: Option<Timestamp>,
        stop: StopSignal,
        handle: Handle,
    ) -> Slot {
        Slot { task, fence, timeout_at, stop, outcome: Outcome::Success, handle }
    }

    /// The task that holds it.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Larger than that of any earlier attempt, so that other systems can refuse an attempt that lost its lease.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// When it will have taken too long.
    pub fn timeout_at(&self) -> Option<Timestamp> {
        self.timeout_at
    }

    /// Tells when to stop.
    pub fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// Gives it back and says that the work did not succeed.
    pub fn fail(mut self, error: impl Into<String>) {
        self.outcome = Outcome::Failure { error: error.into().into(), retryable: false };
    }

    /// Runs a future on it until it ends or must stop, in which case it is dropped before the slot is free, and sets
    /// what came of it.
    pub(crate) async fn run<F: Future>(&mut self, future: F) -> Result<F::Output, RunError> {
        let stop = &self.stop;
        // Boxed, because a future that never waits does not need it, and spawned futures should be small.
        let mut told: Option<Pin<Box<dyn Future<Output = Stopped> + Send + '_>>> = None;
        // This block owns the future, so that it is dropped before the slot.
        let ran = {
            let mut future = pin!(future);
            poll_fn(|context| {
                if let Poll::Ready(output) = poll_catching_panic(future.as_mut(), context) {
                    return Poll::Ready(Ok(output));
                }
                told.get_or_insert_with(|| Box::pin(stop.wait())).as_mut().poll(context).map(Err)
            })
            .await
        };
        drop(told);
        match ran {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(panic)) => {
                let error: std::sync::Arc<str> = panic.to_string().into();
                self.outcome = Outcome::Failure { error: error.clone(), retryable: false };
                Err(RunError::Ended(laneway_core::End::Failed { error }))
            }
            Err(reason) => {
                self.outcome = Outcome::Stopped;
                Err(RunError::Ended(Stopped::end(reason)))
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let (task, fence) = (self.task, self.fence);
        let outcome = match std::mem::replace(&mut self.outcome, Outcome::Stopped) {
            Outcome::Success if std::thread::panicking() => {
                Outcome::Failure { error: "panicked".into(), retryable: false }
            }
            outcome => outcome,
        };
        self.handle.report(Report::Finish {
            task,
            fence,
            outcome,
            result: None,
            work: None,
            at: Instant::now(),
        });
    }
}

/// A caller that waits for a slot. It leaves the line when it is dropped before it has one.
pub(crate) struct Wait {
    task: TaskId,
    answer: oneshot::Receiver<Result<Slot, RunError>>,
    handle: Handle,
    is_over: bool,
}

impl Wait {
    pub(crate) fn new(
        task: TaskId,
        answer: oneshot::Receiver<Result<Slot, RunError>>,
        handle: Handle,
    ) -> Wait {
        Wait { task, answer, handle, is_over: false }
    }

    pub(crate) async fn slot(mut self) -> Result<Slot, RunError> {
        let answer = (&mut self.answer).await;
        self.is_over = true;
        answer.unwrap_or(Err(RunError::Refused(crate::error::Error::Closed)))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.is_over {
            // Before the report, so that a request that is still on its way is not taken up after it.
            self.answer.close();
            self.handle.report(Report::Leave { task: self.task });
        }
    }
}
