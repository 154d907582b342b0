//! From a stored batch to the events of the hub.

use std::sync::Arc;

use laneway_core::{CancelReason, End, Event, Handler, LaneName, LiveTaskView, TaskId, Timestamp};

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;
use crate::events::groups::moved_group;
use crate::events::hub::ByTask;
use crate::events::update::{HubEvent, Update, lane_of, turn_of};

impl Engine {
    /// Shows a batch to the observer and counts it. Returns whether that is all: no subscription would get its events.
    pub(crate) fn skips_events(&mut self, batch: &Batch) -> bool {
        let hub = &self.resources.hub;
        if let Some(observer) = hub.observer() {
            batch.events.iter().for_each(|event| observer.on_event(batch.at, event, !batch.is_remote));
        }
        if !hub.skip(batch.events.len()) {
            return false;
        }
        let mut departed = batch.departed.iter().peekable();
        for event in &batch.events {
            let ended = match event {
                Event::Ended { task, .. } => departed.next_if(|view| view.id == *task),
                _ => None,
            };
            if let Some(group) = moved_group(event, ended) {
                hub.count_group(group, event);
            }
        }
        self.positions.forget();
        true
    }

    /// Publishes a stored batch to subscriptions.
    pub(crate) fn publish_events(&mut self, batch: &mut Batch) {
        let events: Vec<Arc<Event>> = batch.events.drain(..).map(Arc::new).collect();
        let ended: ByTask<&LiveTaskView> = batch.departed.iter().map(|view| (view.id, view)).collect();
        let mut queued = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let later = &events[index + 1..];
            self.publish_event(batch.at, event, later, &ended, &mut queued);
        }
        for change in batch.changes.drain(..) {
            let lanes = Arc::new([change.lane.clone()]);
            self.resources.hub.publish(HubEvent::new(Update::Lane { at: batch.at, change }, lanes));
        }
        queued.into_iter().for_each(|task| self.publish_queued(task));
        self.publish_positions(!events.is_empty());
    }

    fn publish_event(
        &mut self,
        at: Timestamp,
        event: &Arc<Event>,
        later: &[Arc<Event>],
        ended: &ByTask<&LiveTaskView>,
        queued: &mut Vec<TaskId>,
    ) {
        let update = HubEvent::new(Update::Event { at, event: Arc::clone(event) }, Arc::new([]));
        let task = update.task.or_else(|| turn_of(event));
        let view = task.and_then(|task| match ended.get(&task) {
            Some(view) => Some((*view).clone()),
            None => self.scheduler.task(task),
        });
        let attempt = match &**event {
            Event::Retrying { task, .. } | Event::Redelivered { task, .. } => {
                let is_start = |event: &&Arc<Event>| is_grant_of(event, *task);
                let started_later = later.iter().filter(is_start).count();
                view.as_ref().map(|view| view.attempts - started_later as u32)
            }
            _ => None,
        };
        let lanes = lanes_of(event, view.as_ref());
        self.resources.hub.publish(HubEvent { lanes: Arc::clone(&lanes), attempt, ..update });
        match &**event {
            Event::Submitted { task, .. }
            | Event::Ready { task }
            | Event::Retrying { task, .. }
            | Event::Redelivered { task, .. }
                if self.resources.hub.follows(*task) =>
            {
                queued.push(*task);
            }
            Event::Granted { task, .. } | Event::Ended { task, .. } => self.positions.remove(*task),
            _ => {}
        }
        self.publish_derived(at, event, view.as_ref(), &lanes);
    }

    /// Publishes what follows from an event for people.
    fn publish_derived(
        &self,
        at: Timestamp,
        event: &Arc<Event>,
        view: Option<&LiveTaskView>,
        lanes: &Arc<[LaneName]>,
    ) {
        let publish = |update| self.resources.hub.publish(HubEvent::new(update, Arc::clone(lanes)));
        match &**event {
            Event::Submitted { .. } => {
                if let Some(view) = view.filter(|view| view.handler != Handler::Internal) {
                    let update = Update::Pending { at, view: Arc::new(view.clone()) };
                    self.resources.hub.publish(HubEvent::new(update, with_session(lanes)));
                }
            }
            Event::Stopping { .. } | Event::Session(_) => self.publish_wanted_heartbeat(view, lanes),
            Event::Ended { task, end } => {
                // Its owner has not ended the attempt, and does not know yet.
                if matches!(end, End::Cancelled { reason: CancelReason::Released }) {
                    self.publish_wanted_heartbeat(view, lanes);
                }
                if let Some(view) = view.filter(|view| view.handler != Handler::Internal) {
                    let (view, is_success) = (Arc::new(view.clone()), *end == End::Completed);
                    let update = Update::ExternalDone { at, view, is_success };
                    self.resources.hub.publish(HubEvent::new(update, with_session(lanes)));
                }
                publish(Update::Done { at, task: *task });
            }
            Event::Noted { .. } => {
                let notes = self.resources.hub.observer().map(|observer| observer.read_notes(event));
                for (task, content) in notes.into_iter().flatten() {
                    let lanes = task.and_then(|task| self.scheduler.task(task)).map(|view| view.lanes);
                    let update = Update::Note { at, task, content: Arc::new(content) };
                    self.resources.hub.publish(HubEvent::new(update, lanes.unwrap_or_default().into()));
                }
            }
            _ => {}
        }
        if let Some(group) = moved_group(event, view) {
            let counts = self.resources.hub.count_group(group, event);
            let update = Update::Group { at, group: group.clone(), counts };
            self.resources.hub.publish(HubEvent::new(update, Arc::new([])));
        }
    }

    /// Tells the worker that owns an attempt that it has something to hear.
    fn publish_wanted_heartbeat(&self, view: Option<&LiveTaskView>, lanes: &Arc<[LaneName]>) {
        let Some(view) = view else { return };
        let Some(worker) = view.running.as_ref().and_then(|running| running.worker().cloned()) else {
            return;
        };
        // An attempt that has ended is unknown to the scheduler.
        if self.scheduler.task(view.id).is_none() || self.scheduler.wants_heartbeat(view.id) {
            let update = Update::HeartbeatWanted { task: view.id, worker };
            self.resources.hub.publish(HubEvent::new(update, Arc::clone(lanes)));
        }
    }

    /// Publishes an update of a task that is live.
    pub(super) fn publish_of_task(&self, task: TaskId, update: Update) {
        let lanes = self.scheduler.task(task).map(|view| view.lanes).unwrap_or_default();
        self.resources.hub.publish(HubEvent::new(update, lanes.into()));
    }
}

/// The lanes, and the session lane of each tool lane among them: those who follow a session see what its tools wait for.
fn with_session(lanes: &[LaneName]) -> Arc<[LaneName]> {
    let sessions = lanes.iter().filter_map(LaneName::session_of_tool_lane);
    lanes.iter().cloned().chain(sessions).collect()
}

fn is_grant_of(event: &Event, task: TaskId) -> bool {
    matches!(event, Event::Granted { task: granted, .. } if *granted == task)
}

/// The lane or session of an event, and the lanes of its task.
fn lanes_of(event: &Event, view: Option<&LiveTaskView>) -> Arc<[LaneName]> {
    let lanes = view.map_or(&[][..], |view| &view.lanes);
    lane_of(event).into_iter().chain(lanes).cloned().collect()
}
