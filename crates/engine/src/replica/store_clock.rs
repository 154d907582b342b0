//! The clock of a shared store, read from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::Timestamp;
use laneway_store::{Store, StoreError};
use tokio::time::Instant;

use crate::driver::clock::{Clock, millis};

/// How often to ask for the time, so that clocks that go at different speeds do not part.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// How many answers to compare: the quickest is the best.
const ASKED: usize = 3;

/// The store's clock: its time when we asked last, and from there our own steady clock. It is wrong by no more than half a
/// round trip, and by what our clock goes wrong in five seconds.
#[derive(Clone)]
pub(crate) struct StoreClock {
    start: Instant,
    /// The store's time at `start`, in milliseconds.
    at_start: Arc<AtomicU64>,
}

impl StoreClock {
    /// Asks the store for its time; `None`: it has no clock of its own.
    pub(crate) async fn ask(store: &dyn Store) -> Result<Option<StoreClock>, StoreError> {
        let clock = StoreClock { start: Instant::now(), at_start: Arc::default() };
        Ok(clock.adjust(store).await?.then_some(clock))
    }

    /// Asks again from time to time, until the store is gone.
    pub(crate) async fn keep_right(self, store: std::sync::Weak<dyn Store>) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            let Some(store) = store.upgrade() else { return };
            // A store that is away is asked again; until then our own clock goes on.
            drop(self.adjust(&*store).await);
        }
    }

    async fn adjust(&self, store: &dyn Store) -> Result<bool, StoreError> {
        let mut best: Option<(Duration, u64)> = None;
        for _ in 0..ASKED {
            let asked = Instant::now();
            let Some(time) = store.time().await? else { return Ok(false) };
            let took = asked.elapsed();
            let at_start = (time + millis(took / 2)).0.saturating_sub(millis(self.start.elapsed()).0);
            if best.is_none_or(|(quickest, _)| took < quickest) {
                best = Some((took, at_start));
            }
        }
        if let Some((_, at_start)) = best {
            self.at_start.store(at_start, Ordering::Relaxed);
        }
        Ok(true)
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.at_start.load(Ordering::Relaxed)) + millis(self.start.elapsed())
    }
}
