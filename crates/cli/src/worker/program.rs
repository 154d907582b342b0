//! Programs that run tasks: each attempt is a child process in its own process group, which ends with the attempt.

use laneway_client::{Attempt, AttemptFailure};
use laneway_config::{Protocol, WorkerProgram};
use laneway_process::jsonl::{self, OutputEvent, OutputReader, ProgramAnswer};
use laneway_process::{Program, ProgramEnd, ProgramEvent, StartError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::worker::limits;
use crate::worker::template::words;

/// The default for how much a program may write before the worker stops it.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Runs the program for one attempt.
pub(crate) async fn run(
    configured: &WorkerProgram,
    attempt: &Attempt,
    url: &str,
) -> Result<Value, AttemptFailure> {
    let program = program(configured, attempt, url)?;
    match configured.protocol {
        Protocol::Text => text(configured, &program, attempt).await,
        Protocol::Jsonl => jsonl(configured, &program, attempt).await,
    }
}

fn program(configured: &WorkerProgram, attempt: &Attempt, url: &str) -> Result<Program, AttemptFailure> {
    let task = attempt.task();
    let mut argv = words(&configured.command, task)?;
    if configured.limits.is_any() {
        argv = limits::under(&configured.limits, argv).map_err(AttemptFailure::new)?;
    }
    let mut program = Program::new(argv).map_err(AttemptFailure::fatal)?;
    if let Some(allowed) = &configured.env {
        program = program.allow(allowed.iter());
    }
    if let Some(dir) = &configured.cwd {
        program = program.dir(dir);
    }
    if let Some(grace) = configured.grace {
        program = program.grace(grace);
    }
    if let Some(trace) = &task.traceparent {
        program = program.variable("TRACEPARENT", trace);
    }
    Ok(program
        .output_max(output_max(configured))
        .variable("LANEWAY_TASK_ID", &task.id)
        .variable("LANEWAY_FENCE", task.fence.to_string())
        .variable("LANEWAY_ATTEMPT", task.attempt.to_string())
        .variable("LANEWAY_URL", url))
}

fn output_max(configured: &WorkerProgram) -> usize {
    configured.output_bytes_max.map_or(OUTPUT_BYTES_MAX, |bytes| bytes as usize)
}

/// What of the program is missing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotThere {
    #[error(transparent)]
    Directory(StartError),
    #[error("there is no program {0}")]
    Program(String),
}

/// Checks that the program and its directory exist.
pub(crate) fn check(configured: &WorkerProgram) -> Result<(), NotThere> {
    if let Some(dir) = configured.cwd.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(NotThere::Directory(StartError::NoDirectory(dir.clone())));
    }
    let name = configured.command.first().and_then(|word| word.fixed()).unwrap_or_default();
    let is_there = if name.contains('/') {
        configured.cwd.as_deref().unwrap_or(".".as_ref()).join(name).exists()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(name).exists())
    };
    if is_there { Ok(()) } else { Err(NotThere::Program(name.to_owned())) }
}

/// A retry may find a missing program or directory on another machine, but an invalid argument never becomes valid.
fn not_started(error: StartError) -> AttemptFailure {
    match error {
        StartError::Unusable(_) => AttemptFailure::fatal(error),
        error => AttemptFailure::new(error),
    }
}

/// Runs a program with the payload on stdin and its result on stdout.
async fn text(
    configured: &WorkerProgram,
    program: &Program,
    attempt: &Attempt,
) -> Result<Value, AttemptFailure> {
    let input = if configured.stdin { input_of(attempt) } else { String::new() };
    let stop = async {
        attempt.stopped().await;
    };
    let done = program.run(input, stop, |_| {}).await.map_err(not_started)?;
    let ended = succeeded(&done, attempt);
    let output = || serde_json::from_str(&done.stdout).unwrap_or(Value::String(done.stdout.clone()));
    match ended {
        Ok(()) if is_turn(attempt) => Ok(Value::String(done.stdout)),
        Ok(()) => Ok(output()),
        // What a tool wrote before it failed says what went wrong.
        Err(failure) if !is_turn(attempt) && !done.stdout.is_empty() && !done.overflowed => {
            Err(failure.with_output(output()))
        }
        Err(failure) => Err(failure),
    }
}

