//! What the hub passes on.

use std::sync::Arc;

use laneway_core::{
    Event, Fence, LaneChange, LaneName, LiveTaskView, MessageEnd, Millis, Name, SessionDelta, TaskId,
    Timestamp, Way,
};
use laneway_store::Version;

use crate::events::groups::GroupCounts;
use crate::events::subscription::{Feed, Filter};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// The scheduler decided something, and it is stored.
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
    /// A task joined the line. Only in [`Feed::News`].
    Queued {
        /// Which task.
        task: TaskId,
        /// Its place in the line of its home lane, counted from one.
        position: Option<usize>,
        /// When it will probably start, if that can be estimated.
        starts_in: Option<Millis>,
    },
    /// A waiting task has moved: at most once a second for each task. Not stored.
    Position {
        /// Which task.
        task: TaskId,
        /// Its place in the line of its home lane, counted from one.
        position: usize,
        /// When it will probably start, if that can be estimated.
        starts_in: Option<Millis>,
    },
    /// The progress that an attempt reports. Not stored.
    Progress {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// The name that the attempt gives the report, if it has one.
        name: Option<Arc<str>>,
        /// The report.
        value: Arc<serde_json::Value>,
    },
    /// More of the text that an attempt produces. Not stored.
    Delta {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// The text.
        text: Arc<str>,
    },
    /// What an attempt has used so far. Not stored.
    Usage {
        /// Which task.
        task: TaskId,
        /// Which attempt.
        fence: Fence,
        /// The report.
        value: Arc<serde_json::Value>,
    },
    /// The owner of an attempt should send a heartbeat now: it must stop, or there is a message for its turn. Only in
    /// [`Feed::Worker`].
    HeartbeatWanted {
        /// Which task.
        task: TaskId,
        /// The worker that owns its attempt.
        worker: Name,
    },
    /// A task of an external or hybrid lane was accepted. Only in [`Feed::News`].
    Pending {
        /// When.
        at: Timestamp,
        /// The task at that moment.
        view: Arc<LiveTaskView>,
    },
    /// A task of an external or hybrid lane has ended. Only in [`Feed::News`].
    ExternalDone {
        /// When.
        at: Timestamp,
        /// The task when it ended.
        view: Arc<LiveTaskView>,
        /// Whether it succeeded.
        is_success: bool,
    },
    /// The last update of a task. Only in [`Feed::News`].
    Done {
        /// When.
        at: Timestamp,
        /// Which task.
        task: TaskId,
    },
    /// A task of a group was accepted or has ended. Only in [`Feed::News`].
    Group {
        /// When.
        at: Timestamp,
        /// Which group.
        group: Name,
        /// Its tasks now.
        counts: GroupCounts,
    },
    /// What the program made of its own notes. Only in [`Feed::News`]. See [`Observer`](crate::Observer).
    Note {
        /// When.
        at: Timestamp,
        /// The task that it is about.
        task: Option<TaskId>,
        /// What the notes say.
        content: Arc<serde_json::Value>,
    },
    /// The log of the store went back behind what was read from it: the store lost its last writes at a failover, or was
    /// restored from a backup. Every subscription to [`Feed::Decisions`] gets it.
    LogLost {
        /// How far it had been read.
        known: Version,
        /// How far it goes now.
        found: Version,
        /// Accepted tasks that are gone. Another replica may restore those that it accepted.
        lost: Vec<TaskId>,
        /// Tasks that are gone too and that this replica accepted: it submits them again, under their ids.
        restored: Vec<TaskId>,
        /// Tasks whose ends are gone, or that ran when the writes were lost and may not run again: this replica
        /// records their ends again, as `Lost` for those that ran.
        ends_restored: Vec<TaskId>,
    },
    /// The store cannot be used: nothing is granted until [`StoreBack`](Update::StoreBack). Subscriptions without a filter
    /// get it.
    StoreAway {
        /// In the words of the store, which name it.
        reason: Arc<str>,
    },
    /// The store can be used again.
    StoreBack,
    /// Updates are missing here.
    Gap {
        /// How many, if that is known.
        missed: Option<u64>,
    },
}

/// An update as the hub passes it on.
#[derive(Clone, Debug)]
pub struct HubEvent {
    /// Its number among the events of [`Feed::News`]; 0 if it has none.
    pub seq: u64,
    /// The task that it is about; none for events of sessions.
    pub task: Option<TaskId>,
    /// The lanes that it is about: those of its task, or the one that changed.
    pub lanes: Arc<[LaneName]>,
    /// The attempt that is over, where another follows.
    pub attempt: Option<u32>,
    /// What happened.
    pub update: Update,
}

/// Which feeds contain an update.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Both,
    Only(Feed),
}

impl Audience {
    pub(super) fn of(update: &Update) -> Audience {
        match update {
            Update::Event { event, .. } if is_bookkeeping(event) => Audience::Only(Feed::Decisions),
            Update::LogLost { .. } | Update::StoreAway { .. } | Update::StoreBack => {
                Audience::Only(Feed::Decisions)
            }
            Update::Queued { .. }
            | Update::Pending { .. }
            | Update::ExternalDone { .. }
            | Update::Done { .. }
            | Update::Group { .. }
            | Update::Note { .. } => Audience::Only(Feed::News),
            Update::HeartbeatWanted { .. } => Audience::Only(Feed::Worker),
            _ => Audience::Both,
        }
    }

