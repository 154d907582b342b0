//! Programs that run a turn: a child process in a group of its own, ended with the run.

use laneway_config::Program as Configured;
use laneway_engine::Failure;
use laneway_process::{Exit, News, Program, Running, Text};
use serde_json::{Value, json};

use crate::runners::Run;

/// How much a program may write before it is stopped.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a line of the `jsonl` protocol may be.
const LINE_BYTES_MAX: usize = 1024 * 1024;

fn program(configured: &Configured, run: &Run) -> Result<Program, Failure> {
    let mut program = Program::new(configured.command.iter()).map_err(Failure::fatal)?;
    if let Some(allowed) = &configured.env {
        program = program.allow(allowed.iter());
    }
    if let Some(dir) = &configured.cwd {
        program = program.dir(dir);
    }
    if let Some(trace) = &run.envelope.traceparent {
        program = program.variable("TRACEPARENT", trace);
    }
    if let Some(turn) = &run.turn {
        program = program.variable("LANEWAY_AGENT", &turn.agent);
    }
    Ok(program
        .variable("LANEWAY_TASK_ID", run.context.task().to_string())
        .variable("LANEWAY_FENCE", run.context.fence().0.to_string())
        .variable("LANEWAY_URL", &run.url))
}

/// The message on stdin; what it writes to stdout is the response.
pub(crate) async fn text(configured: &Configured, run: Run) -> Result<Value, Failure> {
    let mut running = program(configured, &run)?.start().map_err(Failure::fatal)?;
    feed(&mut running, run.input().into_bytes());
    let mut decoder = Text::default();
    let mut answer = String::new();
    let mut is_too_long = false;
    let exit = loop {
        match next(&mut running, &run).await {
            News::Output(bytes) => {
                let mut piece = String::new();
                decoder.push(&bytes, &mut piece);
                if answer.len() + piece.len() > OUTPUT_BYTES_MAX {
                    is_too_long = true;
                    running.stop();
                } else if !piece.is_empty() {
                    answer.push_str(&piece);
                    run.context.delta(piece);
                }
            }
            News::Ended { exit, stderr } => break told(exit, &stderr, &run),
        }
    };
    if is_too_long {
        return Err(Failure::fatal(format!("the program wrote more than {OUTPUT_BYTES_MAX} bytes")));
    }
    succeeded(&exit)?;
    Ok(run.output(answer))
}

/// Writes what goes in and closes, beside the reading: a program may answer before it has read all.
fn feed(running: &mut Running, bytes: Vec<u8>) {
    if let Some(mut input) = running.input() {
        tokio::spawn(async move {
            // A program that does not read is free not to.
            drop(input.write(&bytes).await);
        });
    }
}

/// What the program does next; one that was told to stop is asked to.
async fn next(running: &mut Running, run: &Run) -> News {
    if run.context.stop().reason().is_some() {
        running.stop();
        return running.next().await;
    }
    let stop = run.context.stop().clone();
    tokio::select! {
        news = running.next() => return news,
        _ = stop.wait() => {}
    }
    running.stop();
    running.next().await
}

/// What a program says on stderr goes to the log of whoever looks for it, never to callers.
fn told(exit: Exit, stderr: &str, run: &Run) -> Exit {
    if !stderr.is_empty() {
        tracing::debug!(task = %run.context.task(), bytes = stderr.len(), "the program wrote to stderr");
    }
    exit
}

fn succeeded(exit: &Exit) -> Result<(), Failure> {
    match exit.is_success() {
        true => Ok(()),
        false => Err(Failure::new(format!("the program ended with {exit}"))),
    }
}

