//! The way back from a decision that another was faster than: the state as it was, without asking the store.

use laneway_core::{Event, Scheduler, State, Timestamp};

/// A saved state costs as much as there is to save, and the way back to it as much as has happened since. So it is saved anew after
/// so many events for each live task, within these bounds, and with very many tasks after one for each.
const EVENTS_PER_TASK: usize = 4;
const EVENTS_MIN: usize = 256;
const EVENTS_MAX: usize = 4096;

/// A state of the log and everything that was appended since: at most as many events as there are live tasks, or
/// [`EVENTS_MAX`], and one batch.
#[derive(Default)]
pub(crate) struct Rewind {
    saved: Option<State>,
    since: Vec<(Timestamp, Vec<Event>)>,
    events: usize,
}

impl Rewind {
    /// Begins with this state.
    pub(crate) fn begin(&mut self, scheduler: &Scheduler) {
        *self = Rewind { saved: Some(scheduler.state()), since: Vec::new(), events: 0 };
    }

    /// Takes note of a batch, which has led to this state.
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

    /// The state of the log, whatever was decided since and not kept.
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
