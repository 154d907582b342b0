//! Encodes events of the hub as client events, when a client reads them.

use laneway_core::{
    AlertLevel, End, Event, LaneName, LiveTaskView, SessionDelta, SessionEvent, TaskId, Timestamp, Way,
};
use laneway_engine::{HubEvent, Standing, Update};
use laneway_protocol::{
    AcceptedEvent, AlertEvent, At, BoostedEvent, CancelledEvent, ChangedEvent, ClientEvent, CompletedEvent,
    ConfiguredEvent, DeadLetteredEvent, DeltaEvent, EndedEvent, ExternalCompletedEvent, ExternalPendingEvent,
    FailedEvent, GapEvent, GroupEvent, LaneEvent, MessageEvent, NoticeEvent, PlaceEvent, PressureEvent,
    ProgressEvent, RetryingEvent, ScheduleFiredEvent, StartedEvent, TaskEvent, TurnEvent, UsageEvent,
    cancel_reason,
};
use serde_json::Value;

use crate::http::routes::sessions::messages::ended;
use crate::service::send_message::message_text;
use crate::service::task_view;

/// The client event; `None` if clients do not see this event.
pub(crate) fn encode(event: &HubEvent) -> Option<ClientEvent> {
    let task_id = event.task.map(|task| task.to_string());
    Some(match &event.update {
        Update::Event { at, event: decided } => {
            return match event.task {
                Some(task) => of_task(decided, task, *at, event.attempt),
                None => of_queue(decided, *at),
            };
        }
        Update::Lane { at, change } => ClientEvent::Changed(ChangedEvent {
            at: Some(At(*at)),
            lane: change.lane.to_string(),
            running: change.running,
            waiting: u64::from(change.waiting),
            max_concurrent: change.max_concurrency,
        }),
        Update::Queued { position, starts_in, .. } => {
            ClientEvent::Queued(place(task_id, *position, starts_in.map(|length| length.0)))
        }
        Update::Position { position, starts_in, .. } => {
            ClientEvent::Position(place(task_id, Some(*position), starts_in.map(|length| length.0)))
        }
        Update::Progress { name, value, .. } => {
            let (progress, event) = (Some((**value).clone()), name.as_deref().map(str::to_owned));
            ClientEvent::Progress(ProgressEvent { task_id, progress, event, ..ProgressEvent::default() })
        }
        Update::Delta { text, .. } => {
            ClientEvent::Delta(DeltaEvent { task_id, text: text.to_string(), ..DeltaEvent::default() })
        }
        Update::HeartbeatWanted { task, .. } => heartbeat_wanted(*task),
        Update::Usage { value, .. } => {
            ClientEvent::Usage(UsageEvent { task_id, usage: (**value).clone(), ..UsageEvent::default() })
        }
        Update::Pending { at, view } => ClientEvent::ExternalTaskPending(ExternalPendingEvent {
            task_id,
            at: Some(At(*at)),
            kind: view.kind.to_string(),
            lane: home_lane(view),
            session: task_view::session_of(&view.lanes),
            // The stream adds it when it sends the event.
            payload: Value::Null,
            timeout_ms: view.timeout.map(|length| length.0),
            remaining_ms: view.wait_until.map(|until| until.since(*at).0),
        }),
        Update::ExternalDone { at, view, is_success } => {
            ClientEvent::ExternalTaskCompleted(ExternalCompletedEvent {
                task_id,
                at: Some(At(*at)),
                success: *is_success,
                kind: view.kind.to_string(),
                lane: home_lane(view),
                session: task_view::session_of(&view.lanes),
            })
        }
        Update::Done { at, .. } => ClientEvent::Done(TaskEvent { task_id, at: Some(At(*at)) }),
        Update::Group { at, group, counts } => ClientEvent::Group(GroupEvent {
            at: Some(At(*at)),
            group: group.to_string(),
            done: counts.done,
            total: counts.total,
            failed: counts.failed,
        }),
        Update::Note { at, content, .. } => {
            let fired: ScheduleFiredEvent = serde_json::from_value((**content).clone()).ok()?;
            ClientEvent::ScheduleFired(ScheduleFiredEvent { task_id, at: Some(At(*at)), ..fired })
        }
        Update::Gap { missed } => ClientEvent::Gap(GapEvent { missed: *missed }),
        _ => return None,
    })
}

