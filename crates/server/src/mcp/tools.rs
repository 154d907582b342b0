//! Every tool, who may use it, what it takes and answers.

use std::sync::Arc;

use laneway_protocol::{
    AgentArguments, AgentBusy, AgentView, CancelAnswer, ChatAnswer, ChatWithAgent, ClearedQueue, ExplainView,
    NoArguments, Page, Problem, QueueView, ReleasedQueue, Scope, StillGoing, TaskArguments, TaskView,
};
use rmcp::model::{Tool, ToolAnnotations};
use utoipa::{PartialSchema, ToSchema};

use crate::mcp::schema;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolName {
    ChatWithAgent,
    GetTask,
    ListAgents,
    QueueStatus,
    CancelTask,
    ExplainTask,
    ClearQueue,
    ReleaseAgent,
}

/// The name of the tool that asks an agent.
pub(super) const CHAT_WITH_AGENT: &str = "chat_with_agent";

/// A tool and the scope that it needs.
#[derive(Clone)]
pub(super) struct ListedTool {
    pub(super) name: ToolName,
    pub(super) scope: Scope,
    pub(super) tool: Tool,
}

/// All tools, always in this order.
pub(super) fn all() -> Vec<ListedTool> {
    vec![
        chat_with_agent(),
        get_task(),
        list_agents(),
        queue_status(),
        cancel_task(),
        explain_task(),
        clear_queue(),
        release_agent(),
    ]
}

fn chat_with_agent() -> ListedTool {
    let tool = tool::<ChatWithAgent>(
        CHAT_WITH_AGENT,
        "Chat with an agent",
        "Asks an agent and waits for its answer. Turns of a session run one after another. With parallel, the call is \
         a stateless task that runs in parallel to others. A long call is answered with still_going and a task_id for \
         get_task. The same call again, before the task has ended, joins it and starts nothing. agent_busy says after \
         how many seconds to try again.",
        writes().idempotent(false).open_world(true),
    );
    let answers = schema::any_of([
        schema::of::<ChatAnswer>(),
        schema::of::<StillGoing>(),
        schema::of::<AgentBusy>(),
        schema::of::<Problem>(),
    ]);
    let tool = tool.with_raw_output_schema(Arc::new(answers));
    ListedTool { name: ToolName::ChatWithAgent, scope: Scope::Submit, tool }
}

fn get_task() -> ListedTool {
    let about = "The state of a task: its position, its result or its error.";
    let tool = tool::<TaskArguments>("get_task", "Look at a task", about, read_only());
    ListedTool {
        name: ToolName::GetTask,
        scope: Scope::Read,
        tool: answering(schema::of::<TaskView>(), tool),
    }
}

fn list_agents() -> ListedTool {
    let about = "All agents by name, with the numbers of running and waiting turns.";
    let tool = tool::<NoArguments>("list_agents", "List agents", about, read_only());
    let agents = schema::of::<Page<AgentView>>().with::<AgentView>();
    ListedTool { name: ToolName::ListAgents, scope: Scope::Read, tool: answering(agents, tool) }
}

fn queue_status() -> ListedTool {
    let about = "Whether an agent is busy, its running turns, and its waiting turns in order.";
    let tool = tool::<AgentArguments>("queue_status", "Look at an agent's queue", about, read_only());
    ListedTool {
        name: ToolName::QueueStatus,
        scope: Scope::Read,
        tool: answering(schema::of::<QueueView>(), tool),
    }
}

fn cancel_task() -> ListedTool {
    let about = "Cancels a waiting task, or stops a running one.";
    let tool = tool::<TaskArguments>("cancel_task", "Cancel a task", about, destructive());
    ListedTool {
        name: ToolName::CancelTask,
        scope: Scope::Submit,
        tool: answering(schema::of::<CancelAnswer>(), tool),
    }
}

