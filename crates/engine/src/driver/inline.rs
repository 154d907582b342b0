//! A queue in memory has nothing to wait for: whoever asks has it decided on the spot.
//!
//! Everything still goes through the same two channels and the same turns, so that there is one order. But there is
//! no loop to wake: whoever has put something into a channel takes the engine, if nobody has it, and decides all
//! that is there. Whoever finds it taken leaves his to the one who has it, who looks again before he goes.

use std::hint::spin_loop;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Context, Waker};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::driver::engine_loop::Engine;
use crate::driver::outbox::Told;
use crate::handle::Shared;

/// How often to look whether the engine is free before the work is left to whoever has it. A decision takes about
/// as long, and much less than to be woken afterwards.
const SPINS: u32 = 32;

/// The engine, for whoever needs it for a moment.
#[derive(Default)]
pub(crate) struct Inline {
    engine: Mutex<Option<Engine>>,
    /// Something is in a channel, or due.
    is_dirty: AtomicBool,
    /// Told when the alarm must be set anew.
    alarm: Arc<Notify>,
}

impl Inline {
    /// Takes over an engine and keeps its time, until the last handle is gone.
    pub(crate) fn adopt(&self, engine: Engine, shared: Weak<Shared>) {
        let tasks = engine.tasks.clone();
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        tasks.spawn(keep_time(shared, Arc::clone(&self.alarm)));
    }

    /// Has everything decided that is there, here or by whoever is at it.
    pub(crate) fn poke(&self) {
        self.is_dirty.store(true, Ordering::SeqCst);
        self.work_off();
    }

    /// Says that there is something, to whoever has the engine.
    pub(crate) fn mark(&self) {
        self.is_dirty.store(true, Ordering::SeqCst);
    }

    fn work_off(&self) {
        // Looked at again after the engine is free: somebody may have come and found it taken.
        if self.is_dirty.load(Ordering::SeqCst) {
            self.work_all_off();
        }
    }

    #[inline(never)]
    fn work_all_off(&self) {
        while self.is_dirty.load(Ordering::SeqCst) {
            let Some(mut engine) = self.try_take() else { return };
            let mut is_done = false;
            let mut is_alarmed = false;
            while let Some(engine) = &mut *engine
                && !is_done
                && self.is_dirty.swap(false, Ordering::SeqCst)
            {
                is_done = drain(engine);
                is_alarmed |= engine.is_alarm_late();
            }
            let told = engine.as_mut().map(|engine| std::mem::take(&mut engine.outbox)).unwrap_or_default();
            let ended = if is_done { engine.take() } else { None };
            let is_gone = engine.is_none();
            drop(engine);
            told.into_iter().for_each(Told::tell);
            if is_alarmed {
                self.alarm.notify_one();
            }
            if let Some(ended) = ended {
                let tasks = ended.tasks.clone();
                tasks.spawn(ended.end());
            }
            if is_gone {
                return;
            }
        }
    }

    /// The engine, unless somebody has it and does not give it back in a moment; or none, if whoever has it has
    /// done what there was to do.
    fn try_take(&self) -> Option<MutexGuard<'_, Option<Engine>>> {
        for _ in 0..SPINS {
            match self.engine.try_lock() {
                Ok(engine) => return Some(engine),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if self.is_dirty.load(Ordering::SeqCst) => spin_loop(),
                Err(TryLockError::WouldBlock) => return None,
            }
        }
        None
    }

    fn set_alarm(&self) -> Option<Instant> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let alarm = engine.as_mut().and_then(Engine::set_alarm);
        drop(engine);
        // Whoever came meanwhile found the engine taken and has gone.
        self.work_off();
        alarm
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        self.alarm.notify_one();
    }
}

/// Decides everything that is in the channels or due; says whether that was the end.
fn drain(engine: &mut Engine) -> bool {
    let (mut reports, mut calls) = (Vec::new(), Vec::new());
    let mut is_first = true;
    loop {
        engine.take_more(&mut reports, &mut calls);
        let is_idle = reports.is_empty() && calls.is_empty();
        if is_idle && !(is_first && engine.is_due()) {
            return false;
        }
        is_first = false;
        let is_decided = {
            let turn = pin!(engine.turn(&mut reports, &mut calls));
            turn.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        debug_assert!(is_decided, "a turn in memory waits for nothing");
        if engine.is_done() {
            return true;
        }
    }
}

/// Wakes the engine when something is due.
async fn keep_time(shared: Weak<Shared>, alarm: Arc<Notify>) {
    loop {
        let Some(wake) = shared.upgrade().map(|shared| shared.inline().and_then(Inline::set_alarm)) else {
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
                    && let Some(inline) = shared.inline()
                {
                    inline.poke();
                }
            }
        }
    }
}
