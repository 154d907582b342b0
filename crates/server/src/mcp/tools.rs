//! Every tool, who may use it, what it takes and answers.

use std::sync::Arc;

use laneway_protocol::{
    AgentBusy, AgentView, CancelAnswer, ChatAnswer, ChatWithAgent, ClearedQueue, ExplainView, OfAgent, OfAll,
    OfTask, Page, Problem, QueueView, ReleasedQueue, Scope, StillGoing, TaskView,
};
use rmcp::model::{Tool, ToolAnnotations};
use utoipa::{PartialSchema, ToSchema};

use crate::http::auth::Caller;
use crate::mcp::schema;

/// Which tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    ChatWithAgent,
    GetTask,
    ListAgents,
    QueueStatus,
    CancelTask,
    ExplainTask,
    ClearQueue,
    ReleaseAgent,
}

/// A tool and the scope that it needs.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) name: Name,
    pub(crate) scope: Scope,
    pub(crate) tool: Tool,
}

/// Every tool there is, always in this order. What is not in this list cannot be called.
pub(crate) fn all() -> Vec<Listed> {
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

fn chat_with_agent() -> Listed {
    let tool = tool::<ChatWithAgent>(
        "chat_with_agent",
        "Chat with an agent",
        "Asks an agent and waits for its answer. Turns of a conversation run one after another; with parallel \
         it is a task of its own beside all others. A call that takes long is answered with still_going and a \
         task_id for get_task; the same call again, before it has ended, joins it and starts nothing. \
         agent_busy says in how many seconds to try again.",
        changes().idempotent(false).open_world(true),
    );
    let answers = schema::any_of([
        schema::of::<ChatAnswer>(),
        schema::of::<StillGoing>(),
        schema::of::<AgentBusy>(),
        schema::of::<Problem>(),
    ]);
    let tool = tool.with_raw_output_schema(Arc::new(answers));
    Listed { name: Name::ChatWithAgent, scope: Scope::Submit, tool }
}

fn get_task() -> Listed {
    let about = "How a task stands: its place in line, its result or its error.";
    let tool = tool::<OfTask>("get_task", "Look at a task", about, looks());
    Listed { name: Name::GetTask, scope: Scope::Read, tool: answering(schema::of::<TaskView>(), tool) }
}

fn list_agents() -> Listed {
    let about = "All agents by name, with how many of their turns run and wait.";
    let tool = tool::<OfAll>("list_agents", "List agents", about, looks());
    let agents = schema::of::<Page<AgentView>>().with::<AgentView>();
    Listed { name: Name::ListAgents, scope: Scope::Read, tool: answering(agents, tool) }
}

fn queue_status() -> Listed {
    let about = "Whether an agent is busy, what it runs for whom, and who waits, in order.";
    let tool = tool::<OfAgent>("queue_status", "Look at an agent's line", about, looks());
    Listed { name: Name::QueueStatus, scope: Scope::Read, tool: answering(schema::of::<QueueView>(), tool) }
}

fn cancel_task() -> Listed {
    let about = "Takes a task out of the line, or tells its run to stop.";
    let tool = tool::<OfTask>("cancel_task", "Cancel a task", about, destroys());
    Listed {
        name: Name::CancelTask,
        scope: Scope::Submit,
        tool: answering(schema::of::<CancelAnswer>(), tool),
    }
}

fn explain_task() -> Listed {
    let about = "What holds a task up, and for how long it probably will.";
    let tool = tool::<OfTask>("explain_task", "Why a task waits", about, looks());
    Listed { name: Name::ExplainTask, scope: Scope::Read, tool: answering(schema::of::<ExplainView>(), tool) }
}

fn clear_queue() -> Listed {
    let about = "Cancels everything that waits for an agent; what runs is not touched.";
    let tool = tool::<OfAgent>("clear_queue", "Empty an agent's line", about, destroys());
    Listed {
        name: Name::ClearQueue,
        scope: Scope::Admin,
        tool: answering(schema::of::<ClearedQueue>(), tool),
    }
}

fn release_agent() -> Listed {
    let about = "Takes the slots away from what an agent runs, at once; whatever the old run still reports is refused.";
    let tool = tool::<OfAgent>("release_agent", "Free an agent that hangs", about, destroys());
    Listed {
        name: Name::ReleaseAgent,
        scope: Scope::Admin,
        tool: answering(schema::of::<ReleasedQueue>(), tool),
    }
}

impl Listed {
    /// Whether this caller may use it.
    pub(crate) fn is_for(&self, caller: &Caller) -> bool {
        caller.may(self.scope)
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

/// A refusal is an answer as well.
fn answering(answer: schema::Described, tool: Tool) -> Tool {
    let choices = [answer, schema::of::<Problem>()];
    tool.with_raw_output_schema(Arc::new(schema::any_of(choices)))
}

fn looks() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false)
}

fn destroys() -> ToolAnnotations {
    changes().destructive(true).idempotent(true).open_world(false)
}

fn changes() -> ToolAnnotations {
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
        let chat = ["agent_name", "message", "parallel", "session"].map(str::to_owned).to_vec();
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
