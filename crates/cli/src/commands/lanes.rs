//! `laneway lanes`: lists and changes lanes.

use std::collections::BTreeMap;

use laneway_client::Client;
use laneway_protocol::LaneNumbers;
use serde_json::{Map, Value, json};

use crate::arguments::{Lanes, LanesCommand};
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// How many lanes a page has.
const PAGE: u32 = 500;
/// How many lanes a list shows at most.
const LISTED_MAX: usize = 5_000;

/// Runs `laneway lanes`.
pub(crate) async fn run(verb: Lanes) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    let lane = match verb.command {
        None => return list(&client, verb.all, is_json).await,
        Some(LanesCommand::Clear { lane, sure }) => {
            sure.ask(&format!("Cancelling all waiting tasks of lane {lane}"))?;
            let answer = client.clear_lane(&lane).await?;
            return if is_json {
                output::json(&answer)
            } else {
                output::line(&crate::commands::cancel::cancelled(answer.cancelled))
            };
        }
        Some(LanesCommand::Release { lane, sure }) => {
            sure.ask(&format!("Taking away all slots of lane {lane}"))?;
            let answer = client.release_lane(&lane).await?;
            return if is_json {
                output::json(&answer)
            } else if answer.released.is_empty() {
                output::line("No task has a slot in the lane.")
            } else {
                let tasks = format::counted(answer.released.len() as u64, "task");
                output::line(&format!("Took the slots of {tasks}. {}", answer.warning))
            };
        }
        Some(LanesCommand::Show { lane }) => client.lane(&lane).await?,
        Some(LanesCommand::Pause { lane }) => client.pause(&lane).await?,
        Some(LanesCommand::Resume { lane }) => client.resume(&lane).await?,
        Some(LanesCommand::Drain { lane }) => client.drain(&lane).await?,
        Some(LanesCommand::Set { lane, settings }) => client.change_lane(&lane, &changes(&settings)?).await?,
        Some(LanesCommand::Reset { lane, settings }) => {
            let nothing: Map<String, Value> = settings.into_iter().map(|name| (name, Value::Null)).collect();
            client.change_lane(&lane, &nothing).await?
        }
    };
    show(&lane, is_json)
}

/// Turns `retry.max_retries=3` into the server's JSON. The server checks the values.
pub(crate) fn changes(settings: &[String]) -> Result<Value, CliError> {
    let mut changes = Map::new();
    for setting in settings {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(CliError::Input("write each setting as SETTING=VALUE: max_concurrency=4".to_owned()));
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
            // A whole block together with one of its settings, or the same setting twice.
            (Some(_), _) => true,
        };
        if is_given_before {
            return Err(CliError::Input(format!("{first} is given twice; give it once")));
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
        "?>MAX QUEUED",
        ">WAIT P50",
        "?>P90",
        "?>P95",
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
            format::maybe(wait.p95_ms),
            format::maybe(wait.p99_ms),
            lane.counters.failed.to_string(),
            state(lane).to_owned(),
        ]);
    }
    rows.print("All lanes are idle; --all lists them.")?;
    match cursor {
        Some(_) => output::line(&format!("… and more than {LISTED_MAX}")),
        None => Ok(()),
    }
}

/// Whether a lane is paused or draining, in words.
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
            "p50 {}, p90 {}, p95 {}, p99 {}",
            format::maybe(p.p50_ms),
            format::maybe(p.p90_ms),
            format::maybe(p.p95_ms),
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
    pairs.push(("wait time", percentiles(&lane.wait)));
    pairs.push(("run time", percentiles(&lane.run)));
    let counted = format!(
        "{} accepted, {} completed, {} failed, {} cancelled, {} timed out waiting, {} lost",
        counters.accepted,
        counters.completed,
        counters.failed,
        counters.cancelled,
        counters.timed_out_waiting,
        counters.lost
    );
    pairs.push(("tasks", counted));
    output::pairs(&pairs)?;
    settings(&lane.settings)
}

fn settings(settings: &BTreeMap<String, Value>) -> Result<(), CliError> {
    output::line("")?;
    let pairs: Vec<(&str, String)> =
        settings.iter().map(|(name, value)| (name.as_str(), format::full(value))).collect();
    output::pairs(&pairs)
}
