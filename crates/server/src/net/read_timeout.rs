//! The time limit on the head of a request, with one timer per connection.
//!
//! hyper asks for a timer for each request. Resetting a timer is cheaper than adding and removing one.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type Timeout = Pin<Box<tokio::time::Sleep>>;

/// The timer of one connection.
#[derive(Clone, Default)]
pub(super) struct ConnectionTimer(Arc<Mutex<Option<Timeout>>>);

/// A wait for the timer. Dropping it returns the timer for the next wait.
struct Wait {
    timeout: Option<Timeout>,
    timer: ConnectionTimer,
}

impl ConnectionTimer {
    fn spare(&self) -> MutexGuard<'_, Option<Timeout>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for ConnectionTimer {
    fn sleep(&self, length: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + length)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let spare = self.spare().take();
        let timeout = match spare {
            Some(mut timeout) => {
                timeout.as_mut().reset(deadline.into());
                timeout
            }
            None => Box::pin(tokio::time::sleep_until(deadline.into())),
        };
        Box::pin(Wait { timeout: Some(timeout), timer: self.clone() })
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.timeout.as_mut().map_or(Poll::Ready(()), |timeout| timeout.as_mut().poll(context))
    }
}

impl Sleep for Wait {}

impl Drop for Wait {
    fn drop(&mut self) {
        *self.timer.spare() = self.timeout.take();
    }
}
