//! A stream of events to one client: past events of a task, events of the hub, and an end.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::{LaneName, TaskId, TaskStatus, Timestamp};
use laneway_engine::{Error, Filter, HubEvent, Reach, Since, Standing, Subscription, TaskHandle, Update};
use laneway_protocol::{
    AcceptedEvent, At, ChangedEvent, ClientEvent, EventName, PlaceEvent, StartedEvent, TaskEvent,
};
use serde_json::Value;

use crate::app::App;
use crate::events::encode::{encode, end_event, queued_event};
use crate::http::error::ApiResult;
use crate::service::task_view::payload_of;

/// One event for a client.
#[derive(Clone)]
pub(crate) struct StreamEvent {
    pub(crate) event: ClientEvent,
    /// Its id, to resume after it.
    pub(crate) id: Option<String>,
    pub(super) task: Option<TaskId>,
    /// `None` if the server made the event from the state of the task.
    source: Option<Arc<HubEvent>>,
}

/// A stream of events to one client.
pub(crate) struct EventStream {
    app: Arc<App>,
    subscription: Subscription,
    /// Sent before the events of the hub.
    prelude: VecDeque<StreamEvent>,
    /// The stream ends with the last event of this task.
    until_end_of: Option<TaskId>,
    /// The caller's hold on the task, released with the stream.
    hold: Option<TaskHandle>,
    /// Sent after the replayed events.
    epilogue: VecDeque<StreamEvent>,
    /// An event that was taken and not returned, because the future was dropped.
    pending: Option<StreamEvent>,
    /// The position that was sent last.
    position: Option<u64>,
    is_over: bool,
}

/// A task at one moment, and the events that follow.
pub(crate) struct TaskSnapshot {
    /// The events that led to the state of the task.
    pub(crate) past: Vec<ClientEvent>,
    pub(crate) is_live: bool,
    pub(crate) subscription: Subscription,
}

/// The filter of an HTTP client, which sees the events of all replicas.
pub(crate) fn of_all_replicas(filter: Filter) -> Filter {
    Filter { reach: Reach::Everywhere, ..filter.news() }
}

impl StreamEvent {
    fn of_state(event: ClientEvent, task: Option<TaskId>) -> StreamEvent {
        StreamEvent { event, id: None, task, source: None }
    }

    pub(super) fn name(&self) -> EventName {
        self.event.name()
    }

    pub(super) fn fits(&self, filter: &Filter) -> bool {
        match &self.source {
            Some(source) => source.fits(filter),
            None => filter.lane.is_none() && filter.task.is_none_or(|task| self.task == Some(task)),
        }
    }
}

impl EventStream {
    pub(crate) fn new(app: Arc<App>, subscription: Subscription) -> EventStream {
        EventStream {
            app,
            subscription,
            prelude: VecDeque::new(),
            until_end_of: None,
            hold: None,
            epilogue: VecDeque::new(),
            pending: None,
            position: None,
            is_over: false,
        }
    }

    /// Starts with the numbers of a lane.
    pub(crate) fn of_lane(mut self, numbers: ClientEvent) -> EventStream {
        self.prelude.push_back(StreamEvent::of_state(numbers, None));
        self
    }

    /// Starts with past events of the task and ends with its last event.
    pub(crate) fn of_task(mut self, task: TaskId, past: Vec<ClientEvent>) -> EventStream {
        self.until_end_of = Some(task);
        self.prelude = of_state(task, past);
        self
    }

    /// Starts with events of some tasks, and has no end.
    pub(crate) fn starts_with(
        mut self,
        events: impl IntoIterator<Item = (TaskId, ClientEvent)>,
    ) -> EventStream {
        let of_state = |(task, event)| StreamEvent::of_state(event, Some(task));
        self.prelude.extend(events.into_iter().map(of_state));
        self
    }

    /// Ends with past events of the task, unless the replayed events contain its end.
    pub(crate) fn then_ends_with(mut self, task: TaskId, past: Vec<ClientEvent>) -> EventStream {
        if !self.subscription.replays_end() {
            self.epilogue = of_state(task, past);
        }
        self
    }

