//! One event as watchers see it, put into words only when somebody hears it.

use std::sync::Arc;

use laneway_core::{AlertLevel, End, Event, LaneName, TaskId, Timestamp};
use laneway_engine::Update;
use laneway_protocol::{At, EventName, cancel_reason};
use serde_json::{Value, json};

use crate::events::hub::Filter;

/// Something that happened.
pub(crate) struct Happening {
    /// Where it stands among all events of this process.
    pub(crate) seq: u64,
    pub(crate) name: EventName,
    pub(crate) task: Option<TaskId>,
    /// The lanes that it concerns.
    pub(crate) lanes: Arc<[LaneName]>,
    /// The attempt that is over, where another follows.
    pub(crate) attempt: Option<u32>,
    at: Option<Timestamp>,
    what: What,
}

enum What {
    Update(Update),
    /// Work for a worker was accepted, with this event.
    Pending(Arc<Event>),
    Made(Value),
}

impl Happening {
    /// Something that this server knows of by itself.
    pub(crate) fn made(name: EventName, task: Option<TaskId>, data: Value) -> Happening {
        Happening { seq: 0, name, task, lanes: Arc::new([]), attempt: None, at: None, what: What::Made(data) }
    }

    /// Work for a worker was accepted, with this event.
    pub(crate) fn pending(task: TaskId, accepted: Arc<Event>) -> Happening {
        let (name, what) = (EventName::ExternalTaskPending, What::Pending(accepted));
        Happening { seq: 0, name, task: Some(task), lanes: Arc::new([]), attempt: None, at: None, what }
    }

    pub(crate) fn in_lanes(mut self, lanes: Arc<[LaneName]>) -> Happening {
        self.lanes = lanes;
        self
    }

    pub(crate) fn at(mut self, at: Timestamp) -> Happening {
        self.at = Some(at);
        self
    }

    /// Events are missing up to this place.
    pub(crate) fn gap(seq: u64, missed: Option<u64>) -> Happening {
        let gap = Happening::made(EventName::Gap, None, json!({ "missed": missed }));
        Happening { seq, ..gap }
    }

    /// What an update of the engine means to watchers; `None`: nothing.
    pub(crate) fn of(update: Update) -> Option<Happening> {
        let (name, task, lane, at) = match &update {
            Update::Event { at, event } => {
                let (name, task, lane) = of_event(event)?;
                (name, task, lane, Some(*at))
            }
            Update::Lane { at, change } => (EventName::Changed, None, Some(change.lane.clone()), Some(*at)),
            Update::Progress { task, .. } => (EventName::Progress, Some(*task), None, None),
            Update::Delta { task, .. } => (EventName::Delta, Some(*task), None, None),
            _ => return None,
        };
        let lanes = lane.map_or_else(|| Arc::new([]) as Arc<[LaneName]>, |lane| Arc::new([lane]));
        Some(Happening { seq: 0, name, task, lanes, attempt: None, at, what: What::Update(update) })
    }

    pub(crate) fn fits(&self, filter: &Filter) -> bool {
        filter.task.is_none_or(|task| self.task == Some(task))
            && filter.lane.as_ref().is_none_or(|lane| self.lanes.contains(lane))
    }

    /// What there is to tell of it.
    pub(crate) fn data(&self) -> Value {
        let mut data = match &self.what {
            What::Made(data) => data.clone(),
            What::Pending(event) => pending_data(event),
            What::Update(Update::Event { event, .. }) => data_of(event, self.at),
            What::Update(Update::Lane { change, .. }) => json!({
                "lane": change.lane.as_str(),
                "running": change.running,
                "waiting": change.waiting,
                "max_concurrent": change.max_concurrency,
            }),
            What::Update(Update::Progress { value, .. }) => json!({ "progress": &**value }),
            What::Update(Update::Delta { text, .. }) => json!({ "text": &**text }),
            What::Update(_) => json!({}),
        };
        if let Some(object) = data.as_object_mut() {
            if let Some(task) = self.task {
                object.insert("task_id".to_owned(), task.to_string().into());
            }
            if let Some(attempt) = self.attempt {
                object.insert("attempt".to_owned(), attempt.into());
            }
            if let Some(at) = self.at {
                object.insert("at".to_owned(), At(at).to_string().into());
            }
        }
        data
    }

    /// Whether it is the last event of its task.
    pub(crate) fn is_last(&self) -> bool {
        self.name == EventName::Done
    }
}