fn explain_task() -> ListedTool {
    let about = "Why a task waits, and for how long it probably will.";
    let tool = tool::<TaskArguments>("explain_task", "Why a task waits", about, read_only());
    ListedTool {
        name: ToolName::ExplainTask,
        scope: Scope::Read,
        tool: answering(schema::of::<ExplainView>(), tool),
    }
}

fn clear_queue() -> ListedTool {
    let about = "Cancels the waiting turns of an agent. Running turns continue.";
    let tool = tool::<AgentArguments>("clear_queue", "Empty an agent's queue", about, destructive());
    ListedTool {
        name: ToolName::ClearQueue,
        scope: Scope::Admin,
        tool: answering(schema::of::<ClearedQueue>(), tool),
    }
}

fn release_agent() -> ListedTool {
    let about = "Takes the slots of an agent's running turns at once. The server refuses reports of the old attempts.";
    let tool = tool::<AgentArguments>("release_agent", "Free an agent that hangs", about, destructive());
    ListedTool {
        name: ToolName::ReleaseAgent,
        scope: Scope::Admin,
        tool: answering(schema::of::<ReleasedQueue>(), tool),
    }
}

fn tool<Arguments: ToSchema + PartialSchema>(
    name: &'static str,
    title: &str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    let arguments = schema::of::<Arguments>().alone();
    Tool::new(name, description, Arc::new(arguments)).with_title(title).with_annotations(annotations)
}

/// Adds the schema of refusals, which are answers too.
fn answering(answer: schema::Described, tool: Tool) -> Tool {
    let choices = [answer, schema::of::<Problem>()];
    tool.with_raw_output_schema(Arc::new(schema::any_of(choices)))
}

fn read_only() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
}

fn destructive() -> ToolAnnotations {
    writes().destructive(true).idempotent(true).open_world(false)
}

fn writes() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn only_what_looks_needs_no_more_than_read() {
        for listed in all() {
            let annotations = listed.tool.annotations.clone().unwrap_or_default();
            assert_eq!(annotations.read_only_hint, Some(listed.scope == Scope::Read), "{}", listed.tool.name);
            assert!(annotations.destructive_hint.is_some() && annotations.idempotent_hint.is_some());
            assert!(annotations.open_world_hint.is_some(), "{}", listed.tool.name);
        }
    }

    #[test]
    fn tools_take_what_they_name_and_nothing_else() {
        let taken: Vec<(String, Vec<String>, bool)> = all()
            .into_iter()
            .map(|listed| {
                let schema = listed.tool.input_schema;
                let properties = schema.get("properties").and_then(Value::as_object);
                let names = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
                let is_strict = schema.get("additionalProperties") == Some(&Value::Bool(false));
                (listed.tool.name.to_string(), names, is_strict)
            })
            .collect();
        let agent = vec!["agent_name".to_owned()];
        let task = vec!["task_id".to_owned()];
        let chat = [
            "agent_name",
            "allowed_tools",
            "message",
            "model",
            "parallel",
            "session",
            "stream",
            "system_prompt",
            "timeout_seconds",
        ];
        let chat = chat.map(str::to_owned).to_vec();
        let expected = [
            ("chat_with_agent", chat),
            ("get_task", task.clone()),
            ("list_agents", vec![]),
            ("queue_status", agent.clone()),
            ("cancel_task", task.clone()),
            ("explain_task", task),
            ("clear_queue", agent.clone()),
            ("release_agent", agent),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(name, taken)| (name.to_owned(), taken, true)).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn schemas_hold_everything_that_they_refer_to() {
        for listed in all() {
            let output = listed.tool.output_schema.clone().unwrap_or_default();
            for schema in [&listed.tool.input_schema, &output] {
                assert_eq!(schema.get("type"), Some(&Value::from("object")));
                let text = Value::Object((**schema).clone()).to_string();
                let places = text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next());
                let referred: BTreeSet<&str> = places.collect();
                for place in referred {
                    let name = place.strip_prefix("#/$defs/").unwrap_or_default();
                    assert!(schema["$defs"].get(name).is_some(), "{}: {place}", listed.tool.name);
                }
            }
        }
    }
}
