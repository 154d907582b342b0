//! The client events, the same over SSE and WebSocket.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::event_data::{
    AcceptedEvent, AlertEvent, BoostedEvent, CancelledEvent, ChangedEvent, CompletedEvent, ConfiguredEvent,
    DeadLetteredEvent, DeltaEvent, EndedEvent, ExternalCompletedEvent, ExternalPendingEvent, FailedEvent,
    GapEvent, GroupEvent, LaneEvent, MessageEvent, NoticeEvent, PlaceEvent, PressureEvent, ProgressEvent,
    RetryingEvent, ScheduleFiredEvent, StartedEvent, TaskEvent, TurnEvent, UsageEvent,
};
use crate::problem::Problem;
use crate::sessions::MessageAnswer;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident($data:ty) = $text:literal,)*) => {
        /// The name of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum EventName {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl EventName {
            /// The text on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(EventName::$name => $text,)* }
            }

            /// The event with this text.
            pub fn from_text(text: &str) -> Option<EventName> {
                match text { $($text => Some(EventName::$name),)* _ => None }
            }
        }

        /// An event as the server sends it. Over SSE, `event` is the name of the event and `data` its data; a WebSocket
        /// frame holds both. A newer server may send events that are not listed here.
        #[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(tag = "event", content = "data", rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ClientEvent {
            $($(#[$doc])* $name($data),)*
        }

        impl ClientEvent {
            /// Its name.
            pub fn name(&self) -> EventName {
                match self { $(ClientEvent::$name(_) => EventName::$name,)* }
            }

            /// Its data.
            pub fn data(&self) -> Value {
                match self { $(ClientEvent::$name(data) => serde_json::to_value(data),)* }.unwrap_or_default()
            }
        }
    };
}

events! {
    /// A task was accepted.
    Accepted(AcceptedEvent) = "accepted",
    /// A task waits.
    Queued(PlaceEvent) = "queued",
    /// The position of a waiting task has changed.
    Position(PlaceEvent) = "position",
    /// A task has waited for a while.
    Notice(NoticeEvent) = "notice",
    /// The turn that answers these messages begins.
    Typing(TurnEvent) = "typing",
    /// An attempt starts.
    Started(StartedEvent) = "started",
    /// More of the text that an attempt produces.
    Delta(DeltaEvent) = "delta",
    /// The progress that an attempt reports.
    Progress(ProgressEvent) = "progress",
    /// What an attempt has used so far.
    Usage(UsageEvent) = "usage",
    /// The running turn has taken up these messages.
    Steered(TurnEvent) = "steered",
    /// The priority of a task has changed.
    Boosted(BoostedEvent) = "boosted",
    /// An attempt is over and another follows.
    Retrying(RetryingEvent) = "retrying",
    /// The task succeeded.
    Completed(CompletedEvent) = "completed",
    /// The task failed.
    Failed(FailedEvent) = "failed",
    /// The task ran or waited for too long: `code` says which.
    TimedOut(EndedEvent) = "timed_out",
    /// The task was cancelled.
    Cancelled(CancelledEvent) = "cancelled",
    /// The deadline of the task passed while it waited.
    Expired(EndedEvent) = "expired",
    /// The last event of a task.
    Done(TaskEvent) = "done",
    /// The numbers of a lane have changed.
    Changed(ChangedEvent) = "changed",
    /// A lane is under pressure.
    Pressure(PressureEvent) = "pressure",
    /// Nothing waits in a lane that was under pressure.
    Idle(LaneEvent) = "idle",
    /// The number of waiting tasks in a lane exceeds a threshold.
    Alert(AlertEvent) = "alert",
    /// A lane was paused.
    Paused(LaneEvent) = "paused",
    /// The pause or the drain of a lane is over.
    Resumed(LaneEvent) = "resumed",
    /// A lane takes no new work.
    Draining(LaneEvent) = "draining",
    /// The last task of a draining lane has ended.
    Drained(LaneEvent) = "drained",
    /// A task waits for a worker.
    ExternalTaskPending(ExternalPendingEvent) = "external_task_pending",
    /// A task of an external or hybrid lane has ended.
    ExternalTaskCompleted(ExternalCompletedEvent) = "external_task_completed",
    /// The worker should send a heartbeat for this task now, because it must stop or because there is a message for its turn.
    HeartbeatWanted(TaskEvent) = "heartbeat_wanted",
    /// A task failed for good and is kept as a dead letter.
    DeadLettered(DeadLetteredEvent) = "dead_lettered",
    /// A message to a session was accepted or has ended.
    Message(MessageEvent) = "message",
    /// A schedule fired.
    ScheduleFired(ScheduleFiredEvent) = "schedule_fired",
    /// A task of a group was accepted or has ended.
    Group(GroupEvent) = "group",
    /// Settings changed.
    Configured(ConfiguredEvent) = "configured",
    /// Events are missing here.
    Gap(GapEvent) = "gap",
    /// A request on a WebSocket was refused, or the stream ends before its task.
    Error(Box<Problem>) = "error",
}

