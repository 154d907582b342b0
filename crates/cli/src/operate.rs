//! What is done beside a running server: tokens, the audit log, the configuration.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use laneway_core::Timestamp;
use laneway_server::{Tokens, audit_file, state_dir, tokens_file};

use crate::Trouble;
use crate::arguments::{NewToken, Place};
use crate::serve::configuration;

fn state(place: &Place) -> Result<PathBuf, Trouble> {
    let (config, _) = configuration(place, &[])?;
    state_dir(&config).ok_or_else(|| {
        let why = "a server whose store is in memory forgets its tokens; set server { state = \"...\" }";
        Trouble::Input(why.to_owned())
    })
}

fn tokens(place: &Place) -> Result<Tokens, Trouble> {
    Tokens::open(Some(tokens_file(&state(place)?))).map_err(Trouble::Failure)
}

/// Makes a token and prints it.
pub(crate) fn create_token(new: NewToken) -> Result<(), Trouble> {
    let tokens = tokens(&new.place)?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let asked = laneway_protocol::NewToken {
        subject: new.subject,
        scopes: new.scopes,
        speaks_for_others: new.speaks_for_others,
    };
    let now = Timestamp(since_1970.as_millis() as u64);
    let created = tokens.create(&asked, now).map_err(Trouble::Input)?;
    match new.place.json {
        true => print_json(&created),
        false => println!("{}", created.token),
    }
    Ok(())
}

/// Lists tokens.
pub(crate) fn list_tokens(place: &Place) -> Result<(), Trouble> {
    let list = tokens(place)?.list();
    if place.json {
        print_json(&list);
        return Ok(());
    }
    for token in list {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        println!("{}  {}  {}  {}", token.id, token.created_at, scopes.join(","), token.subject);
    }
    Ok(())
}

/// Takes a token away.
pub(crate) fn remove_token(id: &str, place: &Place) -> Result<(), Trouble> {
    match tokens(place)?.remove(id).map_err(Trouble::Failure)? {
        true => Ok(()),
        false => Err(Trouble::Input("there is no such token; `laneway token list` shows all".to_owned())),
    }
}

/// Checks the audit log.
pub(crate) fn verify_audit(file: Option<PathBuf>, place: &Place) -> Result<(), Trouble> {
    let file = match file {
        Some(file) => file,
        None => audit_file(&state(place)?),
    };
    let lines = laneway_server::verify_audit(&file).map_err(Trouble::Failure)?;
    match place.json {
        true => print_json(&serde_json::json!({ "lines": lines, "whole": true })),
        false => println!("{lines} lines, none changed"),
    }
    Ok(())
}

/// Checks the configuration and prints what holds.
pub(crate) fn check_config(place: &Place, all: bool) -> Result<(), Trouble> {
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
        print_json(&values);
    } else {
        print!("{effective}");
    }
    Ok(())
}

fn print_json(value: &impl serde::Serialize) {
    println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
}
