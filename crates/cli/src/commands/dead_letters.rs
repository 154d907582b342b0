//! `laneway dlq`: tasks that could not be done.

use std::time::Duration;

use indicatif::ProgressBar;
use laneway_client::{Client, Error};
use laneway_protocol::{Code, DeadLetterView, RedriveAnswer};

use crate::arguments::{Dlq, DlqCommand, Letters};
use crate::error::CliError;
use crate::output::format;
use crate::output::progress;
use crate::output::{self, Rows};

/// How many letters one page brings.
const PAGE: u32 = 500;
/// For how long room is waited for, for one letter.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does what was asked.
pub(crate) async fn run(verb: Dlq) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    match verb.command {
        None => {
            let letters = all(&client, verb.limit as usize).await?;
            if is_json { output::json(&letters) } else { list(&letters) }
        }
        Some(DlqCommand::Show { id }) => {
            let letters = all(&client, usize::MAX).await?;
            let letter = letters.into_iter().find(|letter| letter.id == id);
            let letter = letter.ok_or_else(|| {
                CliError::Failure("there is no such dead letter; `laneway dlq` lists them".to_owned())
            })?;
            if is_json { output::json(&letter) } else { show(&letter) }
        }
        Some(DlqCommand::Redrive(letters)) => act(&client, letters, Deed::Redrive, is_json).await,
        Some(DlqCommand::Discard(letters)) => act(&client, letters, Deed::Discard, is_json).await,
    }
}

/// What becomes of letters.
#[derive(Clone, Copy, PartialEq)]
enum Deed {
    Redrive,
    Discard,
}

async fn all(client: &Client, most: usize) -> Result<Vec<DeadLetterView>, CliError> {
    let mut letters = Vec::new();
    let mut cursor: Option<String> = None;
    while letters.len() < most {
        let limit = (most - letters.len()).min(PAGE as usize) as u32;
        let page = client.dead_letters(Some(limit), cursor.as_deref()).await?;
        letters.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(letters)
}

/// One letter after another, so that whoever waits sees how far it is, and whatever stops it stops it between two.
async fn act(client: &Client, letters: Letters, deed: Deed, is_json: bool) -> Result<(), CliError> {
    let is_bulk = letters.all || letters.lane.is_some() || letters.kind.is_some();
    let ids = match (is_bulk, letters.ids.is_empty()) {
        (false, true) => {
            return Err(CliError::Input("say which: TASK, --all, --lane or --kind".to_owned()));
        }
        (false, false) => letters.ids,
        (true, _) => {
            let fits = |letter: &DeadLetterView| {
                letters.lane.as_ref().is_none_or(|lane| *lane == letter.lane)
                    && letters.kind.as_ref().is_none_or(|kind| *kind == letter.kind)
            };
            let found = all(client, usize::MAX).await?.into_iter().filter(fits);
            found.map(|letter| letter.id).collect()
        }
    };
    let counted = format::counted(ids.len() as u64, "dead letter");
    match deed {
        _ if ids.is_empty() => {}
        Deed::Redrive if is_bulk => letters.sure.ask(&format!("Running {counted} again"))?,
        Deed::Redrive => {}
        Deed::Discard => letters.sure.ask(&format!("Throwing away {counted} for good"))?,
    }
    let bar = progress::bar(ids.len() as u64, is_json);
    let mut done = RedriveAnswer { count: 0, tasks: Vec::new() };
    let mut left = 0;
    for id in &ids {
        let answer = match patiently(client, id, deed, &bar).await {
            Ok(answer) => answer,
            // A slot, for example: whoever means all of them means what can be run again.
            Err(error) if is_bulk && matches!(deed, Deed::Redrive) && error.code() == Some(Code::Invalid) => {
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
        eprintln!("laneway: {} cannot be run again", format::counted(left, "dead letter"));
    }
    if is_json {
        return output::json(&done);
    }
    match deed {
        Deed::Redrive if done.tasks.len() == 1 => {
            output::line(&format!("Runs again as task {}.", done.tasks[0]))
        }
        Deed::Redrive => output::line(&format!("{} run again.", format::counted(done.count, "dead letter"))),
        Deed::Discard => output::line(&format!("Threw away {}.", format::counted(done.count, "dead letter"))),
    }
}

/// Does it to one letter. Where the line is full it waits as long as it is told to, and then tries again: the line drains
/// while many are redriven.
async fn patiently(client: &Client, id: &str, deed: Deed, bar: &ProgressBar) -> Result<RedriveAnswer, Error> {
    let mut patience = PATIENCE;
    loop {
        let error = match deed {
            Deed::Redrive => client.redrive(id).await,
            Deed::Discard => client.discard(id).await,
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

fn list(letters: &[DeadLetterView]) -> Result<(), CliError> {
    let mut rows = Rows::under(&["TASK", "LANE", "?KIND", "?>TRIES", ">AGE", "ERROR"]);
    for letter in letters {
        rows.add([
            letter.id.clone(),
            letter.lane.clone(),
            letter.kind.clone(),
            letter.attempts.to_string(),
            format::since(letter.at),
            format::short(&letter.error),
        ]);
    }
    rows.print("There are no dead letters.")
}

fn show(letter: &DeadLetterView) -> Result<(), CliError> {
    output::pairs(&[
        ("task", letter.id.clone()),
        ("lane", letter.lane.clone()),
        ("kind", letter.kind.clone()),
        ("attempts", letter.attempts.to_string()),
        ("died", letter.at.to_string()),
        ("error", letter.error.clone()),
        ("payload", format::full(&letter.payload)),
    ])
}