fn of_event(event: &Event) -> Option<(EventName, Option<TaskId>, Option<LaneName>)> {
    let of_task = |name, task: &TaskId| Some((name, Some(*task), None));
    let of_lane = |name, lane: &LaneName| Some((name, None, Some(lane.clone())));
    match event {
        Event::Submitted { task, .. } => of_task(EventName::Accepted, task),
        Event::Aged { task, .. } | Event::Boosted { task, .. } | Event::Reprioritised { task, .. } => {
            of_task(EventName::Boosted, task)
        }
        Event::Noticed { task, .. } => of_task(EventName::Notice, task),
        Event::Granted { task, .. } => of_task(EventName::Started, task),
        Event::Retrying { task, .. } | Event::Redelivered { task, .. } => of_task(EventName::Retrying, task),
        Event::Ended { task, end } => {
            let name = match end {
                End::Completed => EventName::Completed,
                End::Failed { .. } | End::Lost => EventName::Failed,
                End::TimedOut | End::WaitTimeout => EventName::TimedOut,
                End::Cancelled { .. } => EventName::Cancelled,
                End::Expired => EventName::Expired,
            };
            of_task(name, task)
        }
        Event::DeadLettered { task, .. } => of_task(EventName::DeadLettered, task),
        Event::Paused { lane } => of_lane(EventName::Paused, lane),
        Event::Resumed { lane } => of_lane(EventName::Resumed, lane),
        Event::Draining { lane } => of_lane(EventName::Draining, lane),
        Event::Drained { lane } => of_lane(EventName::Drained, lane),
        Event::Pressure { lane, .. } => of_lane(EventName::Pressure, lane),
        Event::Idle { lane } => of_lane(EventName::Idle, lane),
        Event::Alert { lane, .. } => of_lane(EventName::Alert, lane),
        Event::Configured { .. } => Some((EventName::Configured, None, None)),
        Event::Session(event) => {
            let (name, _) = crate::http::routes::sessions::told(&event.change)?;
            Some((name, None, Some(event.session.clone())))
        }
        _ => None,
    }
}

fn pending_data(accepted: &Event) -> Value {
    let Event::Submitted { spec, .. } = accepted else { return json!({}) };
    let home = spec.lanes.first().map_or("main", |lane| lane.as_str());
    json!({ "kind": spec.kind.as_str(), "lane": home })
}

fn data_of(event: &Event, at: Option<Timestamp>) -> Value {
    match event {
        Event::Submitted { spec, priority, .. } => {
            let lanes: Vec<&str> = spec.lanes.iter().map(LaneName::as_str).collect();
            json!({ "kind": spec.kind.as_str(), "lanes": lanes, "priority": priority })
        }
        Event::Aged { levels, .. } => json!({ "levels": levels, "by": "waiting" }),
        Event::Boosted { levels, .. } => json!({ "levels": levels, "by": "deadline" }),
        Event::Reprioritised { priority, .. } => json!({ "priority": priority, "by": "caller" }),
        Event::Noticed { waited, ahead, .. } => json!({ "waited_ms": waited.0, "ahead": ahead }),
        Event::Granted { attempt, fence, worker, .. } => {
            json!({ "attempt": attempt, "fence": fence.0, "worker": worker.as_ref().map(|name| name.as_str()) })
        }
        Event::Retrying { error, at: due, .. } => {
            let delay = due.since(at.unwrap_or(*due)).0;
            json!({ "error": &**error, "delay_ms": delay })
        }
        Event::Redelivered { .. } => json!({ "error": "the worker fell silent", "delay_ms": 0 }),
        Event::Ended { end, .. } => end_data(end),
        Event::DeadLettered { error, attempts, .. } => json!({ "error": &**error, "attempts": attempts }),
        Event::Pressure { lane, waiting } => json!({ "lane": lane.as_str(), "waiting": waiting }),
        Event::Alert { lane, level, waiting } => {
            let level = alert_word(*level);
            json!({ "lane": lane.as_str(), "level": level, "waiting": waiting })
        }
        Event::Paused { lane }
        | Event::Resumed { lane }
        | Event::Draining { lane }
        | Event::Drained { lane }
        | Event::Idle { lane } => json!({ "lane": lane.as_str() }),
        Event::Session(event) => {
            let told = crate::http::routes::sessions::told(&event.change);
            let mut data = told.map_or_else(|| json!({}), |(_, data)| data);
            data["session"] = event.session.session_key().into();
            data
        }
        Event::Configured { blocks } => {
            let lanes: Vec<&str> = blocks.iter().map(|block| block.lanes.as_str()).collect();
            json!({ "lanes": lanes })
        }
        _ => json!({}),
    }
}

/// How a task ended, as its last event but one tells it; a result is added where it is read.
pub(crate) fn end_data(end: &End) -> Value {
    match end {
        End::Completed => json!({}),
        End::Failed { error } => json!({ "error": &**error, "code": "RUN_FAILED" }),
        End::Lost => json!({ "error": "whoever ran it is gone", "code": "LOST" }),
        End::TimedOut => json!({ "code": "RUN_TIMED_OUT" }),
        End::WaitTimeout => json!({ "code": "WAIT_TIMEOUT" }),
        End::Cancelled { reason } => json!({ "reason": cancel_reason(*reason), "code": "CANCELLED" }),
        End::Expired => json!({ "code": "EXPIRED" }),
    }
}

/// The name of the event with which a task that ended so is told.
pub(crate) fn end_name(end: &End) -> EventName {
    let event = Event::Ended { task: TaskId(0), end: end.clone() };
    of_event(&event).map_or(EventName::Failed, |(name, ..)| name)
}

/// How bad an alert is, as clients read it.
pub(crate) fn alert_word(level: AlertLevel) -> &'static str {
    match level {
        AlertLevel::Warning => "warning",
        AlertLevel::Critical => "critical",
    }
}
