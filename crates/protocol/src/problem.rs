//! A refusal as clients see it (RFC 9457, `application/problem+json`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::code::Code;

/// Why something was refused or did not succeed, and what to do next.
///
/// `reason`, `taskId`, `error`, `agent` and `message` say the same things under names that clients of other servers
/// know.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:laneway:problem:<slug>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A few words, the same for every refusal with this code.
    pub title: String,
    /// The status of the HTTP answer.
    pub status: u16,
    /// What sort of refusal it is.
    pub code: Code,
    /// Whether asking again, unchanged, could help.
    pub retryable: bool,
    /// One sentence about this refusal.
    pub detail: String,
    /// When to come back, in whole seconds, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// When to come back, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The task that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The task that has held a slot of the lane for longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_task_id: Option<String>,
    /// The lane that refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// How many of its slots are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// How many it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// How many tasks wait in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<u32>,
    /// How many may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued: Option<u32>,
    /// `setup` before it ran, `run` after.
    pub phase: String,
    /// The code, or why a task was cancelled.
    pub reason: String,
    /// As `task_id`.
    #[serde(rename = "taskId", skip_serializing_if = "Option::is_none")]
    pub task_id_camel: Option<String>,
    /// The title, in the words of the refusal.
    pub error: String,
    /// The agent that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As `detail`.
    pub message: String,
}

impl Problem {
    /// A refusal before anything ran.
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

    /// Says when to come back.
    #[must_use]
    pub fn retry_after_ms(mut self, millis: u64) -> Problem {
        self.retry_after = Some(millis.div_ceil(1000));
        self.retry_after_ms = Some(millis);
        self
    }

    /// Says which task this is about.
    #[must_use]
    pub fn task(mut self, task: impl Into<String>) -> Problem {
        let task = task.into();
        self.task_id = Some(task.clone());
        self.task_id_camel = Some(task);
        self
    }

    /// Says that it ran.
    #[must_use]
    pub fn of_the_run(mut self) -> Problem {
        self.phase = "run".to_owned();
        self
    }

    /// Says it in another sentence.
    #[must_use]
    pub fn detailed(mut self, detail: impl Into<String>) -> Problem {
        self.detail = detail.into();
        self.message.clone_from(&self.detail);
        self
    }
}
