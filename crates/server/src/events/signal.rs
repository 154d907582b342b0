//! A signal that is given once. Checking it reads one atomic value.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A signal that is given once. A [`CancellationToken`] alone would take a lock that all requests share.
#[derive(Default)]
pub(crate) struct Signal {
    is_given: AtomicBool,
    token: CancellationToken,
}

impl Signal {
    /// Gives the signal. Waiting tasks wake after [`is_given`](Signal::is_given) returns true.
    pub(crate) fn give(&self) {
        self.is_given.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    pub(crate) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }

    /// Waits for the signal.
    pub(crate) fn given(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }

    /// A token for tasks that do not hold the signal.
    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// The output of a future, or `None` if the signal comes first. One task must poll it to the end, because the signal is
    /// registered with its waker once.
    pub(crate) async fn unless_given<T>(&self, mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut given = pin!(self.given());
        let mut is_registered = false;
        let either = |context: &mut Context<'_>| {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let is_given = if std::mem::replace(&mut is_registered, true) {
                self.is_given()
            } else {
                given.as_mut().poll(context).is_ready()
            };
            if is_given { Poll::Ready(None) } else { Poll::Pending }
        };
        std::future::poll_fn(either).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{Notify, oneshot};

    use super::*;

    /// Starts a future that ends with a message, unless the signal comes first.
    fn waiting(signal: &Arc<Signal>) -> (oneshot::Sender<u8>, tokio::task::JoinHandle<Option<u8>>) {
        let (tell, told) = oneshot::channel();
        let signal = Arc::clone(signal);
        let wait = async move { signal.unless_given(pin!(async { told.await.unwrap() })).await };
        (tell, tokio::spawn(wait))
    }

    #[tokio::test]
    async fn a_signal_wakes_a_task_that_waits_for_another_future() {
        let signal = Arc::new(Signal::default());
        let (tell, done) = waiting(&signal);
        tell.send(7).unwrap();
        assert_eq!(done.await.unwrap(), Some(7));
        let (_tell, early) = waiting(&signal);
        tokio::task::yield_now().await;
        assert!(!signal.is_given());
        signal.give();
        assert_eq!(early.await.unwrap(), None);
        // A later task sees the signal too.
        let (_tell, late) = waiting(&signal);
        assert_eq!(late.await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_signal_is_seen_after_many_steps_of_another_future() {
        let (signal, step) = (Arc::new(Signal::default()), Arc::new(Notify::new()));
        let (steps, theirs) = (Arc::clone(&step), Arc::clone(&signal));
        let (count, mut counted) = tokio::sync::mpsc::channel(1);
        let something = async move {
            loop {
                steps.notified().await;
                count.send(()).await.unwrap();
            }
        };
        let done = tokio::spawn(async move { theirs.unless_given::<()>(pin!(something)).await });
        for _ in 0..5 {
            step.notify_one();
            counted.recv().await.unwrap();
        }
        signal.give();
        assert_eq!(done.await.unwrap(), None);
    }
}
