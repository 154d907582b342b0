//! A refusal as clients see it (RFC 9457, `application/problem+json`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::code::Code;

/// Why a request was refused or a task failed, and what to do next.
///
/// `reason`, `taskId`, `error`, `agent` and `message` repeat other fields under names that clients of other servers
/// know.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:laneway:problem:<slug>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A title, the same for every refusal with this code.
    pub title: String,
    /// The status of the HTTP answer.
    pub status: u16,
    /// The code of the refusal.
    pub code: Code,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// One sentence about this refusal.
    pub detail: String,
    /// The time until the next try, in whole seconds, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The time until the next try, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The longest-running task in the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task_id: Option<String>,
    /// The lane that refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// The lane without a free slot, where that is not the lane that refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// The number of taken slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// The number of slots of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// The number of tasks that wait in the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<u32>,
    /// The largest number of tasks that may wait in the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued: Option<u32>,
    /// `setup` before the task ran, `run` after.
    pub phase: String,
    /// The code, why a task was cancelled, or `BUSY`: all slots are taken, and the request may not wait.
    pub reason: String,
    /// The same as `task_id`.
    #[serde(rename = "taskId", skip_serializing_if = "Option::is_none")]
    pub task_id_camel: Option<String>,
    /// The title of this refusal.
    pub error: String,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The same as `detail`.
    pub message: String,
}

impl Problem {
    /// A refusal before the task ran.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let detail = detail.into();
        Problem {
            kind: format!("urn:laneway:problem:{}", code.slug()),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            retryable: code.is_retryable(),
            message: detail.clone(),
            detail,
            retry_after: None,
            retry_after_ms: None,
            task_id: None,
            current_task_id: None,
            lane: None,
            blocked_by: None,
            running: None,
            max_concurrency: None,
            queue_length: None,
            max_queued: None,
            phase: "setup".to_owned(),
            reason: code.as_str().to_owned(),
            task_id_camel: None,
            error: code.title().to_owned(),
            agent: None,
        }
    }

    /// Sets the time until the next try.
    #[must_use]
    pub fn retry_after_ms(mut self, millis: u64) -> Problem {
        self.retry_after = Some(millis.div_ceil(1000));
        self.retry_after_ms = Some(millis);
        self
    }

    /// Sets the task.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> Problem {
        let task = task.into();
        self.task_id = Some(task.clone());
        self.task_id_camel = Some(task);
        self
    }

    /// Sets the phase `run`.
    #[must_use]
    pub fn of_the_run(mut self) -> Problem {
        self.phase = "run".to_owned();
        self
    }

    /// Sets the sentence.
    #[must_use]
    pub fn detailed(mut self, detail: impl Into<String>) -> Problem {
        self.detail = detail.into();
        self.message.clone_from(&self.detail);
        self
    }
}
