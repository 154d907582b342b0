//! Undoing a decision when another replica appended first, without asking the store.

use laneway_core::{Event, Scheduler, Snapshot, Timestamp};

/// Saving a state costs as much as there are tasks, and rolling back as much as there are events since. So the state is saved
/// after this many events for each live task, within these bounds, and with very many tasks after one event for each.
const EVENTS_PER_TASK: usize = 4;
const EVENTS_MIN: usize = 256;
const EVENTS_MAX: usize = 4096;

/// A saved state of the log, and every batch since: at most as many events as there are live tasks, or [`EVENTS_MAX`], and one
/// batch.
#[derive(Default)]
pub(crate) struct Rollback {
    saved: Option<Snapshot>,
    since: Vec<(Timestamp, Vec<Event>)>,
    events: usize,
}

impl Rollback {
    /// Starts from this state.
    pub(crate) fn begin(&mut self, scheduler: &Scheduler) {
        *self = Rollback { saved: Some(scheduler.snapshot()), since: Vec::new(), events: 0 };
    }

    /// Notes a batch, which has led to this state.
    pub(crate) fn note(&mut self, at: Timestamp, events: Vec<Event>, scheduler: &Scheduler) {
        self.events += events.len();
        let live = scheduler.live_tasks();
        if self.events > live.saturating_mul(EVENTS_PER_TASK).clamp(EVENTS_MIN, EVENTS_MAX).max(live) {
            return self.begin(scheduler);
        }
        if !events.is_empty() {
            self.since.push((at, events));
        }
    }

    /// The state of the log, without what was decided since and not stored.
    pub(crate) fn scheduler(&self, seed: u64) -> Scheduler {
        let mut scheduler = match &self.saved {
            Some(state) => Scheduler::restore(seed, state),
            None => Scheduler::new(seed),
        };
        for (at, events) in &self.since {
            events.iter().for_each(|event| scheduler.apply(*at, event));
        }
        scheduler
    }
}
