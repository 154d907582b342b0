//! Answers and refusals as results of tools.

use laneway_protocol::{AgentBusy, ChatAnswer, Code, Problem, StillGoing};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use crate::http::error::{ApiError, ApiResult};

/// An answer as data, and as text for clients that read no data.
pub(super) fn done(answer: &impl Serialize) -> CallToolResult {
    CallToolResult::structured(data(answer))
}

/// An agent's answer. The text is the answer alone.
pub(super) fn answered(answer: &ChatAnswer) -> CallToolResult {
    let text = match &answer.response {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    result(text, answer)
}

/// The answer while the task continues.
pub(super) fn still_going(going: &StillGoing) -> CallToolResult {
    result(going.message.clone(), going)
}

/// A refusal. The text is one sentence with what to do, or that and all numbers as JSON if the agent is busy: clients that read
/// only the text read them there.
pub(crate) fn refused(refusal: &ApiError) -> CallToolResult {
    let problem: &Problem = &refusal.problem;
    let mut refused = match (&problem.agent, problem.code) {
        (Some(agent), Code::AtCapacity) => {
            let busy = data(&busy(agent, problem));
            result(busy.to_string(), &busy)
        }
        _ => result(sentence(problem), problem),
    };
    refused.is_error = Some(true);
    refused
}

/// An answer or a refusal.
pub(super) fn answer_or_refusal(answer: ApiResult<CallToolResult>) -> CallToolResult {
    answer.unwrap_or_else(|refusal| refused(&refusal))
}

fn busy(agent: &str, problem: &Problem) -> AgentBusy {
    AgentBusy {
        status: "agent_busy".to_owned(),
        agent: agent.to_owned(),
        queue_status: "queue_full".to_owned(),
        retry_after_seconds: problem.retry_after.unwrap_or(1),
        message: problem.message.clone(),
        details: problem.clone(),
    }
}

fn sentence(problem: &Problem) -> String {
    let detail = problem.detail.trim_end_matches('.');
    match (problem.retryable, problem.retry_after) {
        (true, Some(secs)) => format!("{detail}; try again in {secs} s."),
        (true, None) => format!("{detail}; the same call may be tried again."),
        (false, _) => format!("{detail}."),
    }
}

fn result(text: String, answer: &impl Serialize) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(data(answer));
    result
}

fn data(answer: &impl Serialize) -> Value {
    // Writing our own types to memory cannot fail.
    serde_json::to_value(answer).unwrap_or_default()
}
