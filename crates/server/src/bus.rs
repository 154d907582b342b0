//! Everything that happens, numbered once and passed on to whoever watches.
//!
//! One reader takes the engine's updates, gives each a number and keeps the newest, so that a client that was cut off can
//! go on where it was. Watchers of one task are found by its id: thousands of them cost no more than a few.
//!
//! Bounds: [`KEPT_MAX`] events are kept; a watcher may be [`BEHIND_MAX`] events behind before it misses some and is told
//! how many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::{LaneName, TaskId, Timestamp};
use tokio::sync::mpsc;

use crate::groups::Groups;
use crate::happening::Happening;

/// How many events are kept for clients that come back.
pub(crate) const KEPT_MAX: usize = 8192;
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
pub(crate) struct Bus(Arc<Mutex<State>>);

struct State {
    /// Tells the streams of this process from those of one before.
    epoch: u64,
    next: u64,
    kept: VecDeque<Arc<Happening>>,
    /// By the task that they watch.
    of_task: HashMap<TaskId, Vec<Watcher>>,
    of_all: Vec<Watcher>,
    watchers: u64,
    /// How many are about to watch a task whose id they do not know yet.
    expecting: usize,
    notes: HashMap<TaskId, Note>,
    /// Tasks that wait, that somebody watches, and the place in line that was told last.
    in_line: HashMap<TaskId, Option<usize>>,
    groups: Groups,
    closed: bool,
}

/// What is to be known of a live task in order to tell of it.
pub(crate) struct Note {
    pub(crate) lanes: Arc<[LaneName]>,
    pub(crate) is_external: bool,
    pub(crate) group: Option<laneway_core::Name>,
}

