//! `laneway agents`: lists and changes agents.

use laneway_protocol::AgentView;
use serde_json::{Value, json};

use crate::arguments::{Agents, AgentsCommand};
use crate::commands::lanes::changes;
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// Runs `laneway agents`.
pub(crate) async fn run(verb: Agents) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    let agents = match verb.command {
        None => client.agents().await?.items,
        Some(AgentsCommand::Add { name, settings }) => {
            let mut block = block(&settings)?;
            block["name"] = name.into();
            vec![client.create_agent(&block).await?]
        }
        Some(AgentsCommand::Set { name, settings }) => {
            vec![client.change_agent(&name, &block(&settings)?).await?]
        }
        Some(AgentsCommand::Remove { name, sure }) => {
            sure.ask(&format!("Removing agent {name} and cancelling its waiting tasks"))?;
            client.remove_agent(&name).await?;
            return if is_json {
                output::json(&json!({ "removed": name }))
            } else {
                output::line(&format!("Removed {name}."))
            };
        }
    };
    if is_json { output::json(&agents) } else { list(&agents) }
}

/// Turns settings into the server's JSON: `lanes=main,gpu` is a list, and `timeout=null` removes a setting.
fn block(settings: &[String]) -> Result<Value, CliError> {
    let mut block = changes(settings)?;
    for (name, value) in block.as_object_mut().into_iter().flatten() {
        let text = value.as_str().unwrap_or_default().to_owned();
        if text == "null" {
            *value = Value::Null;
        } else if name == "lanes" {
            *value = text.split(',').filter(|lane| !lane.is_empty()).collect();
        }
    }
    Ok(block)
}

fn list(agents: &[AgentView]) -> Result<(), CliError> {
    let mut rows =
        Rows::under(&["AGENT", "RUNNER", ">RUNNING", ">LIMIT", ">WAITING", ">MAX QUEUED", "LANES", "FROM"]);
    for agent in agents {
        rows.add([
            agent.name.clone(),
            agent.runner.clone(),
            agent.running.to_string(),
            format::limit(agent.max_concurrency),
            agent.waiting.to_string(),
            agent.max_queued.to_string(),
            agent.lanes.join(", "),
            agent.origin.clone(),
        ]);
    }
    rows.print("There are no agents.")
}
