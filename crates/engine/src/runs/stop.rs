//! How an attempt learns that it should stop.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use laneway_core::{CancelReason, End, StopReason};
use tokio::sync::Notify;

use crate::runs::turn_payload::SteeringMessage;

/// Why an attempt should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It took too long.
    Timeout,
    /// Its task was cancelled.
    Cancelled(CancelReason),
    /// Its lease is gone: its reports are refused.
    Revoked,
    /// The program ends.
    Shutdown,
}

impl Stopped {
    /// How the task of an attempt that stops for this reason ends, if nothing follows.
    pub(super) fn end(self) -> End {
        match self {
            Stopped::Timeout => End::TimedOut,
            Stopped::Cancelled(reason) => End::Cancelled { reason },
            Stopped::Revoked | Stopped::Shutdown => End::Lost,
        }
    }
}

impl From<StopReason> for Stopped {
    fn from(reason: StopReason) -> Stopped {
        match reason {
            StopReason::Timeout => Stopped::Timeout,
            StopReason::Cancelled(reason) => Stopped::Cancelled(reason),
        }
    }
}

/// Says once that an attempt should stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    reason: OnceLock<Stopped>,
    told: Notify,
    /// Messages that the attempt is about to take. They are here, where clones of a context meet, so that nothing is lost
    /// with a call that is dropped.
    on_the_way: Mutex<Vec<SteeringMessage>>,
}

impl StopSignal {
    /// Gives the signal; only the first reason counts.
    pub(super) fn tell(&self, reason: Stopped) {
        if self.0.reason.set(reason).is_ok() {
            self.0.told.notify_waiters();
        }
    }

    /// The messages that the attempt is about to take: at most as many as a turn is offered at once.
    pub(super) fn on_the_way(&self) -> MutexGuard<'_, Vec<SteeringMessage>> {
        self.0.on_the_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why to stop, if the signal was given.
    pub fn reason(&self) -> Option<Stopped> {
        self.0.reason.get().copied()
    }

    /// Waits for the signal.
    pub async fn wait(&self) -> Stopped {
        loop {
            let told = self.0.told.notified();
            tokio::pin!(told);
            // From here on no signal is missed.
            told.as_mut().enable();
            match self.reason() {
                Some(reason) => return reason,
                None => told.await,
            }
        }
    }
}
