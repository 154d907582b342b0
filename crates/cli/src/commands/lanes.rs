//! `laneway lanes`: how lanes stand, and changing them.

use std::collections::BTreeMap;

use laneway_client::Client;
use laneway_protocol::LaneNumbers;
use serde_json::{Map, Value, json};

use crate::arguments::{Lanes, LanesCommand};
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// How many lanes one page brings.
const PAGE: u32 = 500;
/// How many lanes are listed at most; more than that nobody reads.
const LISTED_MAX: usize = 5_000;

/// Does what was asked.
pub(crate) async fn run(verb: Lanes) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    let lane = match verb.command {
        None => return list(&client, verb.all, is_json).await,
        Some(LanesCommand::Clear { lane, sure }) => {
            sure.ask(&format!("Cancelling everything that waits in lane {lane}"))?;
            let answer = client.clear_lane(&lane).await?;
            return if is_json {
                output::json(&answer)
            } else {
                output::line(&crate::commands::cancel::told(answer.cancelled))
            };
        }
        Some(LanesCommand::Show { lane }) => client.lane(&lane).await?,
        Some(LanesCommand::Pause { lane }) => client.pause(&lane).await?,
        Some(LanesCommand::Resume { lane }) => client.resume(&lane).await?,
        Some(LanesCommand::Drain { lane }) => client.drain(&lane).await?,
        Some(LanesCommand::Set { lane, settings }) => client.change_lane(&lane, &changes(&settings)?).await?,
    };
    show(&lane, is_json)
}

/// `retry.max_retries=3` as the server reads it. Its own words say what is wrong with a value.
fn changes(settings: &[String]) -> Result<Value, CliError> {
    let mut changes = Map::new();
    for setting in settings {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(CliError::Input(format!("{setting} is no SETTING=VALUE, such as max_concurrency=4")));
        };
        let value = match serde_json::from_str::<Value>(value) {
            Ok(value) if value.is_number() || value.is_boolean() => value,
            _ => Value::from(value),
        };
        let (first, rest) = name.split_once('.').map_or((name, None), |(block, rest)| (block, Some(rest)));
        let is_given_before = match (changes.get_mut(first), rest) {
            (None, None) => changes.insert(first.to_owned(), value).is_some(),
            (None, Some(rest)) => changes.insert(first.to_owned(), json!({ rest: value })).is_some(),
            (Some(Value::Object(block)), Some(rest)) => block.insert(rest.to_owned(), value).is_some(),
            // The whole and a part of it, or the whole twice.
            (Some(_), _) => true,
        };
        if is_given_before {
            return Err(CliError::Input(format!("{first} is given twice, and only one of them could hold")));
        }
    }
    Ok(Value::Object(changes))
}

async fn list(client: &Client, all: bool, is_json: bool) -> Result<(), CliError> {
    let mut lanes = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = client.lanes(Some(PAGE), cursor.as_deref()).await?;
        lanes.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() || lanes.len() >= LISTED_MAX {
            break;
        }
    }
    let has_something =
        |lane: &LaneNumbers| lane.running + lane.waiting + lane.retrying > 0 || lane.paused || lane.draining;
    lanes.retain(|lane| all || has_something(lane) || lane.counters.accepted > 0);
    if is_json {
        return output::json(&lanes);
    }
    let mut rows = Rows::under(&[
        "LANE",
        ">RUNNING",
        ">LIMIT",
        ">WAITING",
        "?>ROOM",
        ">WAIT P50",
        "?>P90",
        ">P99",
        ">FAILED",
        "",
    ]);
    for lane in &lanes {
        let wait = &lane.wait;
        rows.add([
            lane.lane.clone(),
            lane.running.to_string(),
            format::limit(lane.max_concurrency),
            (lane.waiting + lane.retrying).to_string(),
            lane.max_queued.to_string(),
            format::maybe(wait.p50_ms),
            format::maybe(wait.p90_ms),
            format::maybe(wait.p99_ms),
            lane.counters.failed.to_string(),
            state(lane).to_owned(),
        ]);
    }
    rows.print("Nothing is in any lane; --all lists those that are configured.")?;
    match cursor {
        Some(_) => output::line(&format!("… and more than {LISTED_MAX}")),
        None => Ok(()),
    }
}

/// What is special about a lane now.
pub(crate) fn state(lane: &LaneNumbers) -> &'static str {
    match (lane.paused, lane.draining) {
        (true, true) => "paused, draining",
        (true, false) => "paused",
        (false, true) => "draining",
        (false, false) => "",
    }
}

fn show(lane: &LaneNumbers, is_json: bool) -> Result<(), CliError> {
    if is_json {
        return output::json(lane);
    }
    let percentiles = |p: &laneway_protocol::Percentiles| {
        format!(
            "{} half, {} 90 %, {} 99 %",
            format::maybe(p.p50_ms),
            format::maybe(p.p90_ms),
            format::maybe(p.p99_ms)
        )
    };
    let counters = &lane.counters;
    let mut pairs = vec![
        ("lane", lane.lane.clone()),
        ("running", format!("{} of {}", lane.running, format::limit(lane.max_concurrency))),
        ("waiting", format!("{} of {}", lane.waiting, lane.max_queued)),
    ];
    if lane.retrying > 0 {
        pairs.push(("retrying", lane.retrying.to_string()));
    }
    if !state(lane).is_empty() {
        pairs.push(("state", state(lane).to_owned()));
    }
    pairs.push(("waited", percentiles(&lane.wait)));
    pairs.push(("ran", percentiles(&lane.run)));
    let counted = format!(
        "{} accepted, {} completed, {} failed, {} cancelled, {} gave up waiting, {} lost",
        counters.accepted,
        counters.completed,
        counters.failed,
        counters.cancelled,
        counters.timed_out_waiting,
        counters.lost
    );
    pairs.push(("so far", counted));
    output::pairs(&pairs)?;
    settings(&lane.settings)
}

fn settings(settings: &BTreeMap<String, Value>) -> Result<(), CliError> {
    output::line("")?;
    let pairs: Vec<(&str, String)> =
        settings.iter().map(|(name, value)| (name.as_str(), format::full(value))).collect();
    output::pairs(&pairs)
}