fn home_lane(view: &LiveTaskView) -> String {
    view.lanes.first().map_or("main", LaneName::as_str).to_owned()
}

/// Asks a worker for a heartbeat of this task.
pub(crate) fn heartbeat_wanted(task: TaskId) -> ClientEvent {
    ClientEvent::HeartbeatWanted(TaskEvent { task_id: Some(task.to_string()), at: None })
}

fn of_task(event: &Event, task: TaskId, at: Timestamp, attempt: Option<u32>) -> Option<ClientEvent> {
    let (task_id, time) = (Some(task.to_string()), Some(At(at)));
    Some(match event {
        Event::Submitted { spec, priority, .. } => ClientEvent::Accepted(AcceptedEvent {
            task_id,
            at: time,
            kind: spec.kind.to_string(),
            lanes: Some(spec.lanes.iter().map(ToString::to_string).collect()),
            priority: Some(*priority),
        }),
        Event::Aged { levels, .. } => boosted(task, at, Some(*levels), None, "waiting"),
        Event::Boosted { levels, .. } => boosted(task, at, Some(*levels), None, "deadline"),
        Event::Reprioritised { priority, .. } => boosted(task, at, None, Some(*priority), "caller"),
        Event::Noticed { waited, ahead, .. } => ClientEvent::Notice(NoticeEvent {
            task_id,
            at: time,
            waited_ms: waited.0,
            ahead: u64::from(*ahead),
        }),
        Event::Granted { attempt, fence, owner, .. } => ClientEvent::Started(StartedEvent {
            task_id,
            at: time,
            attempt: *attempt,
            fence: fence.0,
            worker: Some(owner.worker().map(ToString::to_string)),
        }),
        Event::Retrying { error, at: due, .. } => {
            let (error, delay_ms) = (error.to_string(), due.since(at).0);
            ClientEvent::Retrying(RetryingEvent { task_id, at: time, attempt, error, delay_ms })
        }
        Event::Redelivered { .. } => {
            let (error, delay_ms) = ("the worker fell silent".to_owned(), 0);
            ClientEvent::Retrying(RetryingEvent { task_id, at: time, attempt, error, delay_ms })
        }
        Event::Ended { end, .. } => end_event(task, end, at),
        Event::DeadLettered { error, attempts, .. } => {
            let (error, attempts) = (error.to_string(), *attempts);
            ClientEvent::DeadLettered(DeadLetteredEvent { task_id, at: time, error, attempts })
        }
        _ => return None,
    })
}

/// Events of lanes, sessions and settings.
fn of_queue(event: &Event, at: Timestamp) -> Option<ClientEvent> {
    let at = Some(At(at));
    let of_lane = |lane: &LaneName| LaneEvent { at, lane: lane.to_string() };
    Some(match event {
        Event::Paused { lane } => ClientEvent::Paused(of_lane(lane)),
        Event::Resumed { lane } => ClientEvent::Resumed(of_lane(lane)),
        Event::Draining { lane } => ClientEvent::Draining(of_lane(lane)),
        Event::Drained { lane } => ClientEvent::Drained(of_lane(lane)),
        Event::Idle { lane } => ClientEvent::Idle(of_lane(lane)),
        Event::Pressure { lane, waiting } => {
            let (lane, waiting) = (lane.to_string(), u64::from(*waiting));
            ClientEvent::Pressure(PressureEvent { at, lane, waiting })
        }
        Event::Alert { lane, level, waiting } => {
            let (level, waiting) = (alert_word(*level).to_owned(), u64::from(*waiting));
            ClientEvent::Alert(AlertEvent { at, lane: lane.to_string(), level, waiting })
        }
        Event::Configured { blocks } => {
            let lanes = blocks.iter().map(|block| block.lanes.as_str().to_owned()).collect();
            ClientEvent::Configured(ConfiguredEvent { at, lanes })
        }
        Event::Session(event) => return of_session(event, at),
        _ => return None,
    })
}

