//! What was told lately, to whom it is told, and what must be known of live tasks in order to tell of them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use laneway_core::{LaneName, TaskId, Timestamp};
use tokio::sync::mpsc;

use crate::events::client_event::Happening;
use crate::events::groups::Groups;
use crate::events::hub::{Filter, From};

/// How many events are kept for clients that come back.
pub(crate) const KEPT_MAX: usize = 8192;

/// Things of tasks. Their ids are made by servers, not by callers, so that a fast hash will do.
type ByTask<V> = HashMap<TaskId, V, FixedState>;

/// The state of the bus.
pub(crate) struct Board {
    /// Tells the streams of this process from those of one before.
    pub(crate) epoch: u64,
    /// The number of the next event.
    pub(crate) next: u64,
    /// When somebody listened last: the number that was next then. Nobody has yet: `None`.
    heard: Option<u64>,
    kept: VecDeque<Arc<Happening>>,
    /// By the task that they watch.
    of_task: ByTask<Vec<Watcher>>,
    of_all: Vec<Watcher>,
    /// How many of them hear what is said at other servers.
    far: usize,
    pub(crate) watchers: u64,
    /// How many are about to watch a task whose id they do not know yet.
    pub(crate) expecting: usize,
    notes: ByTask<Note>,
    /// The lanes of the task that was noted last: those that come together often name the same.
    lanes: Arc<[LaneName]>,
    /// Tasks that wait, that somebody watches, and the place in line that was told last.
    in_line: ByTask<Option<usize>>,
    pub(crate) groups: Groups,
    pub(crate) closed: bool,
}

/// What is to be known of a live task in order to tell of it.
pub(crate) struct Note {
    pub(crate) lanes: Arc<[LaneName]>,
    pub(crate) is_external: bool,
    pub(crate) group: Option<laneway_core::Name>,
    /// Its last attempt.
    pub(crate) attempt: u32,
}

/// Whose words somebody hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those of runs here: for whoever's own run is here.
    Here,
    /// Also those of runs at other servers of the same queue.
    Everywhere,
}

/// Somebody who is told.
pub(crate) struct Watcher {
    number: u64,
    filter: Filter,
    reach: Reach,
    sender: mpsc::Sender<Arc<Happening>>,
    missed: u64,
}

impl Board {
    pub(crate) fn new(started: Timestamp) -> Board {
        Board {
            epoch: started.0,
            next: 1,
            heard: None,
            kept: VecDeque::new(),
            of_task: ByTask::default(),
            of_all: Vec::new(),
            far: 0,
            watchers: 0,
            expecting: 0,
            notes: ByTask::default(),
            lanes: Arc::new([]),
            in_line: ByTask::default(),
            groups: Groups::default(),
            closed: false,
        }
    }

    /// Adds somebody who is told from now on.
    pub(crate) fn add(&mut self, watcher: Watcher) {
        self.heard = Some(self.next);
        self.far += usize::from(watcher.reach == Reach::Everywhere);
        match watcher.filter.task {
            Some(task) => self.of_task.entry(task).or_default().push(watcher),
            None => self.of_all.push(watcher),
        }
    }

    pub(crate) fn remove(&mut self, number: u64, task: Option<TaskId>) {
        let watchers = match task {
            Some(task) => self.of_task.get_mut(&task),
            None => Some(&mut self.of_all),
        };
        let Some(watchers) = watchers else { return };
        let Some(place) = watchers.iter().position(|watcher| watcher.number == number) else { return };
        self.far -= usize::from(watchers.remove(place).reach == Reach::Everywhere);
        if let Some(task) = task.filter(|_| watchers.is_empty()) {
            self.of_task.remove(&task);
        }
    }

    /// Whether somebody would hear of a task.
    pub(crate) fn is_watched(&self, task: TaskId) -> bool {
        !self.of_all.is_empty() || self.expecting > 0 || self.of_task.contains_key(&task)
    }

    /// Whether somebody would hear what runs at other servers say.
    pub(crate) fn hears_others(&self) -> bool {
        self.far > 0
    }