/// A JSON object on each line, both ways.
///
/// In: first `{"type": "message", …}` with all of the turn, then `{"type": "steer", "text"}` as it comes. Out:
/// `{"type": "delta", "text"}`, `{"type": "progress", …}`, and last `{"type": "result", "result"}` or
/// `{"type": "error", "error", "retryable"?}`. Without a result the deltas together are the answer.
pub(crate) async fn jsonl(configured: &Configured, run: Run) -> Result<Value, Failure> {
    let mut running = program(configured, &run)?.start().map_err(Failure::fatal)?;
    let mut first = run.body();
    if let Some(object) = first.as_object_mut() {
        object.insert("type".to_owned(), "message".into());
    } else {
        first = json!({ "type": "message", "payload": first });
    }
    let mut input = running.input();
    let mut lines = Lines::default();
    let mut speech = Speech::default();
    let mut line = Some(format!("{first}\n").into_bytes());
    let is_turn = run.context.lanes().iter().any(laneway_core::LaneName::is_conversation);
    if is_turn {
        // One that cannot be told is one that is over already.
        drop(run.context.set_steering(true).await);
    }
    let exit = loop {
        let can_take = is_turn && line.is_none() && !speech.is_over();
        let writing = async {
            match (&mut input, &mut line) {
                (Some(input), Some(bytes)) => drop(input.write(bytes).await),
                _ => std::future::pending().await,
            }
        };
        // What was said is taken only when it can be passed on.
        let steering = async {
            match can_take {
                true => run.context.next_steering().await,
                false => std::future::pending().await,
            }
        };
        let news = tokio::select! {
            news = next(&mut running, &run) => news,
            () = writing => {
                line = None;
                continue;
            }
            steered = steering => {
                line = steered.ok().map(|messages| steer_lines(&messages));
                continue;
            }
        };
        match news {
            News::Output(bytes) => {
                for line in lines.push(&bytes)? {
                    speech.hear(&line, &run)?;
                }
                if speech.is_over() {
                    // Its input ends, so that it can end by itself.
                    input = None;
                }
            }
            News::Ended { exit, stderr } => break told(exit, &stderr, &run),
        }
    };
    if let Some(failure) = speech.failure {
        return Err(failure);
    }
    succeeded(&exit)?;
    Ok(speech.result.unwrap_or_else(|| run.output(speech.text)))
}

fn steer_lines(messages: &[laneway_engine::SteeringMessage]) -> Vec<u8> {
    let line = |message: &laneway_engine::SteeringMessage| {
        format!("{}\n", json!({ "type": "steer", "text": message.text, "sender_name": message.sender_name }))
    };
    messages.iter().map(line).collect::<String>().into_bytes()
}

/// Cuts what a program writes into lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.0.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let rest = self.0.split_off(end + 1);
            lines.push(std::mem::replace(&mut self.0, rest));
        }
        match self.0.len() > LINE_BYTES_MAX {
            true => {
                Err(Failure::fatal(format!("the program wrote a line of more than {LINE_BYTES_MAX} bytes")))
            }
            false => Ok(lines),
        }
    }
}

/// What a program has said.
#[derive(Default)]
struct Speech {
    text: String,
    result: Option<Value>,
    failure: Option<Failure>,
}

impl Speech {
    fn is_over(&self) -> bool {
        self.result.is_some() || self.failure.is_some()
    }

    fn hear(&mut self, line: &[u8], run: &Run) -> Result<(), Failure> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let wrong = || Failure::fatal("the program wrote a line that is no JSON object with a known type");
        let said: Value = serde_json::from_slice(line).map_err(|_| wrong())?;
        match said.get("type").and_then(Value::as_str) {
            Some("delta") => {
                let text = said.get("text").and_then(Value::as_str).ok_or_else(wrong)?;
                if self.text.len() + text.len() > OUTPUT_BYTES_MAX {
                    return Err(Failure::fatal(format!(
                        "the program wrote more than {OUTPUT_BYTES_MAX} bytes"
                    )));
                }
                self.text.push_str(text);
                run.context.delta(text);
            }
            Some("progress") => run.context.progress(said),
            Some("result") => self.result = Some(said.get("result").cloned().unwrap_or_default()),
            Some("error") => {
                let error = said.get("error").and_then(Value::as_str).unwrap_or("the program says it failed");
                let retryable = said.get("retryable").and_then(Value::as_bool).unwrap_or(true);
                self.failure = Some(Failure { error: error.to_owned(), retryable });
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }
}