fn is_turn(attempt: &Attempt) -> bool {
    attempt.task().kind.starts_with("agent:")
}

/// The program's input: the message of a turn, else the payload. A text stays as it is, other values become JSON.
fn input_of(attempt: &Attempt) -> String {
    let payload = &attempt.task().payload;
    let message = payload.get("message").or_else(|| payload.get("text")).filter(|_| is_turn(attempt));
    match message.unwrap_or(payload) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn succeeded(done: &ProgramEnd, attempt: &Attempt) -> Result<(), AttemptFailure> {
    log_stderr(&done.stderr, attempt);
    if let Some(reason) = attempt.stop_cause() {
        return Err(AttemptFailure::new(reason));
    }
    if done.overflowed {
        return Err(AttemptFailure::fatal("the program wrote more than it may"));
    }
    if done.exit.is_success() {
        Ok(())
    } else {
        // Standard error stays on this machine, because it may hold secrets.
        Err(AttemptFailure::new(format!("the program ended with {}", done.exit)))
    }
}

fn log_stderr(stderr: &str, attempt: &Attempt) {
    if !stderr.trim().is_empty() {
        tracing::warn!(task = attempt.task().id, stderr = stderr.trim(), "the program wrote to stderr");
    }
}

/// Runs a program with one JSON object per line in both directions, as the server does with its own programs.
async fn jsonl(
    configured: &WorkerProgram,
    program: &Program,
    attempt: &Attempt,
) -> Result<Value, AttemptFailure> {
    let mut running = program.start().map_err(not_started)?;
    let mut input = running.input().filter(|_| configured.stdin).map(jsonl::writer);
    if let Some(input) = &input {
        // The channel is empty and has room for one line.
        drop(input.try_send(jsonl::first_line(attempt.task().payload.clone())));
    }
    let mut output = OutputReader::new(output_max(configured));
    let mut is_stopping = false;
    let exit = loop {
        tokio::select! {
            biased;
            _ = attempt.stopped(), if !is_stopping => {
                is_stopping = true;
                running.stop();
            }
            news = running.next() => match news {
                ProgramEvent::Output(bytes) => {
                    for event in output.push(&bytes).map_err(AttemptFailure::fatal)? {
                        match event {
                            OutputEvent::Progress(progress) => attempt.progress(progress),
                            OutputEvent::Delta(text) => attempt.delta(&text),
                        }
                    }
                    if output.is_over() {
                        // Closing its input lets the program end.
                        input = None;
                    }
                }
                ProgramEvent::Ended { exit, stderr } => {
                    log_stderr(&stderr, attempt);
                    break exit;
                }
            },
            () = pass_steering(input.as_ref(), attempt) => {}
        }
    };
    match (attempt.stop_cause(), output.answer()) {
        (Some(reason), _) => Err(AttemptFailure::new(reason)),
        (None, ProgramAnswer::Error { error, retryable, output }) => {
            Err(AttemptFailure { error, retryable, output })
        }
        (None, _) if !exit.is_success() => Err(AttemptFailure::new(format!("the program ended with {exit}"))),
        (None, ProgramAnswer::Result(result)) => Ok(result),
        (None, ProgramAnswer::Text(text)) => Ok(Value::String(text)),
    }
}

/// Passes one steering message to the program. It takes the message only when the program can receive it.
async fn pass_steering(input: Option<&mpsc::Sender<String>>, attempt: &Attempt) {
    let room = match input.filter(|_| attempt.task().session.is_some()) {
        Some(input) => input.reserve().await.ok(),
        None => None,
    };
    match room {
        Some(room) => {
            let text = attempt.next_steering().await.text;
            room.send(format!("{}\n", json!({ "type": "steer", "text": text })));
        }
        None => std::future::pending().await,
    }
}
