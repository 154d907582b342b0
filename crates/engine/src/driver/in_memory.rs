//! The driver of a queue in memory: the caller that gets the lock decides everything in the inbox.
//!
//! A caller that finds the lock taken leaves its request in the inbox. The holder looks there again after it unlocks, so
//! that no request is left behind.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::driver::engine::Engine;
use crate::driver::mailbox::{Call, Inbox, Report};
use crate::error::Error;
use crate::handle::Shared;

/// The engine of a queue in memory, behind a lock.
#[derive(Default)]
pub(crate) struct InMemory {
    waiting: Mutex<Waiting>,
    /// `None` before the start and after the end.
    engine: Mutex<Option<Engine>>,
    /// Notified when something is due before the alarm that is set.
    alarm: Arc<Notify>,
}

/// What the engine has not looked at yet. One call of each caller bounds it.
#[derive(Default)]
struct Waiting {
    inbox: Inbox,
    /// The alarm went off.
    is_due: bool,
    is_closed: bool,
}

impl InMemory {
    /// Takes over an engine, and wakes it when something is due until the last handle is dropped.
    pub(crate) fn adopt(&self, engine: Engine, shared: Weak<Shared>) {
        let tasks = engine.spawner.clone();
        *self.engine() = Some(engine);
        tasks.spawn(keep_time(shared, Arc::clone(&self.alarm)));
    }

    /// Has a call answered, here or by the caller that holds the lock.
    pub(super) fn call(&self, call: Call) -> Result<(), Error> {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return Err(Error::Closed);
        }
        waiting.inbox.calls.push(call);
        drop(waiting);
        self.work_off();
        Ok(())
    }

    /// Has a report decided, like a call.
    pub(super) fn report(&self, report: Report) {
        self.report_later(report);
        self.work_off();
    }

    /// Leaves a report to the holder of the lock, which may be this thread.
    pub(super) fn report_later(&self, report: Report) {
        let mut waiting = self.waiting();
        if !waiting.is_closed {
            waiting.inbox.reports.push(report);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides everything that waits, unless another caller is at it.
    fn work_off(&self) {
        loop {
            let engine = match self.engine.try_lock() {
                Ok(engine) => engine,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.work(engine);
            let waiting = self.waiting();
            if waiting.is_closed || waiting.inbox.is_empty() && !waiting.is_due {
                return;
            }
        }
    }

    fn work(&self, mut guard: MutexGuard<'_, Option<Engine>>) {
        let Some(engine) = guard.as_mut() else { return };
        let mut inbox = take(&mut engine.buffers.inbox);
        let mut is_done = false;
        while !is_done && self.take_waiting(&mut inbox) {
            engine.decide_in_memory(&mut inbox);
            is_done = engine.is_done();
        }
        engine.buffers.inbox = inbox;
        let outbox = take(&mut engine.callers.outbox);
        let is_alarm_late = engine.is_alarm_late();
        let ended = if is_done { guard.take() } else { None };
        drop(guard);
        // After the unlock, because a caller that wakes wants the lock next.
        outbox.send();
        if is_alarm_late {
            self.alarm.notify_one();
        }
        if let Some(ended) = ended {
            let left = self.close();
            let tasks = ended.spawner.clone();
            tasks.spawn(ended.end());
            drop(left);
        }
    }

    /// Swaps an empty inbox for the one that waits; `false`: there is nothing to decide.
    fn take_waiting(&self, inbox: &mut Inbox) -> bool {
        let mut waiting = self.waiting();
        std::mem::swap(&mut waiting.inbox, inbox);
        take(&mut waiting.is_due) || !inbox.is_empty()
    }

    /// Takes no more calls; callers that wait hear so when theirs are dropped.
    fn close(&self) -> Inbox {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        take(&mut waiting.inbox)
    }

    fn set_alarm(&self) -> Option<Instant> {
        let alarm = self.engine().as_mut().and_then(Engine::set_alarm);
        // A caller may have found the lock taken.
        if !self.waiting().inbox.is_empty() {
            self.work_off();
        }
        alarm
    }

    fn on_alarm(&self) {
        self.waiting().is_due = true;
        self.work_off();
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.alarm.notify_one();
    }
}

/// Wakes the engine when something is due.
async fn keep_time(shared: Weak<Shared>, alarm: Arc<Notify>) {
    loop {
        let Some(wake) = shared.upgrade().map(|shared| shared.in_memory().and_then(InMemory::set_alarm))
        else {
            return;
        };
        let is_due = async {
            match wake {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = alarm.notified() => {}
            () = is_due => {
                if let Some(shared) = shared.upgrade()
                    && let Some(driver) = shared.in_memory()
                {
                    driver.on_alarm();
                }
            }
        }
    }
}
