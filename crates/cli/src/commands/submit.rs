//! `laneway submit` and `laneway chat`.

use std::io::{BufRead, IsTerminal, Write};

use laneway_client::{AskKind, AskOptions, Client, Watch};
use laneway_protocol::{ChatRequest, RetryRequest, TaskRequest};
use serde_json::Value;

use crate::arguments::{Chat, Submit};
use crate::commands::follow::Follow;
use crate::commands::tasks::priority;
use crate::error::CliError;
use crate::output;
use crate::output::format;

/// Submits a task.
pub(crate) async fn submit(verb: Submit) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let request = TaskRequest {
        kind: verb.kind,
        lanes: verb.lanes,
        payload: payload(&verb.payload)?,
        priority: verb.timing.priority.as_deref().map(priority),
        source: None,
        fair_key: None,
        parent: None,
        group: verb.group,
        wait_timeout_ms: verb.timing.wait_timeout,
        timeout_ms: verb.timing.timeout,
        deadline_ms: verb.timing.deadline,
        run_after_ms: verb.run_after,
        retry: verb
            .retries
            .map(|retries| RetryRequest { max_retries: Some(retries), ..RetryRequest::default() }),
    };
    let accepted = client.submit(&request, verb.timing.key.as_deref()).await?;
    if verb.wait {
        let events = client.events(Watch::task(accepted.id.clone()).lasting()).await?;
        let following = Follow::new(verb.asking.json).until_over(events);
        return tokio::select! {
            over = following => over,
            _ = tokio::signal::ctrl_c() => {
                let id = accepted.id;
                let why = format!("task {id} continues; `laneway cancel {id}` cancels it");
                Err(CliError::Interrupted(why))
            }
        };
    }
    match (verb.asking.json, verb.quiet) {
        (true, _) => output::json(&accepted),
        (false, true) => output::line(&accepted.id),
        (false, false) => {
            let line = summary(&accepted.id, &accepted.status, accepted.position, accepted.eta_ms);
            output::line(&format!("{line} ({})", accepted.durability))
        }
    }
}

/// `<id>: queued #2, starts in 3.0s`.
fn summary(id: &str, status: &str, position: Option<u64>, eta_ms: Option<u64>) -> String {
    let position = position.map(|position| format!(" #{position}")).unwrap_or_default();
    let eta = eta_ms.filter(|eta| *eta > 0).map(|eta| format!(", starts in {}", format::duration(eta)));
    format!("{id}: {status}{position}{}", eta.unwrap_or_default())
}

/// Reads a payload as JSON, else as text. A text that starts like an object is an error, because it is broken JSON.
fn payload(text: &str) -> Result<Value, CliError> {
    let read = match text {
        "-" => read_all()?,
        text => text.to_owned(),
    };
    match serde_json::from_str(&read) {
        Ok(value) => Ok(value),
        Err(error) if read.trim_start().starts_with('{') => Err(CliError::Input(format!(
            "the payload starts with {{ but is not JSON: {error}; write a text that starts with {{ as a JSON string"
        ))),
        Err(_) => Ok(Value::from(read.trim_end())),
    }
}

fn read_all() -> Result<String, CliError> {
    std::io::read_to_string(std::io::stdin())
        .map_err(|error| CliError::Input(format!("cannot read standard input: {error}")))
}

/// Runs `laneway chat`.
pub(crate) async fn chat(verb: Chat) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    match &verb.message {
        Some(message) => ask(&client, &verb, message).await,
        None if std::io::stdin().is_terminal() => talk(&client, &verb).await,
        None => ask(&client, &verb, read_all()?.trim_end()).await,
    }
}

/// Asks for one turn.
async fn ask(client: &Client, verb: &Chat, message: &str) -> Result<(), CliError> {
    let request = ChatRequest {
        message: message.to_owned(),
        session: session_of(verb),
        priority: verb.timing.priority.as_deref().map(priority),
        wait_timeout_ms: verb.timing.wait_timeout,
        timeout_ms: verb.timing.timeout,
        deadline_ms: verb.timing.deadline,
        ..ChatRequest::default()
    };
    let form = if verb.parallel { AskKind::Task } else { AskKind::Chat };
    let options = AskOptions { key: verb.timing.key.clone(), detach: verb.detach, ..AskOptions::default() };
    if !verb.detach {
        let events = client.chat_events(&verb.agent, form, &request, &options).await?;
        return Follow::new(verb.asking.json).until_over(events).await;
    }
    let accepted = client.chat_later(&verb.agent, form, &request, &options).await?;
    let turn = &accepted.execution;
    if verb.asking.json {
        output::json(&accepted)
    } else {
        let line = summary(&turn.id, &turn.status, turn.position, turn.eta_ms);
        output::line(&format!("{line} ({})", accepted.durability))
    }
}

/// Asks for one turn per line of the terminal, until the input ends. The server answers a `/queue` line itself.
async fn talk(client: &Client, verb: &Chat) -> Result<(), CliError> {
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot read: {error}"));
    loop {
        let mut err = std::io::stderr();
        write!(err, "{}> ", verb.agent).and_then(|()| err.flush()).map_err(cannot)?;
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).map_err(cannot)? == 0 {
            eprintln!();
            return Ok(());
        }
        let line = line.trim();
        let done = match line {
            "" => Ok(()),
            line if line.starts_with("/queue") => send_directive(client, verb, line).await,
            line => ask(client, verb, line).await,
        };
        match done {
            Ok(()) => {}
            Err(CliError::Failure(why)) => eprintln!("laneway: {why}"),
            // The next line may succeed.
            Err(CliError::Server(error)) => eprintln!("laneway: {error}"),
            Err(other) => return Err(other),
        }
    }
}

async fn send_directive(client: &Client, verb: &Chat, line: &str) -> Result<(), CliError> {
    let key = session_of(verb).unwrap_or_default();
    let message = crate::commands::sessions::message(verb.agent.clone(), line.to_owned());
    let answer = client.send_message(&key, &message).await?;
    output::line(&format::plain_lines(&answer.reply.unwrap_or(answer.outcome)))
}

/// The session of the chat: by default the agent's own, because the lines of a terminal are one conversation.
fn session_of(verb: &Chat) -> Option<String> {
    (!verb.parallel).then(|| verb.session.clone().unwrap_or_else(|| format!("agent:{}", verb.agent)))
}
