//! Numbers events, keeps the newest, and passes them to subscriptions.
//!
//! The hub finds the subscriptions of one task by its id, so that thousands of them cost no more than a few. While there is
//! no subscription, the engine builds no events and the hub only counts them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::fast::FixedState;
use laneway_core::{Event, LaneName, Name, TaskId, Timestamp};
use tokio::sync::watch;

use crate::events::groups::{GroupCounts, Groups};
use crate::events::ring::Ring;
use crate::events::subscription::{Feed, Filter, Reach, Since, Subscriber, Subscription};
use crate::events::update::{Audience, HubEvent, Update};

/// Sees every stored event, in order and on the engine's own loop, so it must not block.
///
/// Unlike a subscription, an observer misses nothing and costs no queue.
pub trait Observer: Send + Sync {
    /// An event was stored. `is_own`: this replica decided it, and no other one.
    fn on_event(&self, at: Timestamp, event: &Event, is_own: bool);
    /// What the program makes of its own notes in an [`Event::Noted`]: the hub publishes each as [`Update::Note`], with the
    /// task that it is about.
    fn read_notes(&self, event: &Event) -> Vec<(Option<TaskId>, serde_json::Value)>;
    /// Something befell the store: [`Update::LogLost`], [`Update::StoreAway`] or [`Update::StoreBack`].
    fn on_store(&self, update: &Update);
}

/// The event hub of an engine. Clones are the same hub.
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

struct Shared {
    /// Tells the ids of this replica from those of an earlier one.
    epoch: u64,
    queue_max: usize,
    state: Mutex<State>,
    /// Whether events are worth building. The engine reads it before each decision.
    is_listening: AtomicBool,
    /// Whether a subscription wants the output of other replicas.
    wants_remote: watch::Sender<bool>,
    observer: OnceLock<Arc<dyn Observer>>,
}

/// The engine makes the ids of tasks, so a fast hash will do.
pub(super) type ByTask<V> = HashMap<TaskId, V, FixedState>;

#[derive(Default)]
struct State {
    ring: Ring,
    of_task: ByTask<Vec<Subscriber>>,
    broad: Vec<Subscriber>,
    last_number: u64,
    /// How many subscriptions want the output of other replicas.
    remote: usize,
    /// How many subscriptions and expectations there are to [`Feed::News`].
    news: usize,
    expectations: usize,
    groups: Groups,
    is_closed: bool,
}

/// A promise to subscribe to a task that is about to be submitted: from here on no event of it is lost.
pub struct Expectation {
    hub: Hub,
    newest: u64,
}