fn of_session(event: &SessionEvent, at: Option<At>) -> Option<ClientEvent> {
    let session = event.session.session_key().unwrap_or_default().to_owned();
    Some(match &event.change {
        SessionDelta::Accepted { message, way } => {
            let outcome = match way {
                Way::Line => "queued",
                Way::Steer { .. } => "steered",
                Way::Both { .. } => "steered_and_queued",
            };
            ClientEvent::Message(MessageEvent {
                at,
                session,
                message_id: message_text(&message.id),
                outcome: outcome.to_owned(),
                // People in the session see typing before the turn begins.
                typing: Some(true),
                ..MessageEvent::default()
            })
        }
        SessionDelta::TurnBegan { messages, .. } => {
            let messages = messages.iter().map(message_text).collect();
            ClientEvent::Typing(TurnEvent { at, session, messages })
        }
        SessionDelta::Taken { messages, .. } => {
            let messages = messages.iter().map(message_text).collect();
            ClientEvent::Steered(TurnEvent { at, session, messages })
        }
        SessionDelta::Ended { message, end } => {
            let (outcome, turn, detail) = ended(end);
            ClientEvent::Message(MessageEvent {
                at,
                session,
                message_id: message_text(message),
                outcome: outcome.to_owned(),
                typing: None,
                task_id: turn.map(|turn| turn.to_string()),
                detail,
            })
        }
        _ => return None,
    })
}

fn boosted(
    task: TaskId,
    at: Timestamp,
    levels: Option<u8>,
    priority: Option<u8>,
    by: &'static str,
) -> ClientEvent {
    let (task_id, at) = (Some(task.to_string()), Some(At(at)));
    ClientEvent::Boosted(BoostedEvent { task_id, at, levels, priority, by: by.to_owned() })
}

/// The end of a task. The stream adds the result when it sends the event.
pub(super) fn end_event(task: TaskId, end: &End, at: Timestamp) -> ClientEvent {
    let (task_id, at) = (Some(task.to_string()), Some(At(at)));
    let failed = |error: &str, code: &str| FailedEvent {
        task_id: task_id.clone(),
        at,
        error: error.to_owned(),
        code: code.to_owned(),
        result: None,
    };
    let ended = |code: &str| EndedEvent { task_id: task_id.clone(), at, code: code.to_owned() };
    match end {
        End::Completed => {
            ClientEvent::Completed(CompletedEvent { task_id, at, result: serde_json::Value::Null })
        }
        End::Failed { error } => ClientEvent::Failed(failed(error, "RUN_FAILED")),
        End::Lost => ClientEvent::Failed(failed("the owner of the attempt is gone", "LOST")),
        End::TimedOut => ClientEvent::TimedOut(ended("RUN_TIMED_OUT")),
        End::WaitTimeout => ClientEvent::TimedOut(ended("WAIT_TIMEOUT")),
        End::Expired => ClientEvent::Expired(ended("EXPIRED")),
        End::Cancelled { reason } => {
            let (reason, code) = (cancel_reason(*reason).to_owned(), "CANCELLED".to_owned());
            ClientEvent::Cancelled(CancelledEvent { task_id, at, reason, code })
        }
    }
}

/// The position of a waiting task.
pub(super) fn queued_event(task: TaskId, standing: &Standing) -> ClientEvent {
    let eta_ms = standing.starts_in.map(|length| length.0);
    ClientEvent::Queued(place(Some(task.to_string()), standing.position, eta_ms))
}

fn place(task_id: Option<String>, position: Option<usize>, eta_ms: Option<u64>) -> PlaceEvent {
    PlaceEvent { task_id, at: None, position: position.map(|place| place as u64), eta_ms }
}

/// The word for the level of an alert.
pub(crate) fn alert_word(level: AlertLevel) -> &'static str {
    match level {
        AlertLevel::Warning => "warning",
        AlertLevel::Critical => "critical",
    }
}
