//! One reader of the hub: what it asked for, and its bounded queue.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::{LaneName, Name, TaskId};
use tokio::sync::mpsc;

use crate::events::hub::Hub;
use crate::events::update::{Audience, HubEvent, Update};

/// Which events a subscription gets: those that match everything that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only events of this task.
    pub task: Option<TaskId>,
    /// Only events of this lane and of tasks that name it.
    pub lane: Option<LaneName>,
    /// Only what this worker should hear.
    pub worker: Option<Name>,
    /// How much detail.
    pub feed: Feed,
    /// Whose output.
    pub reach: Reach,
}

/// How much detail a subscription gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feed {
    /// Every decision of the scheduler, for programs. Positions only of a task that is named by its id.
    #[default]
    Decisions,
    /// What people follow: no leases and other bookkeeping, but every position in line, ends and groups. The hub
    /// numbers these events and keeps the newest.
    News,
    /// When a worker should send a heartbeat.
    Worker,
}

/// Whose output ([`Update::Delta`], [`Update::Progress`]) a subscription gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// That of attempts of this replica.
    #[default]
    Here,
    /// Also that of other replicas on the same store. Costs a connection to the store while such a subscription exists.
    Everywhere,
}

/// Where a subscription starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// With the next event.
    Now,
    /// After the event with this number.
    Event(u64),
    /// After an event that this hub does not know: the subscription starts with a gap.
    Unknown,
}

impl Filter {
    /// Only events of this task.
    pub fn task(task: TaskId) -> Filter {
        Filter { task: Some(task), ..Filter::default() }
    }

    /// Only events of this lane and of tasks that name it.
    pub fn lane(lane: LaneName) -> Filter {
        Filter { lane: Some(lane), ..Filter::default() }
    }

    /// When this worker should send a heartbeat for one of its attempts.
    pub fn worker(worker: Name) -> Filter {
        Filter { worker: Some(worker), feed: Feed::Worker, ..Filter::default() }
    }

    /// With the detail that people follow.
    #[must_use]
    pub fn news(self) -> Filter {
        Filter { feed: Feed::News, ..self }
    }

    /// With the output of attempts on other replicas.
    #[must_use]
    pub fn everywhere(self) -> Filter {
        Filter { reach: Reach::Everywhere, ..self }
    }
}

/// A stream of events, in order.
pub struct Subscription {
    hub: Hub,
    number: u64,
    task: Option<TaskId>,
    replay: VecDeque<Arc<HubEvent>>,
    receiver: mpsc::Receiver<Arc<HubEvent>>,
}

/// The hub's end of a subscription.
pub(super) struct Subscriber {
    pub(super) number: u64,
    pub(super) filter: Filter,
    sender: mpsc::Sender<Arc<HubEvent>>,
    missed: u64,
}

impl Subscription {
    pub(super) fn new(
        hub: Hub,
        number: u64,
        filter: Filter,
        replay: VecDeque<Arc<HubEvent>>,
        queue_max: usize,
    ) -> (Subscription, Subscriber) {
        let (sender, receiver) = mpsc::channel(queue_max.max(1));
        let task = filter.task;
        (
            Subscription { hub, number, task, replay, receiver },
            Subscriber { number, filter, sender, missed: 0 },
        )
    }

    /// The next update; `None` when the engine has ended. A reader that is too slow gets an [`Update::Gap`] where
    /// updates are missing.
    pub async fn next(&mut self) -> Option<Update> {
        Some(self.next_event().await?.update.clone())
    }

    /// The next update, if there is one already.
    pub fn try_next(&mut self) -> Option<Update> {
        Some(self.try_next_event()?.update.clone())
    }

    /// The next update with its number and lanes.
    pub async fn next_event(&mut self) -> Option<Arc<HubEvent>> {
        match self.try_next_event() {
            Some(event) => Some(event),
            None => self.receiver.recv().await,
        }
    }

    /// Whether the replayed events contain the end of the task.
    pub fn replays_end(&self) -> bool {
        self.replay.iter().any(|event| event.is_last())
    }

    /// Whether all replayed events have been read.
    pub fn is_live(&self) -> bool {
        self.replay.is_empty()
    }

    fn try_next_event(&mut self) -> Option<Arc<HubEvent>> {
        if let Some(event) = self.replay.pop_front() {
            return Some(event);
        }
        // Under the lock of the hub, so that the gap stays behind everything that was sent before it.
        let (hub, receiver) = (&self.hub, &mut self.receiver);
        hub.receive(self.number, self.task, || receiver.try_recv().ok())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.unsubscribe(self.number, self.task);
    }
}

impl Subscriber {
    pub(super) fn wants(&self, event: &HubEvent, audience: Audience) -> bool {
        audience.includes(self.filter.feed) && event.fits(&self.filter)
    }

    pub(super) fn send(&mut self, event: &Arc<HubEvent>) {
        // The gap goes first, so that it stands where updates are missing.
        if self.missed > 0 {
            let gap = Arc::new(HubEvent::gap(event.seq.saturating_sub(1), Some(self.missed)));
            if self.sender.try_send(gap).is_ok() {
                self.missed = 0;
            }
        }
        if self.missed > 0 || self.sender.try_send(Arc::clone(event)).is_err() {
            self.missed += 1;
        }
    }

    /// The gap that the reader has not been sent yet.
    pub(super) fn take_gap(&mut self, newest: u64) -> Option<Arc<HubEvent>> {
        let missed = std::mem::take(&mut self.missed);
        (missed > 0).then(|| Arc::new(HubEvent::gap(newest, Some(missed))))
    }
}