    /// Whether nobody would hear of anything.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.of_all.is_empty() && self.expecting == 0 && self.of_task.is_empty()
    }

    /// Notes that something happens; says whether it is worth putting into words: somebody listens, or may come back who
    /// did, and would not have missed more than is kept anyway. If not, it only counts.
    pub(crate) fn is_worth_telling(&mut self) -> bool {
        if !self.is_unwatched() {
            self.heard = Some(self.next);
            return true;
        }
        if self.heard.is_some_and(|heard| self.next - heard < KEPT_MAX as u64) {
            return true;
        }
        self.next += 1;
        self.kept.clear();
        false
    }

    pub(crate) fn has_told_end(&self, task: TaskId, seen: u64) -> bool {
        let until = self.kept.partition_point(|happening| happening.seq <= seen);
        let mut before = self.kept.iter().take(until);
        before.any(|happening| happening.task == Some(task) && happening.is_last())
    }

    /// Numbers what happened, keeps it and tells whom it concerns.
    pub(crate) fn publish(&mut self, mut happening: Happening) {
        happening.seq = self.next;
        self.next += 1;
        if happening.lanes.is_empty()
            && let Some(note) = happening.task.and_then(|task| self.notes.get(&task))
        {
            happening.lanes = Arc::clone(&note.lanes);
        }
        let happening = Arc::new(happening);
        self.tell(&happening);
        if self.kept.len() >= KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(happening);
    }

    /// Everybody misses so many.
    pub(crate) fn missed(&mut self, count: u64) {
        self.next += count;
        let of_task = self.of_task.values_mut().flatten();
        of_task.for_each(|watcher| watcher.missed += count);
        self.of_all.iter_mut().for_each(|watcher| watcher.missed += count);
        self.kept.clear();
    }

    /// Ends all streams.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.of_task.clear();
        self.of_all.clear();
        self.far = 0;
    }

    /// Remembers a task that was accepted.
    pub(crate) fn note(&mut self, task: TaskId, note: Note) {
        self.notes.insert(task, note);
    }

    /// These lanes, as they are kept in notes.
    pub(crate) fn shared_lanes(&mut self, lanes: &[LaneName]) -> Arc<[LaneName]> {
        if *self.lanes != *lanes {
            self.lanes = lanes.into();
        }
        Arc::clone(&self.lanes)
    }

    /// What is known of a task, which is over now.
    pub(crate) fn forget(&mut self, task: TaskId) -> Option<Note> {
        self.in_line.remove(&task);
        self.notes.remove(&task)
    }

    /// The task stands in line at this place; says whether that is news.
    pub(crate) fn place(&mut self, task: TaskId, place: Option<usize>) -> bool {
        self.in_line.insert(task, place) != Some(place)
    }

    /// An attempt has begun: the task stands in line no more.
    pub(crate) fn begun(&mut self, task: TaskId, attempt: u32) {
        self.in_line.remove(&task);
        if let Some(note) = self.notes.get_mut(&task) {
            note.attempt = attempt;
        }
    }

    /// The last attempt of a live task.
    pub(crate) fn attempt(&self, task: TaskId) -> Option<u32> {
        self.notes.get(&task).map(|note| note.attempt)
    }

    /// The tasks that wait and that somebody watches.
    pub(crate) fn watched_in_line(&mut self) -> Vec<TaskId> {
        let Board { of_task, of_all, in_line, .. } = self;
        if of_all.is_empty() {
            in_line.retain(|task, _| of_task.contains_key(task));
        }
        in_line.keys().copied().collect()
    }

    /// What was told since, and whether something is missing before it.
    pub(crate) fn replay(&self, filter: &Filter, from: From) -> (VecDeque<Arc<Happening>>, bool) {
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

    /// What a watcher has missed and was not told yet, as an event.
    pub(crate) fn missed_by(&mut self, number: u64, task: Option<TaskId>) -> Option<Arc<Happening>> {
        let newest = self.next - 1;
        let list = match task {
            Some(task) => self.of_task.get_mut(&task)?,
            None => &mut self.of_all,
        };
        let watcher = list.iter_mut().find(|watcher| watcher.number == number)?;
        let missed = std::mem::take(&mut watcher.missed);
        (missed > 0).then(|| Arc::new(Happening::gap(newest, Some(missed))))
    }
}

impl Watcher {
    pub(crate) fn new(
        number: u64,
        filter: Filter,
        reach: Reach,
        sender: mpsc::Sender<Arc<Happening>>,
    ) -> Watcher {
        Watcher { number, filter, reach, sender, missed: 0 }
    }

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
