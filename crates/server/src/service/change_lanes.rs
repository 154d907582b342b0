//! Changes settings of lanes while the server runs. A changed setting holds over the configuration file, at all replicas
//! and after restarts, until the file changes the same setting or a caller withdraws it.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{HeldSettings, NoteChange, Pattern, Rejection, SETTING_KEYS, Scheduler, SettingsChange};
use laneway_engine::Error;
use serde_json::{Value, json};

use crate::agents::directory::{HELD_MAX, held_count, held_key, held_note};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::notes;

/// A setting by its key, with its new value; `None` withdraws it.
type Change = (Arc<str>, Option<Arc<str>>);

/// Changes settings of a lane or pattern. Settings that the change leaves out stay; `null` withdraws one.
pub(crate) async fn change(
    app: &App,
    caller: &Caller,
    lanes: &Pattern,
    changes: &BTreeMap<String, Value>,
) -> ApiResult<()> {
    if changes.is_empty() {
        return Err(ApiError::invalid("the body must name at least one setting"));
    }
    let asked = flatten(changes)?;
    let _changing = app.agents.changing.lock().await;
    while !try_change(app, lanes, &asked).await? {}
    let keys = |is_set: bool| {
        let keys = changes.iter().filter(move |(_, value)| value.is_null() != is_set);
        keys.map(|(key, _)| key).collect::<Vec<_>>()
    };
    let details = json!({ "settings": keys(true), "withdrawn": keys(false) });
    app.record(caller, ("lane", "configure"), lanes.as_str(), details).await
}

/// Returns whether no other caller was faster.
async fn try_change(app: &App, lanes: &Pattern, asked: &[Change]) -> ApiResult<bool> {
    let (key, own) = (held_key(lanes), lanes.clone());
    let look = move |state: &Scheduler| (state.note(&key).cloned(), state.asked_for(&own), held_count(state));
    let (text, mut values, count) = app.handle.read(look).await?;
    let before = text.as_deref().and_then(|text| serde_json::from_str(text).ok());
    if before.is_none() && count >= HELD_MAX {
        return Err(ApiError::invalid(format!(
            "the API can change the settings of {HELD_MAX} lanes and patterns; change a pattern such as session:*, or \
             withdraw other changes with null"
        )));
    }
    let mut held: HeldSettings = before.unwrap_or_default();
    let config = app.agents.configured();
    let configured = config.asked_for(lanes);
    let bad = |error| ApiError::from(Error::from(Rejection::BadSetting(Box::new(error))));
    let mut settings: Vec<Change> = Vec::new();
    for (key, value) in asked {
        match value {
            Some(text) => {
                values.set(key, text).map_err(bad)?;
                held.hold(key, &values, &configured).map_err(bad)?;
                settings.push((Arc::clone(key), Some(Arc::clone(text))));
            }
            None => settings.extend(held.withdraw(key).into_iter().map(|key| (key.into(), None))),
        }
    }
    let has_block = !held.is_empty() || has_block(&config, lanes);
    let notes =
        NoteChange { expected: vec![(held_key(lanes), text)], changes: vec![held_note(lanes, &held)] };
    let own = config.own(lanes);
    let change = SettingsChange { lanes: lanes.clone(), settings, configured: own, has_block, notes };
    match app.handle.change_settings(change).await {
        Ok(()) => Ok(true),
        Err(Error::Rejected(Rejection::NoteChanged { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the configuration has a block of this name.
fn has_block(config: &laneway_config::Config, lanes: &Pattern) -> bool {
    crate::server::lane_blocks(config).iter().any(|block| block.lanes == *lanes)
}

/// Withdraws the changes of settings that the configuration has changed since.
pub(crate) async fn drop_outdated(app: &App) -> ApiResult<()> {
    for outdated in app.agents.outdated() {
        let (before, after) = outdated.notes();
        if !notes::change(&app.handle, vec![before], vec![after]).await? {
            // Another caller or replica has changed them meanwhile.
            continue;
        }
        let lanes = outdated.lanes.as_str();
        tracing::warn!(
            lanes,
            settings = outdated.keys.join(", "),
            "the configuration has changed these settings, so it replaces the changes of the API"
        );
        let details = json!({ "withdrawn": outdated.keys });
        app.audit.record(app.now(), "configuration", ("lane", "configure"), lanes, details).await?;
    }
    Ok(())
}

/// `{"retry": {"max_retries": 2}}` is `retry.max_retries`.
fn flatten(changes: &BTreeMap<String, Value>) -> ApiResult<Vec<Change>> {
    let key = |key: &str| -> Arc<str> { Arc::from(key.strip_suffix("_ms").unwrap_or(key)) };
    let mut flat = Vec::new();
    for (name, value) in changes {
        match value {
            Value::Object(inner) => {
                for (part, value) in inner {
                    flat.push((key(&format!("{name}.{part}")), Some(text(value)?)));
                }
            }
            Value::Null if is_setting(name) => flat.push((key(name), None)),
            Value::Null => {
                return Err(ApiError::invalid("null withdraws a setting; this is not a setting of a lane"));
            }
            value => flat.push((key(name), Some(text(value)?))),
        }
    }
    Ok(flat)
}

/// Whether this is a setting or a group of settings.
fn is_setting(name: &str) -> bool {
    let plain = name.strip_suffix("_ms").unwrap_or(name);
    let plain: String = plain.chars().filter(|char| *char != '_').collect();
    let fits = |key: &str| {
        let group = key.split_once('.').map_or(key, |(group, _)| group);
        [key, group].iter().any(|key| key.replace('_', "").eq_ignore_ascii_case(&plain))
    };
    SETTING_KEYS.iter().any(|key| fits(key))
}

fn text(value: &Value) -> ApiResult<Arc<str>> {
    match value {
        Value::String(text) => Ok(text.as_str().into()),
        Value::Number(number) => Ok(number.to_string().into()),
        Value::Bool(truth) => Ok(truth.to_string().into()),
        Value::Null => Err(ApiError::invalid("null withdraws a whole setting, such as \"retry\": null")),
        _ => Err(ApiError::invalid("a setting is a string, a number or a boolean")),
    }
}
