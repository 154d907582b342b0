//! Everything that happens, numbered once and passed on to whoever watches.
//!
//! One reader takes the engine's updates, gives each a number and keeps the newest, so that a client that was cut off can
//! go on where it was. Watchers of one task are found by its id: thousands of them cost no more than a few.
//!
//! Bounds: [`KEPT_MAX`](crate::events::board::KEPT_MAX) events are kept; a watcher may be [`BEHIND_MAX`] events behind before it
//! misses some and is told how many.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::{LaneName, TaskId, Timestamp};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::events::board::{Board, Reach, Watcher};
use crate::events::client_event::Happening;
use crate::events::groups::Groups;

/// How many events a watcher may be behind.
pub(crate) const BEHIND_MAX: usize = 512;

/// What to hear: what fits everything that is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) task: Option<TaskId>,
    pub(crate) lane: Option<LaneName>,
}

/// Everybody who watches, and what there was to see lately. Clones are the same.
#[derive(Clone)]
pub(crate) struct Bus {
    board: Arc<Mutex<Board>>,
    /// Asks the one reader to pass on all that there is, and to say when it has.
    behind: mpsc::Sender<oneshot::Sender<()>>,
    /// Told when somebody listens again.
    heard: Arc<Notify>,
}

/// What the reader hears from those whom it serves.
pub(crate) struct Wishes {
    /// Those who wait until it has caught up.
    pub(crate) behind: mpsc::Receiver<oneshot::Sender<()>>,
    /// Told when somebody listens again.
    pub(crate) heard: Arc<Notify>,
}

/// How many may wait at once for the reader to catch up, before others wait for room.
const BEHIND_ASKERS_MAX: usize = 64;

/// A stream of events, in order.
pub(crate) struct Watch {
    bus: Bus,
    number: u64,
    task: Option<TaskId>,
    /// What was there before, to be told first.
    replay: VecDeque<Arc<Happening>>,
    receiver: mpsc::Receiver<Arc<Happening>>,
}

/// Somebody who will watch a task that is about to be submitted: from here on nothing of it is missed.
pub(crate) struct Expecting {
    bus: Bus,
    mark: u64,
}

/// Where a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// With what happens from now on.
    Now,
    /// After this event.
    After(u64),
    /// Nobody knows where: what lies between is missing.
    Unknown,
}

impl Bus {
    /// A bus, and what its reader is asked by.
    pub(crate) fn new(started: Timestamp) -> (Bus, Wishes) {
        let (sender, behind) = mpsc::channel(BEHIND_ASKERS_MAX);
        let heard = Arc::new(Notify::new());
        let wishes = Wishes { behind, heard: Arc::clone(&heard) };
        (Bus { board: Arc::new(Mutex::new(Board::new(started))), behind: sender, heard }, wishes)
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does several things at once.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Board) -> T) -> T {
        act(&mut self.lock())
    }

    /// Waits until everything has been passed on that had been decided when this was called. Whoever then watches and looks
    /// at the state hears nothing of what he has seen.
    pub(crate) async fn caught_up(&self) {
        let (done, told) = oneshot::channel();
        if self.behind.send(done).await.is_ok() {
            // An answer that never comes means that the reader has ended.
            drop(told.await);
        }
    }

    /// Somebody is about to listen: a reader that takes its time because nobody did is told.
    fn listen(&self, board: &Board) {
        if board.is_unwatched() {
            self.heard.notify_one();
        }
    }

    /// How an event is named to clients.
    pub(crate) fn id_of(&self, seq: u64) -> String {
        format!("{:x}-{seq}", self.lock().epoch)
    }

    /// Where a client that saw this id last goes on.
    pub(crate) fn resumption(&self, id: &str) -> From {
        let epoch = self.lock().epoch;
        let parts = id.split_once('-');
        let parts = parts.and_then(|(e, seq)| Some((u64::from_str_radix(e, 16).ok()?, seq.parse().ok()?)));
        match parts {
            Some((known, seq)) if known == epoch => From::After(seq),
            _ => From::Unknown,
        }
    }

    /// Says that everything up to now may be missing.
    pub(crate) fn gap(&self) -> Happening {
        Happening::gap(self.lock().next.saturating_sub(1), None)
    }

    /// Whoever calls this before submitting a task misses nothing of it.
    pub(crate) fn expect(&self) -> Expecting {
        let mut state = self.lock();
        self.listen(&state);
        state.expecting += 1;
        Expecting { bus: self.clone(), mark: state.next - 1 }
    }

    /// What happens and fits.
    pub(crate) fn watch(&self, filter: Filter, from: From) -> Watch {
        self.watch_at(Reach::Everywhere, filter, from)
    }

    fn watch_at(&self, reach: Reach, filter: Filter, from: From) -> Watch {
        let mut state = self.lock();
        self.listen(&state);
        if reach == Reach::Everywhere && !state.hears_others() {
            self.heard.notify_one();
        }
        let (replay, gap) = state.replay(&filter, from);
        let mut replay = replay;
        if gap {
            let seq = state.next.saturating_sub(1);
            replay.push_front(Arc::new(Happening::gap(seq, None)));
        }
        let (sender, receiver) = mpsc::channel(BEHIND_MAX);
        state.watchers += 1;
        let number = state.watchers;
        let task = filter.task;
        if !state.closed {
            state.add(Watcher::new(number, filter, reach, sender));
        }
        drop(state);
        Watch { bus: self.clone(), number, task, replay, receiver }
    }

    /// Whether a client that saw everything up to this event has seen the end of the task.
    pub(crate) fn has_told_end(&self, task: TaskId, seen: From) -> bool {
        let From::After(seen) = seen else { return false };
        self.lock().has_told_end(task, seen)
    }

    /// Counts the tasks of groups.
    pub(crate) fn groups<T>(&self, count: impl FnOnce(&mut Groups) -> T) -> T {
        count(&mut self.lock().groups)
    }
}

