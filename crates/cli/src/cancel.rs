//! `laneway cancel`.

use laneway_protocol::CancelManyRequest;

use crate::arguments::Cancel;
use crate::output;
use crate::trouble::Trouble;

/// Every task names this lane without saying so.
const EVERYTHING: &str = "global";

/// Cancels what was named.
pub(crate) async fn run(verb: Cancel) -> Result<(), Trouble> {
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
            if verb.all { "Cancelling everything that waits" } else { "Cancelling all that fits and waits" };
        verb.sure.ask(what)?;
        let answer = client.cancel_many(&which).await?;
        return match verb.asking.json {
            true => output::json(&answer),
            false => output::line(&told(answer.cancelled)),
        };
    }
    if verb.ids.is_empty() {
        let why = "say which: TASK, --all, --lane, --session, --kind or --group";
        return Err(Trouble::Input(why.to_owned()));
    }
    let mut answers = Vec::new();
    for id in &verb.ids {
        let answer = client.cancel(id).await?;
        if !verb.asking.json {
            output::line(&format!("{}: {}", answer.id, answer.status.replace('_', " ")))?;
        }
        answers.push(answer);
    }
    if verb.asking.json { output::json(&answers) } else { Ok(()) }
}

/// How many were cancelled, in the words that a status bar shows.
pub(crate) fn told(cancelled: u64) -> String {
    match cancelled {
        0 => "No queued requests to cancel.".to_owned(),
        1 => "Cancelled 1 queued request.".to_owned(),
        more => format!("Cancelled {more} queued requests."),
    }
}
