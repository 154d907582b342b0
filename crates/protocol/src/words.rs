//! The words of the wire for values of the scheduler.

use laneway_core::{CancelReason, End, Handler, Source, TaskStatus};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A priority: 0 to 9, or the name of a source, which stands for its priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PriorityRequest {
    /// 0 to 9; larger is more urgent.
    Level(u8),
    /// `user`, `schedule`, `agent` or `background`.
    Word(String),
}

impl PriorityRequest {
    /// The number, if it is one from 0 to 9.
    pub fn level(&self) -> Option<u8> {
        match self {
            PriorityRequest::Level(level) => {
                Some(*level).filter(|level| *level <= laneway_core::PRIORITY_MAX)
            }
            PriorityRequest::Word(_) => None,
        }
    }
}

impl PriorityRequest {
    /// The name of the source, if it is one.
    pub fn word(&self) -> Option<&str> {
        match self {
            PriorityRequest::Level(_) => None,
            PriorityRequest::Word(word) => Some(word),
        }
    }
}

impl PartialSchema for PriorityRequest {
    fn schema() -> RefOr<Schema> {
        let most = f64::from(laneway_core::PRIORITY_MAX);
        let level =
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0.0)).maximum(Some(most)).build();
        let words = ["user", "schedule", "agent", "background"];
        let word = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build();
        OneOfBuilder::new().item(level).item(word).into()
    }
}

impl ToSchema for PriorityRequest {}

/// The word for a source.
pub fn source_word(source: Source) -> &'static str {
    match source {
        Source::User => "user",
        Source::Schedule => "schedule",
        Source::Agent => "agent",
        Source::Background => "background",
    }
}

/// The source of a word.
pub fn source_from(word: &str) -> Option<Source> {
    match word {
        "user" => Some(Source::User),
        "schedule" => Some(Source::Schedule),
        "agent" => Some(Source::Agent),
        "background" => Some(Source::Background),
        _ => None,
    }
}

/// The word for the status of a live task.
pub fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Queued => "queued",
        TaskStatus::Running => "running",
        TaskStatus::Retrying => "retrying",
    }
}

/// The word for the end of a task.
pub fn end_word(end: &End) -> &'static str {
    match end {
        End::Completed => "completed",
        End::Failed { .. } => "failed",
        End::TimedOut => "timed_out",
        End::Cancelled { .. } => "cancelled",
        End::Expired => "expired",
        End::WaitTimeout => "wait_timeout",
        End::Lost => "lost",
    }
}

/// The word for the reason of a cancellation.
pub fn cancel_reason(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Caller => "caller",
        CancelReason::Cleared => "cleared",
        CancelReason::Released => "released",
        CancelReason::Parent => "parent",
        CancelReason::Interrupted => "interrupted",
        CancelReason::Steered => "steered",
        CancelReason::AgentRemoved => "agent_removed",
    }
}

/// The word for what executes the tasks of a lane.
pub fn handler_word(handler: Handler) -> &'static str {
    match handler {
        Handler::Internal => "internal",
        Handler::External => "external",
        Handler::Hybrid => "hybrid",
    }
}
