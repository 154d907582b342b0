//! Creates, changes and removes agents while the server runs.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use laneway_core::{CancelReason, Command, LaneName, Selector};
use laneway_protocol::AgentView;
use serde_json::{Map, Value, json};

use crate::agents::directory::{CREATED_MAX, note};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::word;
use crate::notes;
use crate::service::agent_queue;
use crate::service::change_lanes::drop_outdated;
use crate::service::parse::{self, checked};

/// What runs an agent's turns: a new one replaces the old one.
const RUNNERS: [&str; 4] = ["url", "external", "echo", "command"];

/// Creates an agent.
pub(crate) async fn create(
    app: &App,
    caller: &Caller,
    mut block: Map<String, Value>,
) -> ApiResult<AgentView> {
    let Some(Value::String(name)) = block.remove("name") else {
        return Err(ApiError::invalid("name must be the name of the new agent, as a string"));
    };
    let name = parse::name("name", name)?;
    let name = name.as_str();
    let _changing = app.agents.changing.lock().await;
    if app.config().agent(name).is_some() {
        return Err(taken());
    }
    if app.agents.created_count() >= CREATED_MAX {
        return Err(ApiError::invalid(format!("the API can create {CREATED_MAX} agents at most")));
    }
    let text = app.agents.check(name, &block)?;
    let before = app.config();
    let change = notes::change(&app.handle, vec![note(name, None)], vec![note(name, Some(text))]);
    if !change.await? {
        return Err(taken());
    }
    settle_lanes(app, &before).await?;
    let settings: Vec<&String> = block.keys().collect();
    app.record(caller, ("agent", "create_agent"), name, json!({ "settings": settings })).await?;
    agent_queue::get(app, name).await
}

/// Changes settings of an agent. Settings that the change leaves out stay; `null` removes one.
pub(crate) async fn change(
    app: &App,
    caller: &Caller,
    name: &str,
    changes: Map<String, Value>,
) -> ApiResult<AgentView> {
    let _changing = app.agents.changing.lock().await;
    let old = created(app, name)?;
    let mut block: Map<String, Value> = serde_json::from_str(&old).unwrap_or_default();
    let settings: Vec<String> = changes.keys().cloned().collect();
    let mut seen = BTreeSet::new();
    if let Some(twice) = settings.iter().map(|key| plain(key)).find(|key| !seen.insert(key.clone())) {
        let key = word(&twice).unwrap_or("a setting");
        return Err(ApiError::invalid(format!("{key} is given twice, in two spellings; give it once")));
    }
    for (key, value) in changes {
        let replaces = |other: &str| {
            let is_runner = RUNNERS.contains(&key.as_str()) && !value.is_null();
            plain(other) == plain(&key) || (is_runner && RUNNERS.contains(&other))
        };
        block.retain(|other, _| !replaces(other));
        if !value.is_null() {
            block.insert(key, value);
        }
    }
    let text = app.agents.check(name, &block)?;
    let before = app.config();
    let change = notes::change(&app.handle, vec![note(name, Some(old))], vec![note(name, Some(text))]);
    if !change.await? {
        return Err(ApiError::invalid("another caller has changed the agent meanwhile; read it again")
            .status(StatusCode::CONFLICT));
    }
    settle_lanes(app, &before).await?;
    app.record(caller, ("agent", "change_agent"), name, json!({ "settings": settings })).await?;
    agent_queue::get(app, name).await
}

/// Removes an agent. Its waiting tasks are cancelled, and its running turns may end.
pub(crate) async fn remove(app: &App, caller: &Caller, name: &str) -> ApiResult<()> {
    let _changing = app.agents.changing.lock().await;
    created(app, name)?;
    let before = app.config();
    notes::change(&app.handle, vec![], vec![note(name, None)]).await?;
    settle_lanes(app, &before).await?;
    for lane in [LaneName::agent(name), LaneName::task(name)] {
        let which = Selector { lane: Some(checked(lane)?), ..Selector::default() };
        app.handle.ask(Command::CancelWaiting { which, reason: CancelReason::AgentRemoved }).await?;
    }
    app.record(caller, ("agent", "remove_agent"), name, json!({})).await
}

/// A key in snake_case and without its unit, because a setting may be written in several ways.
fn plain(key: &str) -> String {
    let mut plain = String::new();
    for char in key.chars() {
        if char.is_ascii_uppercase() {
            plain.push('_');
        }
        plain.push(char.to_ascii_lowercase());
    }
    plain.strip_suffix("_ms").map(str::to_owned).unwrap_or(plain)
}

fn taken() -> ApiError {
    ApiError::invalid("there is an agent of that name already").status(StatusCode::CONFLICT)
}

/// What the API was given for an agent.
fn created(app: &App, name: &str) -> ApiResult<std::sync::Arc<str>> {
    if app.agents.is_in_file(name) {
        return Err(ApiError::invalid("the agent is in the configuration file; change it there"));
    }
    app.agents.created(name).ok_or_else(|| ApiError::not_found("agent"))
}

/// Gives the lanes of changed agents their settings.
async fn settle_lanes(app: &App, before: &laneway_config::Config) -> ApiResult<()> {
    // A read follows the event of the change, so the configuration has it then.
    app.handle.read(|_| ()).await?;
    let changes = app.config().lane_changes(before);
    app.handle.configure(changes).await?;
    drop_outdated(app).await
}
