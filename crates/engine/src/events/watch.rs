//! Watching what happens.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::{
    Event, Fence, LaneChange, LaneName, MessageEnd, Millis, SessionChange, TaskId, Timestamp, Way,
};
use laneway_store::Version;
use tokio::sync::mpsc;

/// Something that happened, to whoever watches.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// The scheduler decided something, and it is kept.
    Event {
        /// When.
        at: Timestamp,
        /// What.
        event: Arc<Event>,
    },
    /// A lane's numbers changed.
    Lane {
        /// When.
        at: Timestamp,
        /// Its numbers now.
        change: LaneChange,
    },
    /// Where a task that somebody watches by its id stands in line now: at most once a second, and only when it has
    /// moved. Not kept.
    Position {
        /// Which task.
        task: TaskId,
        /// Its place in the line of its home lane, counted from one.
        position: usize,
        /// When it will probably start; `None` when there is nothing to judge by.
        starts_in: Option<Millis>,
    },
    /// A run says how far it is. Not kept.
    Progress {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// Whatever it says.
        value: Arc<serde_json::Value>,
    },
    /// A run has produced some more text. Not kept.
    Delta {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// The text.
        text: Arc<str>,
    },
    /// The log of the store went back behind what was read from it: the engine lost its last writes at a failover, or
    /// was restored from a backup. Told to everybody.
    SetBack {
        /// How far it had been read.
        known: Version,
        /// How far it goes now.
        found: Version,
        /// Tasks that were accepted and are gone. Those that another has accepted, it may put back.
        lost: Vec<TaskId>,
        /// Tasks that are gone too, and that were accepted here lately: they are asked for again, under their ids.
        put_back: Vec<TaskId>,
        /// Tasks whose ends are gone, or that ran when they went and may not run again: it is told once more how they ended, and
        /// `Lost` of those that ran.
        recounted: Vec<TaskId>,
    },
    /// The store cannot be used: nothing is granted until [`StoreBack`](Update::StoreBack). Told to whoever hears everything.
    StoreAway {
        /// In the words of the store, which name it.
        reason: Arc<str>,
    },
    /// The store can be used again.
    StoreBack,
    /// The reader was too slow: so many updates before the next one are missing.
    Missed(u64),
}

/// Which updates to hear: those that fit everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of this lane, and of tasks that name it.
    pub lane: Option<LaneName>,
}

/// A stream of updates, in order.
pub struct Updates {
    receiver: mpsc::Receiver<Update>,
    watchers: Arc<Watchers>,
    number: u64,
}

impl Updates {
    /// The next update; `None` when the engine has ended. A reader that was too slow is told how many it missed,
    /// where they are missing.
    pub async fn next(&mut self) -> Option<Update> {
        match self.try_next() {
            Some(update) => Some(update),
            None => self.receiver.recv().await,
        }
    }

    /// The next update, if there is one already.
    pub fn try_next(&mut self) -> Option<Update> {
        // Nobody adds to the channel meanwhile, so that what was missed comes after all that was not.
        let mut list = self.watchers.lock();
        if let Ok(update) = self.receiver.try_recv() {
            return Some(update);
        }
        let watcher = list.list.iter_mut().find(|watcher| watcher.number == self.number);
        let missed = watcher.map_or(0, |watcher| std::mem::take(&mut watcher.missed));
        (missed > 0).then_some(Update::Missed(missed))
    }
}

impl Updates {
    /// Takes the updates that are there already, at most so many.
    pub fn take_ready(&mut self, into: &mut Vec<Update>, most: usize) {
        // As above.
        let mut list = self.watchers.lock();
        let room = into.len() + most;
        while into.len() < room {
            let Ok(update) = self.receiver.try_recv() else {
                let watcher = list.list.iter_mut().find(|watcher| watcher.number == self.number);
                let missed = watcher.map_or(0, |watcher| std::mem::take(&mut watcher.missed));
                into.extend((missed > 0).then_some(Update::Missed(missed)));
                return;
            };
            into.push(update);
        }
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.watchers.change(|list| list.list.retain(|watcher| watcher.number != self.number));
    }
}

/// Everybody who watches.
#[derive(Default)]
pub(crate) struct Watchers {
    list: Mutex<List>,
    /// How many there are, for whoever asks before each decision.
    count: AtomicUsize,
}

#[derive(Default)]
struct List {
    list: Vec<Watcher>,
    next: u64,
    closed: bool,
}

struct Watcher {
    number: u64,
    filter: Filter,
    sender: mpsc::Sender<Update>,
    missed: u64,
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes who watches.
    fn change(&self, change: impl FnOnce(&mut List)) {
        let mut list = self.lock();
        change(&mut list);
        self.count.store(list.list.len(), Ordering::SeqCst);
    }

