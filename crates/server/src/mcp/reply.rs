//! Answers and refusals as results of tools.

use laneway_protocol::{AgentBusy, ChatAnswer, Code, Problem, StillGoing};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use crate::http::error::{ApiError, ApiResult};

/// An answer: the same as data, and as text for clients that know no data.
pub(crate) fn done(answer: &impl Serialize) -> CallToolResult {
    CallToolResult::structured(data(answer))
}

/// What an agent answered: the text is its answer alone.
pub(crate) fn answered(answer: &ChatAnswer) -> CallToolResult {
    let text = match &answer.response {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    said(text, answer)
}

/// The task goes on.
pub(crate) fn still_going(going: &StillGoing) -> CallToolResult {
    said(going.message.clone(), going)
}

/// A refusal: the text is one sentence with what to do.
pub(crate) fn refused(refusal: &ApiError) -> CallToolResult {
    let problem: &Problem = &refusal.problem;
    let mut result = match (&problem.agent, problem.code) {
        (Some(agent), Code::AtCapacity) => said(problem.detail.clone(), &busy(agent, problem)),
        _ => said(sentence(problem), problem),
    };
    result.is_error = Some(true);
    result
}

/// What a tool did, or why not.
pub(crate) fn of(answer: ApiResult<CallToolResult>) -> CallToolResult {
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

fn said(text: String, answer: &impl Serialize) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(data(answer));
    result
}

fn data(answer: &impl Serialize) -> Value {
    // Writing our own types to memory cannot fail.
    serde_json::to_value(answer).unwrap_or_default()
}