    pub(crate) fn hold(mut self, hold: Option<TaskHandle>) -> EventStream {
        self.hold = hold;
        self
    }

    /// Starts with a gap of unknown size.
    pub(crate) fn after_gap(mut self) -> EventStream {
        let gap = self.app.handle.hub().gap();
        self.prelude.extend(self.encoded(Arc::new(gap)));
        self.prelude.rotate_right(1);
        self
    }

    /// The next event; `None` when the stream is over. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<StreamEvent> {
        if self.is_over {
            return None;
        }
        let next = match self.pending.take() {
            Some(event) => Some(event),
            None => self.next_event().await,
        };
        let Some(mut event) = next else { return self.unfinished() };
        self.add_stored(&mut event).await;
        self.is_over = matches!(event.event, ClientEvent::Done(_)) && self.until_end_of.is_some();
        Some(event)
    }

    /// Adds what the store has and the event of the hub does not: the result, or the payload.
    async fn add_stored(&mut self, event: &mut StreamEvent) {
        let is_stored = matches!(
            &event.event,
            ClientEvent::Completed(_) | ClientEvent::Failed(_) | ClientEvent::ExternalTaskPending(_)
        );
        let Some(task) = event.task.filter(|_| is_stored) else { return };
        self.pending = Some(event.clone());
        let payload = event.source.as_deref().and_then(|source| match &source.update {
            Update::Pending { view, .. } => view.payload,
            _ => None,
        });
        match &mut event.event {
            ClientEvent::Completed(completed) => {
                completed.result = self.app.result_of(task).await.unwrap_or_default();
            }
            ClientEvent::Failed(failed) => failed.result = self.app.result_of(task).await,
            ClientEvent::ExternalTaskPending(pending) => {
                // The payload of a task that has ended meanwhile may be gone.
                let found = payload_of(&self.app.handle, payload).await;
                pending.payload = found.unwrap_or_default();
            }
            _ => {}
        }
        self.pending = None;
    }

    /// The next past event; `None` after the last one.
    pub(super) async fn next_past(&mut self) -> Option<StreamEvent> {
        if self.prelude.is_empty() { None } else { self.next().await }
    }

    async fn next_event(&mut self) -> Option<StreamEvent> {
        loop {
            let event = match self.prelude.pop_front() {
                Some(event) => Some(event),
                None if self.subscription.is_live() && !self.epilogue.is_empty() => self.epilogue.pop_front(),
                None => self.next_of_hub().await?,
            };
            if let Some(event) = event.filter(|event| !self.repeats_position(event)) {
                return Some(event);
            }
        }
    }

    /// The next event of the hub, `None` in it if clients do not see it.
    async fn next_of_hub(&mut self) -> Option<Option<StreamEvent>> {
        let closing = self.app.closing.token();
        let event = tokio::select! {
            biased;
            next = self.subscription.next_event() => next?,
            () = closing.cancelled() => return None,
        };
        Some(self.encoded(event))
    }

    fn encoded(&self, source: Arc<HubEvent>) -> Option<StreamEvent> {
        let id = (source.seq > 0).then(|| self.app.handle.hub().id_of(source.seq));
        let event = encode(&source)?;
        Some(StreamEvent { event, id, task: source.task, source: Some(source) })
    }

    /// Whether the event repeats the last position.
    fn repeats_position(&mut self, event: &StreamEvent) -> bool {
        let place = match &event.event {
            ClientEvent::Queued(PlaceEvent { position, .. })
            | ClientEvent::Position(PlaceEvent { position, .. })
                if self.until_end_of.is_some() =>
            {
                *position
            }
            _ => return false,
        };
        let before = std::mem::replace(&mut self.position, place);
        event.name() == EventName::Position && before == place
    }

    /// The last event of a stream whose task has not ended when the server stops.
    fn unfinished(&mut self) -> Option<StreamEvent> {
        self.is_over = true;
        let task = self.until_end_of?;
        let error = self.app.unfinished(task, Error::Closed);
        Some(StreamEvent::of_state(ClientEvent::Error(error.problem), Some(task)))
    }
}

