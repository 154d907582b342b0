//! A signal that is given once, for those who look at every step whether it was.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A signal that is given once.
///
/// To ask a token takes a lock that all requests share; a look at this is one read.
#[derive(Default)]
pub(crate) struct Signal {
    is_given: AtomicBool,
    token: CancellationToken,
}

impl Signal {
    /// Gives it. Everybody who waits for it is woken after [`is_given`](Signal::is_given) says so.
    pub(crate) fn give(&self) {
        self.is_given.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    pub(crate) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }

    /// Waits for it.
    pub(crate) fn given(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }

    /// The same for whoever does not hold what this is part of.
    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// What comes of something, unless the signal is given before; `None` then. Both must be waited for by one task: the
    /// signal is asked once to wake it, and from then on only looked at.
    pub(crate) async fn unless_given<T>(
        &self,
        mut something: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut given = pin!(self.given());
        let mut is_asked = false;
        let either = |context: &mut Context<'_>| {
            if let Poll::Ready(done) = something.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let is_given = match std::mem::replace(&mut is_asked, true) {
                false => given.as_mut().poll(context).is_ready(),
                true => self.is_given(),
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

    /// Starts something that ends when it is told to, with the signal beside it.
    fn waiting(signal: &Arc<Signal>) -> (oneshot::Sender<u8>, tokio::task::JoinHandle<Option<u8>>) {
        let (tell, told) = oneshot::channel();
        let signal = Arc::clone(signal);
        let wait = async move { signal.unless_given(pin!(async { told.await.unwrap() })).await };
        (tell, tokio::spawn(wait))
    }

    #[tokio::test]
    async fn a_signal_wakes_whoever_waits_for_something_else() {
        let signal = Arc::new(Signal::default());
        let (tell, done) = waiting(&signal);
        tell.send(7).unwrap();
        assert_eq!(done.await.unwrap(), Some(7));
        let (_tell, early) = waiting(&signal);
        tokio::task::yield_now().await;
        assert!(!signal.is_given());
        signal.give();
        assert_eq!(early.await.unwrap(), None);
        // And whoever comes later.
        let (_tell, late) = waiting(&signal);
        assert_eq!(late.await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_signal_is_heard_after_many_steps_of_something_else() {
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
