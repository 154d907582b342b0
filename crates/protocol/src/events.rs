//! Events as clients see them, the same over SSE and WebSocket.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum EventName {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl EventName {
            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(EventName::$name => $text,)* }
            }

            /// The event that is written so.
            pub fn from_text(text: &str) -> Option<EventName> {
                match text { $($text => Some(EventName::$name),)* _ => None }
            }
        }
    };
}

names! {
    /// A task was accepted.
    Accepted = "accepted",
    /// It waits: `{position, eta_ms}`.
    Queued = "queued",
    /// Its place in line changed: `{position, eta_ms}`.
    Position = "position",
    /// It has waited for a while: `{waited_ms, ahead}`.
    Notice = "notice",
    /// A message was accepted; somebody will answer.
    Typing = "typing",
    /// An attempt starts: `{attempt}`.
    Started = "started",
    /// More of what it says: `{text}`.
    Delta = "delta",
    /// How far it is.
    Progress = "progress",
    /// Something was said to the running turn.
    Steered = "steered",
    /// Waiting or its deadline raised its priority.
    Boosted = "boosted",
    /// Another attempt follows the one that is over: `{attempt, delay_ms, error}`.
    Retrying = "retrying",
    /// It succeeded: `{result}`.
    Completed = "completed",
    /// It did not succeed: `{error}`.
    Failed = "failed",
    /// It took too long, or waited too long.
    TimedOut = "timed_out",
    /// It was cancelled: `{reason}`.
    Cancelled = "cancelled",
    /// Its deadline passed while it waited.
    Expired = "expired",
    /// The last event of a task.
    Done = "done",
    /// A lane's numbers: `{lane, running, waiting, max_concurrent}`.
    Changed = "changed",
    /// A lane is under pressure.
    Pressure = "pressure",
    /// Nothing waits any more in a lane that was under pressure.
    Idle = "idle",
    /// A line grew over a threshold: `{level, waiting}`.
    Alert = "alert",
    /// A lane was paused.
    Paused = "paused",
    /// A pause or a drain is over.
    Resumed = "resumed",
    /// A lane takes no new work.
    Draining = "draining",
    /// The last task of a draining lane has ended.
    Drained = "drained",
    /// A task waits for a worker.
    ExternalTaskPending = "external_task_pending",
    /// A worker has finished a task.
    ExternalTaskCompleted = "external_task_completed",
    /// A task could not be done and is kept as a dead letter.
    DeadLettered = "dead_lettered",
    /// A message to a session: `{outcome}`.
    Message = "message",
    /// A schedule fired.
    ScheduleFired = "schedule_fired",
    /// Tasks that belong together moved: `{group, done, total, failed}`.
    Group = "group",
    /// Settings changed.
    Configured = "configured",
    /// Events are missing here: `{missed}`, or `null` when nobody can say how many.
    Gap = "gap",
    /// Something was refused: a problem.
    Error = "error",
}

/// An event on a WebSocket.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventFrame {
    /// Which event.
    pub event: String,
    /// What there is to tell of it.
    pub data: Value,
    /// Where it stands in the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