    pub(crate) fn subscribe(self: &Arc<Watchers>, filter: Filter, updates_max: usize) -> Updates {
        let (sender, receiver) = mpsc::channel(updates_max.max(1));
        let mut number = 0;
        self.change(|list| {
            list.next += 1;
            number = list.next;
            if !list.closed {
                list.list.push(Watcher { number, filter, sender, missed: 0 });
            }
        });
        Updates { receiver, watchers: Arc::clone(self), number }
    }

    /// The tasks that somebody watches by their id.
    pub(crate) fn watched_tasks(&self) -> BTreeSet<TaskId> {
        self.lock().list.iter().filter_map(|watcher| watcher.filter.task).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Tells everybody whom it concerns. `names` says whether the update is of something in a lane.
    pub(crate) fn tell(&self, update: &Update, names: impl Fn(&LaneName) -> bool) {
        for watcher in &mut self.lock().list {
            let task_fits = watcher.filter.task.is_none_or(|task| task_of(update) == Some(task));
            let fits = task_fits && watcher.filter.lane.as_ref().is_none_or(&names);
            if fits || matches!(update, Update::SetBack { .. }) {
                watcher.tell(update);
            }
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.change(|list| {
            list.closed = true;
            list.list.clear();
        });
    }
}

impl Watcher {
    fn tell(&mut self, update: &Update) {
        // What was missed is told before anything newer, so that the gap is where it was.
        if self.missed > 0 && self.sender.try_send(Update::Missed(self.missed)).is_ok() {
            self.missed = 0;
        }
        if self.missed > 0 || self.sender.try_send(update.clone()).is_err() {
            self.missed += 1;
        }
    }
}

/// The task that an update is of.
pub(crate) fn task_of(update: &Update) -> Option<TaskId> {
    match update {
        Update::Event { event, .. } => task_of_event(event),
        Update::Position { task, .. } | Update::Progress { task, .. } | Update::Delta { task, .. } => {
            Some(*task)
        }
        Update::Lane { .. }
        | Update::SetBack { .. }
        | Update::StoreAway { .. }
        | Update::StoreBack
        | Update::Missed(_) => None,
    }
}

pub(crate) fn task_of_event(event: &Event) -> Option<TaskId> {
    match event {
        Event::Submitted { task, .. }
        | Event::Joined { task }
        | Event::Left { task }
        | Event::Ready { task }
        | Event::Aged { task, .. }
        | Event::Boosted { task, .. }
        | Event::Reprioritised { task, .. }
        | Event::Noticed { task, .. }
        | Event::Reserved { task }
        | Event::Granted { task, .. }
        | Event::Renewed { task, .. }
        | Event::Stopping { task, .. }
        | Event::Retrying { task, .. }
        | Event::Redelivered { task, .. }
        | Event::Ended { task, .. }
        | Event::DeadLettered { task, .. } => Some(*task),
        Event::LetterGone { letter, .. } => Some(*letter),
        Event::Configured { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::Draining { .. }
        | Event::Drained { .. }
        | Event::Pressure { .. }
        | Event::Idle { .. }
        | Event::Alert { .. }
        | Event::AlertOver { .. }
        | Event::MessagesConfigured { .. }
        | Event::Unbound { .. }
        | Event::Noted { .. }
        | Event::FencesRaised { .. } => None,
        Event::Session(event) => turn_of(&event.change),
    }
}

/// The turn that an event of a session is about.
fn turn_of(change: &SessionChange) -> Option<TaskId> {
    match change {
        SessionChange::Accepted { way: Way::Steer { turn } | Way::Both { turn }, .. }
        | SessionChange::TurnBegan { turn, .. }
        | SessionChange::SteeringSet { turn, .. }
        | SessionChange::Taken { turn, .. }
        | SessionChange::Returned { turn, .. }
        | SessionChange::Retrying { turn, .. }
        | SessionChange::TurnOver { turn }
        | SessionChange::Ended {
            end: MessageEnd::Delivered { turn } | MessageEnd::Steered { turn }, ..
        } => Some(*turn),
        _ => None,
    }
}

/// The lane that an event is of, where it is of a lane and not of a task.
pub(crate) fn lane_of_event(event: &Event) -> Option<&LaneName> {
    match event {
        Event::Paused { lane }
        | Event::Resumed { lane }
        | Event::Draining { lane }
        | Event::Drained { lane }
        | Event::Pressure { lane, .. }
        | Event::Idle { lane }
        | Event::Alert { lane, .. }
        | Event::AlertOver { lane, .. } => Some(lane),
        Event::Session(event) => Some(&event.session),
        _ => None,
    }
}
