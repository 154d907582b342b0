//! `laneway tasks`, `laneway explain`, `laneway workers`.

use laneway_client::TasksQuery;
use laneway_protocol::{PriorityRequest, TaskChange, TaskView};

use crate::arguments::{Explain, Tasks, TasksCommand, Workers};
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// How many tasks a page has.
const PAGE: u32 = 500;

/// Runs `laneway tasks`.
pub(crate) async fn run(verb: Tasks) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let task = match verb.command {
        Some(TasksCommand::Show { id }) => client.task(&id).await?,
        Some(TasksCommand::Priority { id, priority }) => {
            let change = TaskChange { priority: self::priority(&priority) };
            client.change_task(&id, &change).await?
        }
        None => {
            let mut query = TasksQuery {
                status: verb.status,
                lane: verb.which.lane,
                session: verb.which.session,
                kind: verb.which.kind,
                group: verb.which.group,
                ..TasksQuery::default()
            };
            let mut tasks = Vec::new();
            while tasks.len() < verb.limit as usize {
                query.limit = Some((verb.limit - tasks.len() as u32).min(PAGE));
                let page = client.tasks(&query).await?;
                tasks.extend(page.items);
                query.cursor = page.next_cursor;
                if query.cursor.is_none() {
                    break;
                }
            }
            return list(&tasks, query.cursor.is_some(), verb.asking.json);
        }
    };
    show(&task, verb.asking.json)
}

/// A priority as a number or a word. The server checks it.
pub(crate) fn priority(text: &str) -> PriorityRequest {
    match text.parse() {
        Ok(level) => PriorityRequest::Level(level),
        Err(_) => PriorityRequest::Word(text.to_owned()),
    }
}

fn list(tasks: &[TaskView], has_more: bool, is_json: bool) -> Result<(), CliError> {
    if is_json {
        return output::json(&tasks);
    }
    let headings = ["TASK", "STATUS", "LANE", "?KIND", "?>PRIORITY", "?>ATTEMPTS", ">AGE", "LABEL", "ABOUT"];
    let mut rows = Rows::under(&headings);
    for task in tasks {
        let priority = match task.effective_priority {
            Some(effective) if effective != task.priority => format!("{} ({effective})", task.priority),
            _ => task.priority.to_string(),
        };
        let about = match (&task.error, &task.reason, &task.result, &task.payload) {
            (Some(error), ..) => format::short(error),
            (None, Some(reason), ..) => format!("by {reason}"),
            (None, None, Some(value), _) | (None, None, None, Some(value)) => format::brief(value),
            _ => String::new(),
        };
        rows.add([
            task.id.clone(),
            task.status.clone(),
            task.lanes.first().cloned().unwrap_or_default(),
            task.kind.clone(),
            priority,
            task.attempts.to_string(),
            format::since(task.submitted_at),
            task.label.as_deref().map(format::short).unwrap_or_default(),
            about,
        ]);
    }
    rows.without_empty("LABEL").print("No task matches.")?;
    if has_more { output::line("… and more; --limit N lists them") } else { Ok(()) }
}

fn show(task: &TaskView, is_json: bool) -> Result<(), CliError> {
    if is_json {
        return output::json(task);
    }
    let mut pairs = vec![
        ("task", task.id.clone()),
        ("status", task.status.clone()),
        ("kind", task.kind.clone()),
        ("lanes", task.lanes.join(", ")),
        ("source", task.source.clone()),
    ];
    pairs.extend(task.label.clone().map(|label| ("label", label)));
    let priority = match task.effective_priority {
        Some(effective) if effective != task.priority => format!("{}, level {effective}", task.priority),
        _ => task.priority.to_string(),
    };
    pairs.push(("priority", priority));
    pairs.push(("attempts", task.attempts.to_string()));
    let mut add = |name, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
    add("position", task.position.map(|position| position.to_string()));
    add("starts in", task.eta_ms.map(format::duration));
    add("submitted", Some(task.submitted_at.to_string()));
    add("started", task.started_at.map(|at| at.to_string()));
    add("ended", task.ended_at.map(|at| at.to_string()));
    add("lease until", task.lease_until.map(|at| at.to_string()));
    add("worker", task.worker.clone());
    add("group", task.group.clone());
    add("parent", task.parent.clone());
    add("submitted by", task.owner.clone());
    add("cancelled by", task.reason.clone());
    add("error", task.error.clone());
    add("payload", task.payload.as_ref().map(format::full));
    add("result", task.result.as_ref().map(format::full));
    output::pairs(&pairs)
}

/// Explains why a task waits.
pub(crate) async fn explain(verb: Explain) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let task = client.task(&verb.id).await?;
    if task.ended_at.is_some() {
        return if verb.asking.json { output::json(&task) } else { output::line(&outcome(&task)) };
    }
    let explained = client.explain(&verb.id).await?;
    if verb.asking.json {
        return output::json(&explained);
    }
    for sentence in crate::output::sentences::of(&explained, &task) {
        output::line(&format::plain(&sentence))?;
    }
    Ok(())
}

fn outcome(task: &TaskView) -> String {
    let ended = task.ended_at.map(format::since).unwrap_or_default();
    let how = match (&task.error, &task.reason) {
        (Some(error), _) => format!(": {}", format::short(error)),
        (None, Some(reason)) => format!(" ({reason})"),
        (None, None) => String::new(),
    };
    format!(
        "The task has ended: {} {ended} ago, after {}{how}.",
        task.status,
        format::counted(task.attempts.into(), "attempt")
    )
}

/// Lists workers, or the tasks that wait for one.
pub(crate) async fn workers(verb: Workers) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    if verb.pending {
        let tasks = client.external_tasks(Some(PAGE), None).await?;
        if verb.asking.json {
            return output::json(&tasks.items);
        }
        let mut rows = Rows::under(&["TASK", "LANE", "KIND", "?>ATTEMPT", "?>MAY WAIT", "PAYLOAD"]);
        for task in &tasks.items {
            rows.add([
                task.id.clone(),
                task.lane.clone(),
                task.kind.clone(),
                task.attempt.to_string(),
                format::maybe(task.remaining_ms),
                format::brief(&task.payload),
            ]);
        }
        return rows.print("No task waits for a worker.");
    }
    let workers = client.workers().await?;
    if verb.asking.json {
        return output::json(&workers.items);
    }
    let mut rows = Rows::under(&["WORKER", ">TASKS", ">LEASE", "FIRST TASK"]);
    for worker in &workers.items {
        rows.add([
            worker.worker.clone(),
            worker.tasks.len().to_string(),
            format::until(worker.lease_until),
            worker.tasks.first().cloned().unwrap_or_default(),
        ]);
    }
    rows.print("No worker has tasks.")
}
