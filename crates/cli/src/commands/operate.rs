//! `laneway token`, `audit` and `config`: verbs of the operator.

use std::path::PathBuf;

use laneway_server::{TokenError, TokenFile, audit_file, state_dir, tokens_file};

use crate::arguments::{Asking, Audit, ConfigFile, NewToken};
use crate::commands::serve::configuration;
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// How many entries a page of the audit log has.
const AUDIT_PAGE: u32 = 500;

fn state(place: &ConfigFile) -> Result<PathBuf, CliError> {
    let (config, _) = configuration(place, &[])?;
    state_dir(&config).ok_or_else(|| {
        let why = "with a store in memory, set server { state = \"...\" } to keep tokens";
        CliError::Input(why.to_owned())
    })
}

fn failure(error: TokenError) -> CliError {
    CliError::Failure(error.to_string())
}

fn tokens(place: &ConfigFile) -> Result<TokenFile, CliError> {
    TokenFile::open(tokens_file(&state(place)?)).map_err(failure)
}

/// Creates a token and prints it.
pub(crate) fn create_token(new: NewToken) -> Result<(), CliError> {
    let tokens = tokens(&new.place)?;
    let asked = laneway_protocol::NewToken {
        subject: new.subject,
        scopes: new.scopes,
        speaks_for_others: new.speaks_for_others,
    };
    let created = tokens.create(&asked, format::now()).map_err(|error| CliError::Input(error.to_string()))?;
    if new.place.json { output::json(&created) } else { output::line(&created.token) }
}

/// Lists tokens.
pub(crate) fn list_tokens(place: &ConfigFile) -> Result<(), CliError> {
    let list = tokens(place)?.list().map_err(failure)?;
    if place.json {
        return output::json(&list);
    }
    let mut rows = Rows::under(&["TOKEN", "CREATED", "SCOPES", "SUBJECT"]);
    for token in list {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        rows.add([token.id, token.created_at.to_string(), scopes.join(","), token.subject]);
    }
    rows.print("There are no tokens; every caller that reaches the server may do everything.")
}

/// Removes a token.
pub(crate) fn remove_token(id: &str, place: &ConfigFile) -> Result<(), CliError> {
    if !tokens(place)?.remove(id).map_err(failure)? {
        Err(CliError::Input("there is no such token; `laneway token list` lists them".to_owned()))
    } else if place.json {
        output::json(&serde_json::json!({ "removed": id }))
    } else {
        output::line("Removed.")
    }
}

/// Lists the audit log, the newest entry last.
pub(crate) async fn list_audit(verb: Audit) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    while entries.len() < verb.limit as usize {
        let limit = (verb.limit - entries.len() as u32).min(AUDIT_PAGE);
        let page = client.audit(Some(limit), cursor.as_deref()).await?;
        entries.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    entries.reverse();
    if verb.asking.json {
        return output::json(&entries);
    }
    let mut rows = Rows::under(&[">#", "AT", "ACTOR", "ACTION", "TARGET", "DETAILS"]);
    for entry in &entries {
        rows.add([
            entry.id.to_string(),
            entry.at.clone(),
            entry.actor.clone(),
            entry.action.clone(),
            entry.target.clone(),
            format::short(&entry.details.to_string()),
        ]);
    }
    rows.print("The audit log is empty.")
}

/// Checks the audit log.
pub(crate) fn verify_audit(
    file: Option<PathBuf>,
    config: Option<PathBuf>,
    is_json: bool,
) -> Result<(), CliError> {
    let file = match file {
        Some(file) => file,
        None => audit_file(&state(&ConfigFile { config, json: is_json })?),
    };
    let lines = laneway_server::verify_audit(&file).map_err(|error| CliError::Failure(error.to_string()))?;
    if is_json {
        output::json(&serde_json::json!({ "lines": lines, "whole": true }))
    } else {
        output::line(&format!("{}, none changed", crate::output::format::counted(lines, "line")))
    }
}

/// Checks the configuration and prints the effective settings.
pub(crate) fn check_config(place: &ConfigFile, all: bool) -> Result<(), CliError> {
    let (config, _) = configuration(place, &[])?;
    for warning in &config.warnings {
        eprintln!("laneway: {warning}");
    }
    let effective = if all { config.effective() } else { config.effective().without_defaults() };
    if place.json {
        let values: Vec<serde_json::Value> = effective
            .0
            .iter()
            .map(|value| {
                serde_json::json!({
                    "block": value.block, "key": value.key, "value": value.value,
                    "source": value.source.to_string(),
                })
            })
            .collect();
        output::json(&values)
    } else {
        output::text(&effective.to_string())
    }
}

/// Lists the settings in force that differ from the server's file.
pub(crate) async fn config_drift(asking: &Asking) -> Result<(), CliError> {
    let mut values = asking.client()?.config().await?.values;
    values.retain(|value| value.source == "api" || value.source.starts_with("replica"));
    if asking.json {
        return output::json(&values);
    }
    let mut rows = Rows::under(&["BLOCK", "SETTING", "IN FORCE", "FROM", "CONFIGURED"]);
    for value in values {
        let (from, configured) = match value.source.split_once(" (") {
            Some((from, rest)) => (from.to_owned(), rest.strip_suffix(')').unwrap_or(rest).to_owned()),
            None => (value.source, value.configured.unwrap_or_default()),
        };
        rows.add([value.block, value.key, value.value, from, configured]);
    }
    rows.print("The settings in force are those of the server's configuration.")
}
