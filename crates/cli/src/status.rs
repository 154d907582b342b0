//! `laneway status`: what runs and what waits.

use laneway_client::{Client, TasksQuery, Watch};
use laneway_protocol::{StatusView, TaskView};
use serde_json::json;

use crate::arguments::Status;
use crate::output::{self, Rows};
use crate::shown;
use crate::trouble::Trouble;

/// How many tasks of each sort are listed.
const LISTED_MAX: u32 = 50;

/// Shows how everything stands, once or from now on.
pub(crate) async fn run(verb: Status) -> Result<(), Trouble> {
    let client = verb.asking.client()?;
    if !verb.watch {
        return show(&verb, &client).await;
    }
    let mut events = client.events(Watch::everything().lasting()).await?;
    let mut last = None;
    loop {
        match verb.line {
            true => follow_line(&verb, &client, &mut last).await?,
            false => show(&verb, &client).await?,
        }
        // Whatever else happened since is in the next look too.
        loop {
            let Some(event) = events.next().await? else { return Ok(()) };
            if matches!(event.event.as_str(), "changed" | "gap" | "configured") {
                break;
            }
        }
    }
}

/// Prints the line if it is another than before. A server that is away for a moment is idle for a status bar.
async fn follow_line(verb: &Status, client: &Client, last: &mut Option<String>) -> Result<(), Trouble> {
    let status = match client.status().await {
        Ok(status) => status,
        Err(error) if error.is_away() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let line = line_of(&status);
    if last.as_ref() == Some(&line) {
        return Ok(());
    }
    match verb.asking.json {
        true => output::json_line(&status)?,
        false => output::line(&line)?,
    }
    *last = Some(line);
    Ok(())
}

/// What a status bar shows; nothing when idle.
fn line_of(status: &StatusView) -> String {
    match status.running + status.waiting {
        0 => String::new(),
        _ => status.line.clone(),
    }
}

async fn show(verb: &Status, client: &Client) -> Result<(), Trouble> {
    let status = client.status().await?;
    if verb.line {
        let line = line_of(&status);
        return match (verb.asking.json, line.is_empty()) {
            (true, _) => output::json(&status),
            (false, true) => Ok(()),
            (false, false) => output::line(&line),
        };
    }
    let mut tasks = Vec::new();
    for word in ["running", "retrying", "queued"] {
        let query =
            TasksQuery { status: Some(word.to_owned()), limit: Some(LISTED_MAX), ..TasksQuery::default() };
        let mut page = client.tasks(&query).await?.items;
        page.sort_by_key(|task| (task.position, task.started_at, task.submitted_at));
        tasks.extend(page);
    }
    if verb.asking.json {
        return output::json(&json!({
            "running": status.running, "waiting": status.waiting, "max_concurrent": status.max_concurrent,
            "line": status.line, "tasks": tasks,
        }));
    }
    if tasks.is_empty() {
        return output::line("Nothing runs and nothing waits.");
    }
    output::line(&status.line)?;
    output::line("")?;
    rows_of(&tasks).print("")?;
    let hidden = u64::from(status.running + status.waiting).saturating_sub(tasks.len() as u64);
    match hidden {
        0 => Ok(()),
        _ => output::line(&format!(
            "… and {}; `laneway tasks --limit N` lists more",
            shown::counted(hidden, "task")
        )),
    }
}

/// Live tasks: where each stands, and since when.
fn rows_of(tasks: &[TaskView]) -> Rows {
    let mut rows = Rows::under(&["TASK", "STATUS", "LANE", "KIND", ">FOR", ">STARTS IN", "SESSION"]);
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
            shown::since(since),
            if is_running { String::new() } else { shown::maybe(task.eta_ms) },
            task.session.clone().unwrap_or_default(),
        ]);
    }
    rows
}