impl Hub {
    /// A hub whose subscriptions hold up to `queue_max` events that were not read yet.
    pub(crate) fn new(started: Timestamp, queue_max: usize) -> Hub {
        Hub(Arc::new(Shared {
            epoch: started.0,
            queue_max,
            state: Mutex::default(),
            is_listening: AtomicBool::new(false),
            wants_remote: watch::Sender::new(false),
            observer: OnceLock::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes who reads, and notes what the engine must know of it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        self.0.is_listening.store(state.is_listening(), Ordering::SeqCst);
        let is_wanted = state.remote > 0;
        self.0.wants_remote.send_if_modified(|wanted| std::mem::replace(wanted, is_wanted) != is_wanted);
        changed
    }

    /// Events that match the filter, from `since` on.
    pub fn subscribe(&self, filter: Filter, since: Since) -> Subscription {
        self.change(|state| {
            let replay = state.ring.replay(&filter, since);
            state.last_number += 1;
            let (hub, number) = (self.clone(), state.last_number);
            let (subscription, subscriber) = Subscription::new(hub, number, filter, replay, self.0.queue_max);
            state.add(subscriber);
            subscription
        })
    }

    pub(super) fn unsubscribe(&self, number: u64, task: Option<TaskId>) {
        self.change(|state| state.remove(number, task));
    }

    /// Announces a subscription to a task that the caller submits next.
    pub fn expect(&self) -> Expectation {
        let newest = self.change(|state| {
            state.expectations += 1;
            state.news += 1;
            state.ring.newest()
        });
        Expectation { hub: self.clone(), newest }
    }

    /// Has this observer see every event from now on. A hub has at most one: a second is ignored.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.0.observer.get_or_init(|| observer);
    }

    /// The id of the event with this number, as clients see it.
    pub fn id_of(&self, seq: u64) -> String {
        format!("{:x}-{seq}", self.0.epoch)
    }

    /// Where a client that saw this id last resumes.
    pub fn since(&self, id: &str) -> Since {
        let parts = id.split_once('-');
        let parts = parts.and_then(|(e, seq)| Some((u64::from_str_radix(e, 16).ok()?, seq.parse().ok()?)));
        match parts {
            Some((epoch, seq)) if epoch == self.0.epoch => Since::Event(seq),
            _ => Since::Unknown,
        }
    }

    /// A gap up to the newest event, of unknown size.
    pub fn gap(&self) -> HubEvent {
        HubEvent::gap(self.lock().ring.newest(), None)
    }

    /// Whether a client that saw everything up to here has seen the end of the task.
    pub fn has_shown_end(&self, task: TaskId, seen: Since) -> bool {
        let Since::Event(seen) = seen else { return false };
        self.lock().ring.has_shown_end(task, seen)
    }

    /// The counts of a group that this replica has counted.
    pub(super) fn group(&self, group: &Name) -> Option<GroupCounts> {
        self.lock().groups.get(group)
    }

    pub(super) fn set_group(&self, group: Name, counts: GroupCounts) {
        self.lock().groups.set(group, counts);
    }

    /// Counts an event in the group of its task.
    pub(super) fn count_group(&self, group: &Name, event: &Event) -> GroupCounts {
        self.lock().groups.count(group, event)
    }

    /// Whether events are worth building.
    pub(crate) fn is_listening(&self) -> bool {
        self.0.is_listening.load(Ordering::SeqCst)
    }

    pub(super) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.0.observer.get()
    }

    /// Turns true while a subscription wants the output of other replicas.
    pub(crate) fn wants_remote(&self) -> watch::Receiver<bool> {
        self.0.wants_remote.subscribe()
    }

    /// Whether a subscription follows the task, or all tasks that wait.
    pub(super) fn follows(&self, task: TaskId) -> bool {
        let state = self.lock();
        state.follows_all() || state.of_task.contains_key(&task)
    }

    /// Whether subscriptions name tasks by their ids.
    pub(super) fn names_tasks(&self) -> bool {
        !self.lock().of_task.is_empty()
    }

    /// The tasks that subscriptions name by their ids, and whether subscriptions follow all others that wait too.
    pub(super) fn followed(&self) -> (BTreeSet<TaskId>, bool) {
        let state = self.lock();
        (state.of_task.keys().copied().collect(), state.follows_all())
    }

    /// Counts events that are not worth building. `false`: a subscription has come meanwhile, so publish them.
    pub(super) fn skip(&self, count: usize) -> bool {
        if self.is_listening() {
            return false;
        }
        let mut state = self.lock();
        let is_idle = !state.is_listening();
        if is_idle {
            state.ring.skip(count as u64);
        }
        is_idle
    }

    pub(super) fn publish(&self, event: HubEvent) {
        let mut state = self.lock();
        state.publish(event);
        if !state.has_readers() && !state.is_listening() {
            self.0.is_listening.store(false, Ordering::SeqCst);
        }
    }

    /// Passes on the output of an attempt.
    pub(crate) fn publish_output(&self, update: &Update, lanes: &[LaneName]) {
        if !self.skip(1) {
            self.publish(HubEvent::new(update.clone(), lanes.into()));
        }
    }

    /// Passes on what befell the store.
    pub(crate) fn publish_store(&self, update: Update) {
        if let Some(observer) = self.observer() {
            observer.on_store(&update);
        }
        let is_for_all = matches!(update, Update::LogLost { .. });
        let event = Arc::new(HubEvent::new(update, Arc::new([])));
        let mut state = self.lock();
        let programs = state.all().filter(|subscriber| subscriber.filter.feed == Feed::Decisions);
        programs.filter(|it| is_for_all || event.fits(&it.filter)).for_each(|it| it.send(&event));
    }

    /// Ends all subscriptions.
    pub(crate) fn close(&self) {
        self.change(|state| {
            state.is_closed = true;
            state.of_task.clear();
            state.broad.clear();
            (state.remote, state.news) = (0, state.expectations);
        });
    }

    /// The next event of a subscription, or the gap behind the last one.
    pub(super) fn receive(
        &self,
        number: u64,
        task: Option<TaskId>,
        receive: impl FnOnce() -> Option<Arc<HubEvent>>,
    ) -> Option<Arc<HubEvent>> {
        let mut state = self.lock();
        receive().or_else(|| {
            let newest = state.ring.newest();
            let subscriber = state.subscribers(task)?.iter_mut().find(|it| it.number == number)?;
            subscriber.take_gap(newest)
        })
    }
}

impl State {
    fn has_readers(&self) -> bool {
        self.expectations > 0 || !self.broad.is_empty() || !self.of_task.is_empty()
    }

