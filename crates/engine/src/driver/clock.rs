//! The one place where time is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use laneway_core::{Millis, Timestamp};
use tokio::time::Instant;

/// Tells the time, in milliseconds since 1970.
pub trait Clock: Send + Sync + 'static {
    /// The time now. What goes back is held at the latest time that was told.
    fn now(&self) -> Timestamp;
}

/// The wall clock at the start, and from there on the steady clock of tokio. Durations stay right when the wall clock is set,
/// and tokio's paused time pauses this clock too.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    wall: Timestamp,
    start: Instant,
}

impl SteadyClock {
    /// Reads the wall clock, for the first and last time.
    pub fn start() -> SteadyClock {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SteadyClock { wall: Timestamp(since_1970.as_millis() as u64), start: Instant::now() }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let since = self.start.elapsed();
        // Not by way of 128 bits: this is asked twice for each task.
        Timestamp(self.wall.0 + since.as_secs() * 1000 + u64::from(since.subsec_millis()))
    }
}

/// A clock that never goes back behind what the log knows, and goes on from there.
pub(crate) struct EngineClock {
    clock: Box<dyn Clock>,
    ahead: Millis,
    latest: Timestamp,
    /// What others that share the log have come to.
    reached: Timestamp,
}

impl EngineClock {
    pub(crate) fn new(clock: Box<dyn Clock>) -> EngineClock {
        EngineClock { clock, ahead: Millis(0), latest: Timestamp(0), reached: Timestamp(0) }
    }

    pub(crate) fn now(&mut self) -> Timestamp {
        self.latest = self.latest.max(self.clock.now() + self.ahead);
        self.latest.max(self.reached)
    }

    /// Shifts the clock so that it is later than this.
    pub(crate) fn pass(&mut self, known: Timestamp) {
        let behind = known.since(self.now());
        self.ahead = Millis(self.ahead.0 + behind.0);
    }

    /// It is at least this time, as others that share the log say; the clock itself does not shift.
    pub(crate) fn reach(&mut self, known: Timestamp) {
        self.reached = self.reached.max(known);
    }

    /// How long it is until then.
    pub(crate) fn until(&mut self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since(self.now()).0)
    }
}

/// A duration in whole milliseconds, rounded down.
pub(crate) fn millis(duration: Duration) -> Millis {
    Millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