    pub(super) fn includes(self, feed: Feed) -> bool {
        self == Audience::Both || self == Audience::Only(feed)
    }
}

impl HubEvent {
    pub(super) fn new(update: Update, lanes: Arc<[LaneName]>) -> HubEvent {
        let task = match &update {
            Update::Event { event, .. } => task_of(event),
            Update::Queued { task, .. }
            | Update::Position { task, .. }
            | Update::Progress { task, .. }
            | Update::Delta { task, .. }
            | Update::Usage { task, .. }
            | Update::HeartbeatWanted { task, .. }
            | Update::Done { task, .. } => Some(*task),
            Update::Pending { view, .. } | Update::ExternalDone { view, .. } => Some(view.id),
            Update::Note { task, .. } => *task,
            Update::Lane { .. }
            | Update::Group { .. }
            | Update::LogLost { .. }
            | Update::StoreAway { .. }
            | Update::StoreBack
            | Update::Gap { .. } => None,
        };
        HubEvent { seq: 0, task, lanes, attempt: None, update }
    }

    /// A gap that ends with this number.
    pub(super) fn gap(seq: u64, missed: Option<u64>) -> HubEvent {
        HubEvent { seq, ..HubEvent::new(Update::Gap { missed }, Arc::new([])) }
    }

    /// Whether the event matches the filter. An event of a session matches a program's filter also by the turn that it
    /// is about; people who follow a turn do not see its session.
    pub fn fits(&self, filter: &Filter) -> bool {
        let (session, turn) = match &self.update {
            Update::Event { event, .. } if filter.feed == Feed::News => (session_of(event), None),
            _ => (None, self.turn()),
        };
        let worker = match &self.update {
            Update::HeartbeatWanted { worker, .. } => Some(worker),
            _ => None,
        };
        filter.task.is_none_or(|task| self.task.or(turn) == Some(task))
            && filter.worker.as_ref().is_none_or(|wanted| worker == Some(wanted))
            && filter.lane.as_ref().is_none_or(|lane| match session {
                Some(session) => session == lane,
                None => self.lanes.contains(lane),
            })
    }

    /// The turn that an event of a session is about.
    pub(super) fn turn(&self) -> Option<TaskId> {
        let Update::Event { event, .. } = &self.update else { return None };
        turn_of(event)
    }

    /// Whether it is the last event of its task.
    pub fn is_last(&self) -> bool {
        matches!(self.update, Update::Done { .. })
    }
}

/// Whether people do not follow it.
fn is_bookkeeping(event: &Event) -> bool {
    match event {
        Event::Session(event) => !matches!(
            event.change,
            SessionDelta::Accepted { .. }
                | SessionDelta::TurnBegan { .. }
                | SessionDelta::Taken { .. }
                | SessionDelta::Ended { .. }
        ),
        Event::Joined { .. }
        | Event::Left { .. }
        | Event::Ready { .. }
        | Event::Reserved { .. }
        | Event::Renewed { .. }
        | Event::Stopping { .. }
        | Event::DeadLetterRemoved { .. }
        | Event::AlertOver { .. }
        | Event::MessagesConfigured { .. }
        | Event::Unbound { .. }
        | Event::Noted { .. }
        | Event::FencesRaised { .. } => true,
        _ => false,
    }
}

/// The task that an event is about; none for events of sessions.
pub(super) fn task_of(event: &Event) -> Option<TaskId> {
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
        Event::DeadLetterRemoved { dead_letter, .. } => Some(*dead_letter),
        Event::Session(_)
        | Event::Configured { .. }
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
    }
}

/// The turn that an event of a session is about.
pub(super) fn turn_of(event: &Event) -> Option<TaskId> {
    let Event::Session(event) = event else { return None };
    match &event.change {
        SessionDelta::Accepted { way: Way::Steer { turn } | Way::Both { turn }, .. }
        | SessionDelta::Promoted { turn, .. }
        | SessionDelta::TurnBegan { turn, .. }
        | SessionDelta::SteeringSet { turn, .. }
        | SessionDelta::Taken { turn, .. }
        | SessionDelta::Returned { turn, .. }
        | SessionDelta::Retrying { turn, .. }
        | SessionDelta::GaveUp { turn }
        | SessionDelta::TurnOver { turn }
        | SessionDelta::Ended {
            end: MessageEnd::Delivered { turn } | MessageEnd::Steered { turn }, ..
        } => Some(*turn),
        _ => None,
    }
}

fn session_of(event: &Event) -> Option<&LaneName> {
    match event {
        Event::Session(event) => Some(&event.session),
        _ => None,
    }
}

/// The lane or session that an event is about.
pub(super) fn lane_of(event: &Event) -> Option<&LaneName> {
    match event {
        Event::Paused { lane }
        | Event::Resumed { lane }
        | Event::Draining { lane }
        | Event::Drained { lane }
        | Event::Pressure { lane, .. }
        | Event::Idle { lane }
        | Event::Alert { lane, .. }
        | Event::AlertOver { lane, .. } => Some(lane),
        event => session_of(event),
    }
}