struct Watcher {
    number: u64,
    filter: Filter,
    sender: mpsc::Sender<Arc<Happening>>,
    missed: u64,
}

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
    pub(crate) fn new(started: Timestamp) -> Bus {
        Bus(Arc::new(Mutex::new(State {
            epoch: started.0,
            next: 1,
            kept: VecDeque::new(),
            of_task: HashMap::new(),
            of_all: Vec::new(),
            watchers: 0,
            expecting: 0,
            notes: HashMap::new(),
            in_line: HashMap::new(),
            groups: Groups::default(),
            closed: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whoever calls this before submitting a task misses nothing of it.
    pub(crate) fn expect(&self) -> Expecting {
        let mut state = self.lock();
        state.expecting += 1;
        Expecting { bus: self.clone(), mark: state.next - 1 }
    }

    /// What happens and fits.
    pub(crate) fn watch(&self, filter: Filter, from: From) -> Watch {
        let mut state = self.lock();
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
            let watcher = Watcher { number, filter, sender, missed: 0 };
            match task {
                Some(task) => state.of_task.entry(task).or_default().push(watcher),
                None => state.of_all.push(watcher),
            }
        }
        drop(state);
        Watch { bus: self.clone(), number, task, replay, receiver }
    }

    /// Whether a client that saw everything up to this event has seen the end of the task.
    pub(crate) fn has_told_end(&self, task: TaskId, seen: From) -> bool {
        let From::After(seen) = seen else { return false };
        let state = self.lock();
        let until = state.kept.partition_point(|happening| happening.seq <= seen);
        let mut before = state.kept.iter().take(until);
        before.any(|happening| happening.task == Some(task) && happening.is_last())
    }

    /// Whether somebody would hear of a task.
    pub(crate) fn is_watched(&self, task: TaskId) -> bool {
        let state = self.lock();
        !state.of_all.is_empty() || state.expecting > 0 || state.of_task.contains_key(&task)
    }

    /// Numbers what happened, keeps it and tells whom it concerns.
    pub(crate) fn publish(&self, mut happening: Happening) {
        let mut state = self.lock();
        happening.seq = state.next;
        state.next += 1;
        if happening.lanes.is_empty()
            && let Some(note) = happening.task.and_then(|task| state.notes.get(&task))
        {
            happening.lanes = Arc::clone(&note.lanes);
        }
        let happening = Arc::new(happening);
        if state.kept.len() >= KEPT_MAX {
            state.kept.pop_front();
        }
        state.kept.push_back(Arc::clone(&happening));
        state.tell(&happening);
    }

    /// Everybody misses so many.
    pub(crate) fn missed(&self, count: u64) {
        let mut state = self.lock();
        state.next += count;
        let of_task = state.of_task.values_mut().flatten();
        of_task.for_each(|watcher| watcher.missed += count);
        state.of_all.iter_mut().for_each(|watcher| watcher.missed += count);
        state.kept.clear();
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.of_task.clear();
        state.of_all.clear();
    }

    /// Remembers a task that was accepted.
    pub(crate) fn note(&self, task: TaskId, note: Note) {
        self.lock().notes.insert(task, note);
    }

    /// What is known of a task, which is over now.
    pub(crate) fn forget(&self, task: TaskId) -> Option<Note> {
        let mut state = self.lock();
        state.in_line.remove(&task);
        state.notes.remove(&task)
    }

    /// Counts the tasks of groups.
    pub(crate) fn groups<T>(&self, count: impl FnOnce(&mut Groups) -> T) -> T {
        count(&mut self.lock().groups)
    }

    /// The task stands in line at this place; says whether that is news.
    pub(crate) fn place(&self, task: TaskId, place: Option<usize>) -> bool {
        let mut state = self.lock();
        state.in_line.insert(task, place) != Some(place)
    }

    /// The task stands in line no more.
    pub(crate) fn left_line(&self, task: TaskId) {
        self.lock().in_line.remove(&task);
    }

    /// The tasks that wait and that somebody watches.
    pub(crate) fn watched_in_line(&self) -> Vec<TaskId> {
        let mut state = self.lock();
        let State { of_task, of_all, in_line, .. } = &mut *state;
        if of_all.is_empty() {
            in_line.retain(|task, _| of_task.contains_key(task));
        }
        in_line.keys().copied().collect()
    }
}

impl State {
    fn replay(&self, filter: &Filter, from: From) -> (VecDeque<Arc<Happening>>, bool) {
        let oldest = self.kept.front().map_or(self.next, |happening| happening.seq);
        let (after, gap) = match from {
            From::Now => return (VecDeque::new(), false),
            From::Unknown => return (VecDeque::new(), true),
            From::After(seq) if seq >= self.next => return (VecDeque::new(), true),
            From::After(seq) => (seq, seq + 1 < oldest),
        };
        let start = self.kept.partition_point(|happening| happening.seq <= after);
        let fitting = self.kept.iter().skip(start).filter(|happening| happening.fits(filter));
        (fitting.cloned().collect(), gap)
    }

    fn tell(&mut self, happening: &Arc<Happening>) {
        if let Some(task) = happening.task
            && let Some(watchers) = self.of_task.get_mut(&task)
        {
            watchers.iter_mut().for_each(|watcher| watcher.tell(happening));
        }
        for watcher in &mut self.of_all {
            if happening.fits(&watcher.filter) {
                watcher.tell(happening);
            }
        }
    }

    fn watcher(&mut self, number: u64, task: Option<TaskId>) -> Option<&mut Watcher> {
        let list = match task {
            Some(task) => self.of_task.get_mut(&task)?,
            None => &mut self.of_all,
        };
        list.iter_mut().find(|watcher| watcher.number == number)
    }
}

impl Watcher {
    fn tell(&mut self, happening: &Arc<Happening>) {
        if self.missed > 0 {
            let gap = Arc::new(Happening::gap(happening.seq.saturating_sub(1), Some(self.missed)));
            if self.sender.try_send(gap).is_ok() {
                self.missed = 0;
            }
        }
        if self.missed > 0 || self.sender.try_send(Arc::clone(happening)).is_err() {
            self.missed += 1;
        }
    }
}

impl Expecting {
    /// Everything of this task since.
    pub(crate) fn of(self, task: TaskId) -> Watch {
        self.bus.watch(Filter { task: Some(task), lane: None }, From::After(self.mark))
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
        let newest = state.next - 1;
        let watcher = state.watcher(self.number, self.task)?;
        let missed = std::mem::take(&mut watcher.missed);
        (missed > 0).then(|| Arc::new(Happening::gap(newest, Some(missed))))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.bus.lock();
        let Some(task) = self.task else {
            state.of_all.retain(|watcher| watcher.number != self.number);
            return;
        };
        if let Some(watchers) = state.of_task.get_mut(&task) {
            watchers.retain(|watcher| watcher.number != self.number);
            if watchers.is_empty() {
                state.of_task.remove(&task);
            }
        }
    }
}