    fn is_listening(&self) -> bool {
        self.has_readers() || self.ring.is_resumable()
    }

    fn follows_all(&self) -> bool {
        self.expectations > 0 || self.broad.iter().any(|subscriber| subscriber.filter.feed == Feed::News)
    }

    fn subscribers(&mut self, task: Option<TaskId>) -> Option<&mut Vec<Subscriber>> {
        match task {
            Some(task) => self.of_task.get_mut(&task),
            None => Some(&mut self.broad),
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Subscriber> {
        self.broad.iter_mut().chain(self.of_task.values_mut().flatten())
    }

    fn add(&mut self, subscriber: Subscriber) {
        if self.is_closed {
            return;
        }
        self.remote += usize::from(subscriber.filter.reach == Reach::Everywhere);
        if subscriber.filter.feed == Feed::News {
            self.news += 1;
            self.ring.mark_read();
        }
        match subscriber.filter.task {
            Some(task) => self.of_task.entry(task).or_default().push(subscriber),
            None => self.broad.push(subscriber),
        }
    }

    fn remove(&mut self, number: u64, task: Option<TaskId>) {
        let Some(subscribers) = self.subscribers(task) else { return };
        let Some(index) = subscribers.iter().position(|it| it.number == number) else { return };
        let removed = subscribers.remove(index);
        if let Some(task) = task.filter(|_| subscribers.is_empty()) {
            self.of_task.remove(&task);
        }
        self.remote -= usize::from(removed.filter.reach == Reach::Everywhere);
        self.news -= usize::from(removed.filter.feed == Feed::News);
    }

    fn publish(&mut self, event: HubEvent) {
        let audience = Audience::of(&event.update);
        let event = if audience.includes(Feed::News) { self.ring.push(event) } else { Arc::new(event) };
        if self.news > 0 {
            self.ring.mark_read();
        }
        let task = event.task.or_else(|| event.turn());
        let of_task = task.and_then(|task| self.of_task.get_mut(&task));
        for subscriber in of_task.into_iter().flatten().chain(&mut self.broad) {
            if subscriber.wants(&event, audience) {
                subscriber.send(&event);
            }
        }
    }
}

impl Expectation {
    /// All events of this task since the expectation. With [`Reach::Here`] if it runs on this replica.
    pub fn of(self, task: TaskId, reach: Reach) -> Subscription {
        let filter = Filter { reach, ..Filter::task(task).news() };
        self.hub.subscribe(filter, Since::Event(self.newest))
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.hub.change(|state| {
            state.expectations -= 1;
            state.news -= 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ring::RING_MAX;

    fn publish(hub: &Hub, times: usize) {
        for _ in 0..times {
            let event = Event::Configured { blocks: Vec::new() };
            let update = Update::Event { at: Timestamp(0), event: Arc::new(event) };
            hub.publish_output(&update, &[]);
        }
    }

    /// What a client that resumes after this event gets first: whether a gap, and how many events.
    fn replayed_after(hub: &Hub, seen: u64) -> (bool, usize) {
        let mut subscription = hub.subscribe(Filter::default().news(), Since::Event(seen));
        let replayed: Vec<Update> = std::iter::from_fn(|| subscription.try_next()).collect();
        let gaps = replayed.iter().filter(|update| matches!(update, Update::Gap { .. })).count();
        (gaps > 0, replayed.len() - gaps)
    }

    #[test]
    fn events_are_kept_for_clients_that_were_there_and_only_as_long_as_that_helps() {
        let hub = Hub::new(Timestamp(0), 1);
        // No client was there, so one that claims to have been has missed everything.
        publish(&hub, 3);
        assert_eq!(replayed_after(&hub, 0), (true, 0));
        assert_eq!(replayed_after(&hub, 3), (false, 0));
        publish(&hub, 10);
        assert_eq!(replayed_after(&hub, 3), (false, 10));
        // The ring is full; one more event, and the rest would not help without the oldest.
        publish(&hub, RING_MAX);
        assert_eq!(replayed_after(&hub, 13), (false, RING_MAX));
        publish(&hub, RING_MAX + 1);
        assert_eq!(replayed_after(&hub, 13 + RING_MAX as u64), (true, 0));
    }
}
