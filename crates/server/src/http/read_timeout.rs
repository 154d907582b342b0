//! How long a client may take for the head of a request, with one timer for a connection instead of one for each request.
//!
//! hyper asks for an alarm whenever it begins to wait for a request and drops it when the head is there. To set a timer
//! anew for a later moment costs next to nothing; to add one to all others and take it out again does not.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type Bell = Pin<Box<tokio::time::Sleep>>;

/// The alarms of one connection.
#[derive(Clone, Default)]
pub(crate) struct Alarms(Arc<Mutex<Option<Bell>>>);

/// An alarm that is set. Dropped, it leaves its bell to the next one.
struct Alarm {
    bell: Option<Bell>,
    spare: Alarms,
}

impl Alarms {
    fn spare(&self) -> std::sync::MutexGuard<'_, Option<Bell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for Alarms {
    fn sleep(&self, length: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + length)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let spare = self.spare().take();
        let bell = match spare {
            Some(mut bell) => {
                bell.as_mut().reset(deadline.into());
                bell
            }
            None => Box::pin(tokio::time::sleep_until(deadline.into())),
        };
        Box::pin(Alarm { bell: Some(bell), spare: self.clone() })
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.bell.as_mut().map_or(Poll::Ready(()), |bell| bell.as_mut().poll(context))
    }
}

impl Sleep for Alarm {}

impl Drop for Alarm {
    fn drop(&mut self) {
        *self.spare.spare() = self.bell.take();
    }
}
