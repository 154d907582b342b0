//! `laneway cancel`.

use laneway_client::Client;
use laneway_protocol::CancelManyRequest;
use serde_json::json;

use crate::arguments::Cancel;
use crate::error::CliError;
use crate::output;
use crate::output::format;

/// The lane that every task needs.
const EVERYTHING: &str = "global";

/// Cancels the tasks that the options name.
pub(crate) async fn run(verb: Cancel) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let which = CancelManyRequest {
        lane: if verb.all { Some(EVERYTHING.to_owned()) } else { verb.which.lane },
        session: verb.which.session,
        kind: verb.which.kind,
        group: verb.which.group,
        parent: None,
        dry_run: false,
    };
    let is_some = [&which.lane, &which.session, &which.kind, &which.group].iter().any(|word| word.is_some());
    if is_some {
        let what =
            if verb.all { "Cancelling all waiting tasks" } else { "Cancelling all waiting tasks that match" };
        verb.sure.ask(what)?;
        let answer = client.cancel_many(&which).await?;
        return if verb.asking.json {
            output::json(&answer)
        } else {
            output::line(&cancelled(answer.cancelled))
        };
    }
    if verb.ids.is_empty() {
        let why = "name the tasks: TASK, --all, --lane, --session, --kind or --group";
        return Err(CliError::Input(why.to_owned()));
    }
    cancel_each(&client, &verb.ids, verb.asking.json).await
}

/// Cancels one task after another. When one cannot be cancelled, it prints the refusal and continues.
async fn cancel_each(client: &Client, ids: &[String], is_json: bool) -> Result<(), CliError> {
    let mut answers = Vec::new();
    let mut failed = None;
    for id in ids {
        match client.cancel(id).await {
            Ok(answer) if is_json => answers.push(json!(answer)),
            Ok(answer) => output::line(&format!("{}: {}", answer.id, answer.status.replace('_', " ")))?,
            // Without an answer, the server cannot be reached for the other tasks either.
            Err(error) if ids.len() == 1 || error.problem().is_none() => return Err(error.into()),
            Err(error) => {
                if is_json {
                    answers.push(json!({ "id": id, "problem": error.problem() }));
                }
                eprintln!("laneway: {}: {}", format::plain(id), format::plain(&error.to_string()));
                failed.get_or_insert(error);
            }
        }
    }
    if is_json {
        output::json(&answers)?;
    }
    failed.map_or(Ok(()), |error| Err(CliError::ReportedServer(error)))
}

/// How many tasks were cancelled, in the words that a status bar shows.
pub(crate) fn cancelled(count: u64) -> String {
    match count {
        0 => "No queued requests to cancel.".to_owned(),
        1 => "Cancelled 1 queued request.".to_owned(),
        more => format!("Cancelled {more} queued requests."),
    }
}