impl Expecting {
    /// Everything of this task since.
    pub(crate) fn of(self, task: TaskId, reach: Reach) -> Watch {
        let filter = Filter { task: Some(task), lane: None };
        self.bus.watch_at(reach, filter, From::After(self.mark))
    }
}

impl Drop for Expecting {
    fn drop(&mut self) {
        self.bus.lock().expecting -= 1;
    }
}

impl Watch {
    /// The next event; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Arc<Happening>> {
        if let Some(happening) = self.replay.pop_front() {
            return Some(happening);
        }
        match self.try_next() {
            Some(happening) => Some(happening),
            None => self.receiver.recv().await,
        }
    }

    /// Whether what was there before holds the end of the task.
    pub(crate) fn holds_end(&self) -> bool {
        self.replay.iter().any(|happening| happening.is_last())
    }

    /// Whether all that was there before has been told.
    pub(crate) fn is_at_now(&self) -> bool {
        self.replay.is_empty()
    }

    fn try_next(&mut self) -> Option<Arc<Happening>> {
        // Nobody adds to the channel meanwhile, so that what was missed comes after all that was not.
        let mut state = self.bus.lock();
        if let Ok(happening) = self.receiver.try_recv() {
            return Some(happening);
        }
        state.missed_by(self.number, self.task)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bus.lock().remove(self.number, self.task);
    }
}

#[cfg(test)]
mod tests {
    use laneway_protocol::EventName;
    use serde_json::json;

    use super::*;
    use crate::events::board::KEPT_MAX;

    fn happen(bus: &Bus, times: usize) {
        for _ in 0..times {
            bus.with(|board| {
                if board.is_worth_telling() {
                    board.publish(Happening::made(EventName::Configured, None, json!({})));
                }
            });
        }
    }

    /// What a client that comes back after this event is told first: whether something is missing, and how many.
    fn told_after(bus: &Bus, seen: u64) -> (bool, usize) {
        let watch = bus.watch(Filter::default(), From::After(seen));
        let gaps = watch.replay.iter().filter(|happening| happening.name == EventName::Gap).count();
        (gaps > 0, watch.replay.len() - gaps)
    }

    #[test]
    fn events_are_kept_for_whoever_listened_and_only_as_long_as_that_helps() {
        let (bus, _wishes) = Bus::new(Timestamp(0));
        // Nobody can come back who was never there; one who says so has missed them.
        happen(&bus, 3);
        assert_eq!(told_after(&bus, 0), (true, 0));
        assert_eq!(told_after(&bus, 3), (false, 0));
        happen(&bus, 10);
        assert_eq!(told_after(&bus, 3), (false, 10));
        // All that may be kept is, and one more is too many: nothing of it would help without what is missing.
        happen(&bus, KEPT_MAX);
        assert_eq!(told_after(&bus, 13), (false, KEPT_MAX));
        happen(&bus, KEPT_MAX + 1);
        assert_eq!(told_after(&bus, 13 + KEPT_MAX as u64), (true, 0));
    }
}