/// The longest name of an agent's own event, in bytes.
const OWN_NAME_BYTES_MAX: usize = 128;

impl ClientEvent {
    /// The name and the data on the wire. An event that an agent named keeps its name and its fields, unless Laneway has an
    /// event of that name: then it is `progress`, with the name in `event`.
    pub fn on_wire(&self) -> (&str, Value) {
        if let ClientEvent::Progress(ProgressEvent { task_id, progress, event: Some(name), .. }) = self
            && EventName::from_text(name).is_none()
            && (1..=OWN_NAME_BYTES_MAX).contains(&name.len())
            && !name.contains(char::is_control)
        {
            let mut data = match progress {
                Some(Value::Object(fields)) => fields.clone(),
                other => [("data".to_owned(), other.clone().unwrap_or_default())].into_iter().collect(),
            };
            data.insert("task_id".to_owned(), task_id.clone().into());
            return (name, Value::Object(data));
        }
        (self.name().as_str(), self.data())
    }
}

/// The answer to a frame that a client sent on a WebSocket, in the form of an event. Its data has the `request_id` too.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FrameAnswer {
    /// The outcome of sending a message or a text for the running turn.
    Message(MessageAnswer),
    /// What a request to cancel found.
    Progress(ProgressEvent),
}

impl FrameAnswer {
    /// The name of the event.
    pub fn name(&self) -> EventName {
        match self {
            FrameAnswer::Message(_) => EventName::Message,
            FrameAnswer::Progress(_) => EventName::Progress,
        }
    }

    /// Its data.
    pub fn data(&self) -> Value {
        match self {
            FrameAnswer::Message(data) => serde_json::to_value(data),
            FrameAnswer::Progress(data) => serde_json::to_value(data),
        }
        .unwrap_or_default()
    }
}

/// An event as a client receives it: one on a WebSocket, or one of a stream put into the same form.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventFrame {
    /// The name of the event.
    pub event: String,
    /// Its data: see `ClientEvent`.
    pub data: Value,
    /// Its id, to resume after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn the_schema_names_events_as_the_wire_does() {
        let schema = serde_json::to_value(ClientEvent::schema()).unwrap();
        let cases = schema["oneOf"].as_array().unwrap();
        let named = |case: &Value| case["properties"]["event"]["enum"][0].as_str().map(str::to_owned);
        let names: Vec<String> = cases.iter().filter_map(named).collect();
        assert_eq!(names.len(), cases.len());
        let unknown: Vec<_> = names.iter().filter(|name| EventName::from_text(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn the_answer_to_a_frame_is_written_under_its_name() {
        let cancel = Some("cancelling".to_owned());
        let task_id = Some("7".to_owned());
        let answer = FrameAnswer::Progress(ProgressEvent { task_id, cancel, ..ProgressEvent::default() });
        let written = serde_json::to_value(&answer).unwrap();
        assert_eq!(written["event"], answer.name().as_str());
        assert_eq!(answer.data(), serde_json::json!({ "task_id": "7", "cancel": "cancelling" }));
        assert_eq!(written["data"], answer.data());
    }

    #[test]
    fn an_agents_event_keeps_its_name_and_its_fields() {
        let event = |name: &str, progress: Value| {
            let (task_id, event) = (Some("7".to_owned()), Some(name.to_owned()));
            let progress = Some(progress);
            ClientEvent::Progress(ProgressEvent { task_id, progress, event, ..ProgressEvent::default() })
        };
        let named = event("agent:action", serde_json::json!({ "action": "click" }));
        let fields = serde_json::json!({ "action": "click", "task_id": "7" });
        assert_eq!(named.on_wire(), ("agent:action", fields));
        let plain = event("step", serde_json::json!(3));
        assert_eq!(plain.on_wire(), ("step", serde_json::json!({ "data": 3, "task_id": "7" })));
        for taken in ["started", "", "a\nb", &"x".repeat(129)] {
            let event = event(taken, serde_json::json!({ "a": 1 }));
            assert_eq!(event.on_wire(), ("progress", event.data()), "{taken:?}");
        }
    }

    #[test]
    fn an_event_is_written_under_its_name() {
        let event = ClientEvent::ExternalTaskCompleted(ExternalCompletedEvent::default());
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!(written["event"], event.name().as_str());
        assert_eq!(written["data"], event.data());
    }
}
