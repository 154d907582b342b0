//! `laneway status`: running and waiting tasks.

use std::io::IsTerminal;
use std::time::Duration;

use laneway_client::{Client, Events, TasksQuery, Watch};
use laneway_protocol::{StatusView, TaskView};
use serde_json::json;

use crate::arguments::Status;
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// How many tasks of each status are listed.
const LISTED_MAX: u32 = 50;
/// The shortest time between two outputs, however much happens.
const AT_MOST_EVERY: Duration = Duration::from_millis(200);
/// The longest time between two requests, so that a missing server is noticed.
const AT_LEAST_EVERY: Duration = Duration::from_secs(2);

/// Shows the status, once or at each change.
pub(crate) async fn run(verb: Status) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let mut last = None;
    if !verb.watch {
        return show(&verb, &client).await;
    }
    let mut events = client.events(Watch::everything().lasting()).await?;
    loop {
        let shown = if verb.line {
            follow_line(&verb, &client, &mut last).await
        } else {
            follow(&verb, &client).await
        };
        match shown {
            // The server may come back.
            Err(CliError::Server(error)) if error.is_away() => gone(&verb, &error, &mut last)?,
            shown => {
                shown?;
                if !verb.line {
                    last = None;
                }
            }
        }
        tokio::time::sleep(AT_MOST_EVERY).await;
        let next = next_change(&mut events);
        // The event stream does not report that the server is gone, so ask again after the timeout.
        if let Ok(is_over) = tokio::time::timeout(AT_LEAST_EVERY, next).await
            && is_over?
        {
            return Ok(());
        }
    }
}

/// Waits for an event that changes the status. True means that the stream has ended.
async fn next_change(events: &mut Events) -> Result<bool, CliError> {
    loop {
        match events.next().await? {
            None => return Ok(true),
            Some(event) if matches!(event.event.as_str(), "changed" | "gap" | "configured") => {
                return Ok(false);
            }
            Some(_) => {}
        }
    }
}

/// Reports once that the server cannot be reached: an empty line for a status bar, else the error.
fn gone(verb: &Status, error: &laneway_client::Error, last: &mut Option<String>) -> Result<(), CliError> {
    let was_known = last.replace(String::new()).is_none_or(|line| !line.is_empty());
    match (verb.line, was_known) {
        (true, true) if !verb.asking.json => output::line(""),
        (false, true) => {
            eprintln!("laneway: {}", format::plain(&error.to_string()));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Prints the status again. A terminal is cleared first.
async fn follow(verb: &Status, client: &Client) -> Result<(), CliError> {
    let status = client.status().await?;
    if std::io::stdout().is_terminal() && !verb.asking.json {
        output::text("\u{1b}[H\u{1b}[2J")?;
    }
    present(verb, client, &status).await
}

/// Prints the line if it has changed.
async fn follow_line(verb: &Status, client: &Client, last: &mut Option<String>) -> Result<(), CliError> {
    let status = client.status_of(verb.lane.as_deref()).await?;
    let line = line_of(&status);
    if last.as_ref() == Some(&line) {
        return Ok(());
    }
    if verb.asking.json {
        output::json_line(&status)?
    } else {
        output::line(&line)?
    }
    *last = Some(line);
    Ok(())
}

/// The line for a status bar; empty when idle.
fn line_of(status: &StatusView) -> String {
    match status.running + status.waiting {
        0 => String::new(),
        _ => status.line.clone(),
    }
}

async fn show(verb: &Status, client: &Client) -> Result<(), CliError> {
    let status = client.status_of(verb.lane.as_deref()).await?;
    if verb.line {
        let line = line_of(&status);
        return match (verb.asking.json, line.is_empty()) {
            (true, _) => output::json(&status),
            (false, true) => Ok(()),
            (false, false) => output::line(&line),
        };
    }
    present(verb, client, &status).await
}

async fn present(verb: &Status, client: &Client, status: &StatusView) -> Result<(), CliError> {
    let mut tasks = Vec::new();
    for word in ["running", "retrying", "queued"] {
        let query =
            TasksQuery { status: Some(word.to_owned()), limit: Some(LISTED_MAX), ..TasksQuery::default() };
        let mut page = client.tasks(&query).await?.items;
        page.sort_by_key(|task| (task.position, task.started_at, task.submitted_at));
        tasks.extend(page);
    }
    if verb.asking.json {
        let all = json!({
            "running": status.running, "waiting": status.waiting, "max_concurrent": status.max_concurrent,
            "line": status.line, "tasks": tasks,
        });
        return if verb.watch { output::json_line(&all) } else { output::json(&all) };
    }
    if tasks.is_empty() {
        return output::line("No task runs or waits.");
    }
    output::line(&status.line)?;
    output::line("")?;
    rows_of(&tasks).print("")?;
    let hidden = u64::from(status.running + status.waiting).saturating_sub(tasks.len() as u64);
    match hidden {
        0 => Ok(()),
        _ => output::line(&format!(
            "… and {}; `laneway tasks --limit N` lists them",
            format::counted(hidden, "task")
        )),
    }
}

/// A table of live tasks.
fn rows_of(tasks: &[TaskView]) -> Rows {
    let mut rows =
        Rows::under(&["TASK", "STATUS", "LANE", "?KIND", ">FOR", ">STARTS IN", "?SESSION", "LABEL"]);
    for task in tasks {
        let is_running = task.status == "running";
        let status = match task.position.filter(|_| !is_running) {
            Some(position) => format!("{} #{position}", task.status),
            None => task.status.clone(),
        };
        let since = task.started_at.filter(|_| is_running).unwrap_or(task.submitted_at);
        rows.add([
            task.id.clone(),
            status,
            task.lanes.first().cloned().unwrap_or_default(),
            task.kind.clone(),
            format::since(since),
            if is_running { String::new() } else { format::maybe(task.eta_ms) },
            task.session.clone().unwrap_or_default(),
            task.label.as_deref().map(format::short).unwrap_or_default(),
        ]);
    }
    rows.without_empty("LABEL")
}
