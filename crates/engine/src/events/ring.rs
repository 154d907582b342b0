//! The newest events, for clients that reconnect with the id of the last one they saw.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::TaskId;

use crate::events::subscription::{Filter, Since};
use crate::events::update::{HubEvent, Update};

/// How many events the ring holds.
pub(super) const RING_MAX: usize = 8192;

/// Numbers events and holds the newest.
pub(super) struct Ring {
    /// The number of the next event.
    next: u64,
    /// The value of `next` when the ring last had a reader.
    read_at: Option<u64>,
    events: VecDeque<Arc<HubEvent>>,
}

impl Default for Ring {
    fn default() -> Ring {
        Ring { next: 1, read_at: None, events: VecDeque::new() }
    }
}

impl Ring {
    /// The number of the newest event.
    pub(super) fn newest(&self) -> u64 {
        self.next - 1
    }

    /// A reader exists now: from here on events are kept, also for a while after it has left.
    pub(super) fn mark_read(&mut self) {
        self.read_at = Some(self.next);
    }

    /// Whether a reader that left could still resume without a gap.
    pub(super) fn is_resumable(&self) -> bool {
        self.read_at.is_some_and(|at| self.next - at < RING_MAX as u64)
    }

    /// Counts events that nothing will ever ask for.
    pub(super) fn skip(&mut self, count: u64) {
        self.next += count;
        self.events.clear();
    }

    pub(super) fn push(&mut self, mut event: HubEvent) -> Arc<HubEvent> {
        event.seq = self.next;
        self.next += 1;
        let event = Arc::new(event);
        if self.events.len() >= RING_MAX {
            self.events.pop_front();
        }
        self.events.push_back(Arc::clone(&event));
        event
    }

    /// The kept events that a subscription starts with, after a gap if some are missing.
    pub(super) fn replay(&self, filter: &Filter, since: Since) -> VecDeque<Arc<HubEvent>> {
        let oldest = self.events.front().map_or(self.next, |event| event.seq);
        let (after, is_gap) = match since {
            Since::Now => return VecDeque::new(),
            Since::Event(seq) if seq < self.next => (seq, seq + 1 < oldest),
            Since::Event(_) | Since::Unknown => (self.newest(), true),
        };
        let start = self.events.partition_point(|event| event.seq <= after);
        let gap = is_gap.then(|| Arc::new(HubEvent::gap(self.newest(), None)));
        let kept = self.events.iter().skip(start).filter(|event| event.fits(filter)).cloned();
        gap.into_iter().chain(kept).collect()
    }

    /// Whether a reader that saw everything up to this event has seen the end of the task.
    pub(super) fn has_shown_end(&self, task: TaskId, seen: u64) -> bool {
        let until = self.events.partition_point(|event| event.seq <= seen);
        let mut seen = self.events.iter().take(until);
        seen.any(|event| matches!(event.update, Update::Done { task: done, .. } if done == task))
    }
}