/// The numbers of a lane, whether it is in use or not.
pub(super) fn lane_numbers(state: &laneway_core::Scheduler, lane: &LaneName, now: Timestamp) -> ClientEvent {
    let used = state.lane(lane);
    let (running, waiting) = used.as_ref().map_or((0, 0), |view| (view.running, view.waiting));
    ClientEvent::Changed(ChangedEvent {
        at: Some(At(now)),
        lane: lane.to_string(),
        running,
        waiting: u64::from(waiting),
        max_concurrent: state.settings_for(lane).max_concurrency,
    })
}

fn of_state(task: TaskId, past: Vec<ClientEvent>) -> VecDeque<StreamEvent> {
    past.into_iter().map(|event| StreamEvent::of_state(event, Some(task))).collect()
}

impl App {
    /// The result of a task, if the history has it.
    async fn result_of(&self, task: TaskId) -> Option<Value> {
        let found = self.handle.finished(task).await.ok().flatten();
        let result = found.and_then(|(_, result)| result);
        result.and_then(|result| serde_json::from_slice(&result).ok())
    }

    /// The numbers of a lane as an event, and the events that follow.
    pub(crate) async fn lane_snapshot(&self, filter: Filter) -> (Option<ClientEvent>, Subscription) {
        let lane = filter.lane.clone().filter(|lane| filter.task.is_none() && !lane.is_session());
        let Some(lane) = lane else {
            return (None, self.handle.hub().subscribe(of_all_replicas(filter), Since::Now));
        };
        let (hub, now, asked) = (self.handle.hub().clone(), self.now(), filter.clone());
        let look = move |state: &laneway_core::Scheduler| {
            (lane_numbers(state, &lane, now), hub.subscribe(of_all_replicas(asked), Since::Now))
        };
        match self.handle.read(look).await {
            Ok((numbers, subscription)) => (Some(numbers), subscription),
            // Without the store there are no numbers, but events follow when it is back.
            Err(_) => (None, self.handle.hub().subscribe(of_all_replicas(filter), Since::Now)),
        }
    }

    /// A task and the events after `since`, with nothing missing or repeated between the two.
    pub(crate) async fn task_snapshot(&self, task: TaskId, since: Since) -> ApiResult<Option<TaskSnapshot>> {
        let hub = self.handle.hub().clone();
        let look = move |state: &laneway_core::Scheduler| {
            let view = state.task(task).map(|view| (view, Standing::of(state, task)));
            (view, hub.subscribe(of_all_replicas(Filter::task(task)), since))
        };
        let (view, subscription) = self.handle.read(look).await?;
        // A task that has ended before the look is in the hipast after it.
        let Some((view, standing)) = view else {
            let Some((finished, _)) = self.handle.finished(task).await? else { return Ok(None) };
            let end = end_event(task, &finished.end, finished.ended);
            let at = Some(At(finished.ended));
            let done = ClientEvent::Done(TaskEvent { task_id: Some(task.to_string()), at });
            return Ok(Some(TaskSnapshot { past: vec![end, done], is_live: false, subscription }));
        };
        let accepted = ClientEvent::Accepted(AcceptedEvent {
            task_id: Some(task.to_string()),
            at: Some(At(view.submitted)),
            kind: view.kind.to_string(),
            ..AcceptedEvent::default()
        });
        let now = match (view.status, &view.running) {
            (TaskStatus::Running, Some(running)) => ClientEvent::Started(StartedEvent {
                task_id: Some(task.to_string()),
                at: Some(At(running.started)),
                attempt: view.attempts,
                fence: running.fence.0,
                worker: None,
            }),
            _ => queued_event(task, &standing),
        };
        Ok(Some(TaskSnapshot { past: vec![accepted, now], is_live: true, subscription }))
    }
}
