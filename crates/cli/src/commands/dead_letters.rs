//! `laneway dlq`: dead letters.

use std::time::Duration;

use indicatif::ProgressBar;
use laneway_client::{Client, Error};
use laneway_protocol::{Code, DeadLetterView, RedriveAnswer};

use crate::arguments::{DeadLetters, Dlq, DlqCommand};
use crate::error::CliError;
use crate::output::format;
use crate::output::progress;
use crate::output::{self, Rows};

/// How many dead letters a page has.
const PAGE: u32 = 500;
/// How long to wait for room in a lane, for one dead letter.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `laneway dlq`.
pub(crate) async fn run(verb: Dlq) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    match verb.command {
        None => {
            let found = all(&client, verb.limit as usize).await?;
            if is_json { output::json(&found) } else { list(&found) }
        }
        Some(DlqCommand::Show { id }) => {
            let found = all(&client, usize::MAX).await?.into_iter().find(|dead_letter| dead_letter.id == id);
            let dead_letter = found.ok_or_else(|| {
                CliError::Failure("there is no such dead letter; `laneway dlq` lists them".to_owned())
            })?;
            if is_json { output::json(&dead_letter) } else { show(&dead_letter) }
        }
        Some(DlqCommand::Redrive(which)) => act(&client, which, Action::Redrive, is_json).await,
        Some(DlqCommand::Discard(which)) => act(&client, which, Action::Discard, is_json).await,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Action {
    Redrive,
    Discard,
}

async fn all(client: &Client, most: usize) -> Result<Vec<DeadLetterView>, CliError> {
    let mut dead_letters = Vec::new();
    let mut cursor: Option<String> = None;
    while dead_letters.len() < most {
        let limit = (most - dead_letters.len()).min(PAGE as usize) as u32;
        let page = client.dead_letters(Some(limit), cursor.as_deref()).await?;
        dead_letters.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(dead_letters)
}

/// Acts on one dead letter after another, so that the bar shows the progress and an interrupt falls between two.
async fn act(client: &Client, which: DeadLetters, action: Action, is_json: bool) -> Result<(), CliError> {
    let is_bulk = which.all || which.lane.is_some() || which.kind.is_some();
    let ids = match (is_bulk, which.ids.is_empty()) {
        (false, true) => {
            return Err(CliError::Input("name the dead letters: TASK, --all, --lane or --kind".to_owned()));
        }
        (false, false) => which.ids,
        (true, _) => {
            let matches = |dead_letter: &DeadLetterView| {
                which.lane.as_ref().is_none_or(|lane| *lane == dead_letter.lane)
                    && which.kind.as_ref().is_none_or(|kind| *kind == dead_letter.kind)
            };
            let found = all(client, usize::MAX).await?.into_iter().filter(matches);
            found.map(|dead_letter| dead_letter.id).collect()
        }
    };
    let counted = format::counted(ids.len() as u64, "dead letter");
    match action {
        _ if ids.is_empty() => {}
        Action::Redrive if is_bulk => which.sure.ask(&format!("Redriving {counted}"))?,
        Action::Redrive => {}
        Action::Discard => which.sure.ask(&format!("Deleting {counted} for good"))?,
    }
    let bar = progress::bar(ids.len() as u64, is_json);
    let mut done = RedriveAnswer { count: 0, tasks: Vec::new() };
    let mut left = 0;
    for id in &ids {
        let answer = match wait_and_act(client, id, action, &bar).await {
            Ok(answer) => answer,
            // A slot, for example, cannot be redriven; a bulk redrive skips it.
            Err(error) if is_bulk && action == Action::Redrive && error.code() == Some(Code::Invalid) => {
                left += 1;
                bar.inc(1);
                continue;
            }
            Err(error) => {
                bar.abandon();
                eprintln!("laneway: stopped after {} of {counted}", done.count);
                return Err(error.into());
            }
        };
        done.count += answer.count;
        done.tasks.extend(answer.tasks);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if left > 0 {
        eprintln!("laneway: {} cannot be redriven", format::counted(left, "dead letter"));
    }
    if is_json {
        return output::json(&done);
    }
    match action {
        Action::Redrive if done.tasks.len() == 1 => {
            output::line(&format!("Redriven as task {}.", done.tasks[0]))
        }
        Action::Redrive => output::line(&format!("Redrove {}.", format::counted(done.count, "dead letter"))),
        Action::Discard => output::line(&format!("Deleted {}.", format::counted(done.count, "dead letter"))),
    }
}

/// Acts on one dead letter. When its lane is full, waits for the time that the server names and tries again.
async fn wait_and_act(
    client: &Client,
    id: &str,
    action: Action,
    bar: &ProgressBar,
) -> Result<RedriveAnswer, Error> {
    let mut patience = PATIENCE;
    loop {
        let error = match action {
            Action::Redrive => client.redrive(id).await,
            Action::Discard => client.discard(id).await,
        };
        let error = match error {
            Ok(answer) => {
                bar.set_message("");
                return Ok(answer);
            }
            Err(error) => error,
        };
        let is_full = matches!(error.code(), Some(Code::AtCapacity | Code::RateLimited));
        let wait = error.problem().and_then(|problem| problem.retry_after_ms).map(Duration::from_millis);
        match wait.filter(|wait| is_full && *wait <= patience) {
            Some(wait) => {
                bar.set_message("waits for room");
                tokio::time::sleep(wait).await;
                patience -= wait;
            }
            None => return Err(error),
        }
    }
}

fn list(dead_letters: &[DeadLetterView]) -> Result<(), CliError> {
    let mut rows = Rows::under(&["TASK", "LANE", "?KIND", "?>ATTEMPTS", ">AGE", "ERROR"]);
    for dead_letter in dead_letters {
        rows.add([
            dead_letter.id.clone(),
            dead_letter.lane.clone(),
            dead_letter.kind.clone(),
            dead_letter.attempts.to_string(),
            format::since(dead_letter.at),
            format::short(&dead_letter.error),
        ]);
    }
    rows.print("There are no dead letters.")
}

fn show(dead_letter: &DeadLetterView) -> Result<(), CliError> {
    output::pairs(&[
        ("task", dead_letter.id.clone()),
        ("lane", dead_letter.lane.clone()),
        ("kind", dead_letter.kind.clone()),
        ("attempts", dead_letter.attempts.to_string()),
        ("failed", dead_letter.at.to_string()),
        ("error", dead_letter.error.clone()),
        ("payload", format::full(&dead_letter.payload)),
    ])
}
