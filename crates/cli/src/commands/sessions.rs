//! `laneway sessions`.

use laneway_protocol::{MessageAnswer, MessageRequest, MessageView, SessionChange, SessionSummary};

use crate::arguments::{Sessions, SessionsCommand};
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// Runs `laneway sessions`.
pub(crate) async fn run(verb: Sessions) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    match verb.command {
        None => {
            let sessions = client.sessions(Some(verb.limit), None).await?.items;
            if is_json { output::json(&sessions) } else { list(&sessions) }
        }
        Some(SessionsCommand::Show { key }) => show(&client.session(&key).await?, is_json),
        Some(SessionsCommand::Send { key, text, agent }) => {
            taken(&client.send_message(&key, &message(agent, text)).await?, is_json)
        }
        Some(SessionsCommand::Set(set)) => {
            let change = SessionChange {
                mode: set.mode,
                debounce_ms: set.debounce,
                max_wait_ms: set.max_wait,
                cap: set.cap,
                drop: set.drop,
            };
            show(&client.change_session(&set.key, &change).await?, is_json)
        }
        Some(SessionsCommand::Withdraw { key, message }) => {
            client.withdraw_message(&key, &message).await?;
            done("Withdrawn.", is_json)
        }
        Some(SessionsCommand::Promote { key, message }) => {
            taken(&client.promote(&key, &message).await?, is_json)
        }
        Some(SessionsCommand::Resend { key, message }) => {
            taken(&client.resend(&key, &message).await?, is_json)
        }
        Some(SessionsCommand::Interrupt { key, sure }) => {
            sure.ask(&format!("Stopping the turn of session {key}"))?;
            client.interrupt(&key).await?;
            done("Interrupted.", is_json)
        }
        Some(SessionsCommand::Clear { key, sure }) => {
            sure.ask(&format!("Dropping all waiting messages of session {key}"))?;
            let answer = client.clear_session(&key).await?;
            if is_json {
                output::json(&answer)
            } else {
                output::line(&format!("Dropped {}.", format::counted(answer.cancelled, "message")))
            }
        }
    }
}

/// A message with only its required parts.
pub(crate) fn message(agent: String, text: String) -> MessageRequest {
    MessageRequest { agent, text, ..MessageRequest::default() }
}

/// Prints the outcome of a sent message.
fn taken(answer: &MessageAnswer, is_json: bool) -> Result<(), CliError> {
    if is_json {
        return output::json(answer);
    }
    if let Some(reply) = &answer.reply {
        return output::line(&format::plain_lines(reply));
    }
    let place = answer.position.map(|position| format!(" #{position}")).unwrap_or_default();
    let task = answer.task_id.as_ref().map(|task| format!(", task {task}")).unwrap_or_default();
    output::line(&format!("{}{place}{task}", answer.outcome.replace('_', " ")))
}

fn done(word: &str, is_json: bool) -> Result<(), CliError> {
    if is_json { output::json(&serde_json::json!({ "done": true })) } else { output::line(word) }
}

fn mode_of(session: &SessionSummary) -> String {
    session.settings.mode.value.clone()
}

fn list(sessions: &[SessionSummary]) -> Result<(), CliError> {
    let mut rows = Rows::under(&["SESSION", "STATE", "MODE", ">WAITING", "NEXT MESSAGE"]);
    for session in sessions {
        let next = session.messages.first().map(|message| format::short(&message.text));
        rows.add([
            session.key.clone(),
            if session.is_busy { "busy" } else { "idle" }.to_owned(),
            mode_of(session),
            session.messages.len().to_string(),
            next.unwrap_or_default(),
        ]);
    }
    rows.print("There are no sessions with a turn, messages or settings of their own.")
}

fn show(session: &SessionSummary, is_json: bool) -> Result<(), CliError> {
    if is_json {
        return output::json(session);
    }
    let mut pairs = vec![("session", session.key.clone())];
    let turn = session.current_turn.as_ref().map(|turn| turn.task_id.clone());
    pairs.push(("state", if session.is_busy { "busy" } else { "idle" }.to_owned()));
    pairs.extend(turn.map(|turn| ("turn", turn)));
    for (name, setting) in session.settings.by_name() {
        pairs.push((name, format!("{} (from {})", setting.value, setting.from)));
    }
    if session.dropped > 0 {
        pairs.push(("dropped", session.dropped.to_string()));
    }
    pairs.extend(session.retry_at.map(|at| ("next attempt in", format::until(at))));
    output::pairs(&pairs)?;
    if !session.messages.is_empty() {
        output::line("")?;
        let from = |message: &MessageView| message.sender_name.clone().or_else(|| message.channel.clone());
        messages("FROM", &session.messages, from)?;
    }
    if !session.set_aside.is_empty() {
        output::line("\nParked:")?;
        messages("ERROR", &session.set_aside, |message| message.error.as_deref().map(format::short))?;
    }
    Ok(())
}

/// Prints messages with one more column.
fn messages(
    more: &'static str,
    messages: &[MessageView],
    of: impl Fn(&MessageView) -> Option<String>,
) -> Result<(), CliError> {
    let mut rows = Rows::under(&["MESSAGE", ">AGE", more, "TEXT"]);
    for message in messages {
        rows.add([
            message.id.clone(),
            format::since(message.at),
            of(message).unwrap_or_default(),
            format::short(&message.text),
        ]);
    }
    rows.print("")
}
