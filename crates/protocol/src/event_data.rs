//! The data of each event.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;

macro_rules! event_data {
    ($shared:tt $($(#[$doc:meta])* $name:ident { $($fields:tt)* })*) => {
        $(event_data!(@one $shared [$(#[$doc])*] $name { $($fields)* });)*
    };
    (@one { $($shared:tt)* } [$(#[$doc:meta])*] $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            $($shared)*
            $($(#[$field_doc])* pub $field: $type,)*
        }
    };
}

// The events of tasks.
event_data! {
    {
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub task_id: Option<String>,
        /// When the event happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub at: Option<At>,
    }

    /// A task was accepted.
    AcceptedEvent {
        /// The kind.
        kind: String,
        /// The lanes, the home lane first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lanes: Option<Vec<String>>,
        /// The priority without boosts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<u8>,
    }

    /// The position of a waiting task.
    PlaceEvent {
        /// The position in the home lane, counted from one.
        position: Option<u64>,
        /// The estimated time until the start.
        eta_ms: Option<u64>,
    }

    /// A task has waited for a while.
    NoticeEvent {
        /// How long the task has waited.
        waited_ms: u64,
        /// The number of tasks before it.
        ahead: u64,
    }

    /// An attempt starts.
    StartedEvent {
        /// The number of the attempt, counted from one.
        attempt: u32,
        /// The fence.
        fence: u64,
        /// The worker that has the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        worker: Option<Option<String>>,
    }

    /// More of the text that an attempt produces.
    DeltaEvent {
        /// The text.
        text: String,
    }

    /// The progress that an attempt reports, or what a request to cancel found.
    ProgressEvent {
        /// The report.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<Value>,
        /// The name that the agent gave the event, if it is also the name of an event of Laneway.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<String>,
        /// What a request to cancel found, on a WebSocket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cancel: Option<String>,
    }

    /// What an attempt has used so far.
    UsageEvent {
        /// The report.
        usage: Value,
    }

    /// The priority of a task has changed.
    BoostedEvent {
        /// The number of levels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        levels: Option<u8>,
        /// The new priority without boosts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<u8>,
        /// The cause: `waiting`, `deadline` or `caller`.
        by: String,
    }

    /// An attempt is over and another follows.
    RetryingEvent {
        /// The attempt that is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// The error.
        error: String,
        /// The delay before the next attempt.
        delay_ms: u64,
    }

    /// A task succeeded.
    CompletedEvent {
        /// The result.
        result: Value,
    }

    /// A task failed.
    FailedEvent {
        /// The error.
        error: String,
        /// `RUN_FAILED`, or `LOST` if its owner died.
        code: String,
        /// What the task produced all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    }

    /// A task ended by the clock.
    EndedEvent {
        /// The cause: `RUN_TIMED_OUT`, `WAIT_TIMEOUT` or `EXPIRED`.
        code: String,
    }

    /// A task was cancelled.
    CancelledEvent {
        /// The reason.
        reason: String,
        /// `CANCELLED`.
        code: String,
    }

    /// An event of a task.
    TaskEvent {}

    /// A task of an external or hybrid lane was accepted.
    ExternalPendingEvent {
        /// The kind.
        kind: String,
        /// The home lane.
        lane: String,
        /// The session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The payload.
        #[serde(default)]
        payload: Value,
        /// How long an attempt may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// How long the task may wait for a worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining_ms: Option<u64>,
    }

    /// A task of an external or hybrid lane has ended.
    ExternalCompletedEvent {
        /// Whether the attempt succeeded.
        success: bool,
        /// The kind.
        #[serde(default)]
        kind: String,
        /// The home lane.
        #[serde(default)]
        lane: String,
        /// The session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    }

    /// A task failed for good.
    DeadLetteredEvent {
        /// The error.
        error: String,
        /// The number of attempts.
        attempts: u32,
    }

    /// A schedule fired.
    ScheduleFiredEvent {
        /// The name of the schedule.
        schedule: String,
        /// The moment of the firing.
        due_at: String,
        /// `running`, or `failed` if the task was refused.
        status: String,
        /// Why the task was refused.
        error: Option<String>,
    }
}

// The events of lanes, sessions, groups and settings.
event_data! {
    {
        /// When the event happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub at: Option<At>,
    }

    /// The numbers of a lane have changed.
    ChangedEvent {
        /// The lane.
        lane: String,
        /// The number of running tasks.
        running: u32,
        /// The number of tasks that wait in the lane.
        waiting: u64,
        /// The largest number of tasks that run at once; `null` if there is no limit.
        max_concurrent: Option<u32>,
    }

    /// A lane is under pressure.
    PressureEvent {
        /// The lane.
        lane: String,
        /// The number of tasks that wait in the lane.
        waiting: u64,
    }

    /// An event of a lane.
    LaneEvent {
        /// The lane.
        lane: String,
    }

    /// The number of waiting tasks in a lane exceeds a threshold.
    AlertEvent {
        /// The lane.
        lane: String,
        /// `warning` or `critical`.
        level: String,
        /// The number of tasks that wait in the lane.
        waiting: u64,
    }

    /// The turn of a session takes messages.
    TurnEvent {
        /// The key of the session.
        session: String,
        /// The ids of the messages.
        messages: Vec<String>,
    }

    /// A message to a session was accepted or has ended.
    MessageEvent {
        /// The key of the session.
        session: String,
        /// The message.
        message_id: String,
        /// The outcome.
        outcome: String,
        /// Whether the sender should see typing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        typing: Option<bool>,
        /// The turn that answered it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<String>,
        /// The rule, reason or error of the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    }

    /// A task of a group was accepted or has ended.
    GroupEvent {
        /// The group.
        group: String,
        /// The number of tasks that have ended, failed ones included.
        done: u64,
        /// The number of tasks.
        total: u64,
        /// The number of tasks that ended without completing.
        failed: u64,
    }

    /// Settings changed.
    ConfiguredEvent {
        /// The names and patterns of the lanes.
        lanes: Vec<String>,
    }
}

/// Events are missing here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GapEvent {
    /// The number of missing events; `null` if the server does not know.
    pub missed: Option<u64>,
}
