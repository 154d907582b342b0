//! Programs that answer turns: a child process in its own group, which ends with the attempt.

use laneway_config::ProgramConfig;
use laneway_engine::Failure;
use laneway_process::jsonl::{self, OutputEvent, OutputReader, ProgramAnswer};
use laneway_process::{Exit, Program, ProgramEvent, RunningProgram, Text};
use laneway_protocol::TurnPayloadView;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::agents::handlers::Run;

/// A program that writes more is stopped.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest variable of a program: Linux allows twice as much.
const VARIABLE_BYTES_MAX: usize = 64 * 1024;

fn program(configured: &ProgramConfig, run: &Run) -> Result<Program, Failure> {
    let mut program = Program::new(configured.command.iter()).map_err(Failure::fatal)?;
    if let Some(allowed) = &configured.env {
        program = program.allow(allowed.iter());
    }
    if let Some(dir) = &configured.cwd {
        program = program.dir(dir);
    }
    if let Some(trace) = run.context.trace() {
        program = program.variable("TRACEPARENT", trace);
    }
    if let Some(turn) = &run.turn {
        program = program.variable("LANEWAY_AGENT", &turn.agent);
        if let Some(turn) = in_short(turn) {
            program = program.variable("LANEWAY_TURN", turn);
        }
    }
    Ok(program
        .variable("LANEWAY_TASK_ID", run.context.task().to_string())
        .variable("LANEWAY_FENCE", run.context.fence().0.to_string())
        .variable("LANEWAY_URL", &run.url))
}

/// The turn without its texts, as JSON: where it came from, who may what, and which messages it answers. `None` for a turn that is
/// too long for a variable.
fn in_short(turn: &TurnPayloadView) -> Option<String> {
    let mut turn = serde_json::to_value(turn).ok()?;
    let fields = turn.as_object_mut()?;
    for long in ["message", "text", "system_prompt", "metadata"] {
        fields.remove(long);
    }
    for message in fields.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        for long in ["text", "metadata", "attachments"] {
            message.as_object_mut()?.remove(long);
        }
    }
    Some(turn.to_string()).filter(|text| text.len() <= VARIABLE_BYTES_MAX)
}

/// Writes the message to stdin. The answer is the text on stdout.
pub(super) async fn text(configured: &ProgramConfig, run: Run) -> Result<Value, Failure> {
    let mut running = program(configured, &run)?.start().map_err(Failure::fatal)?;
    write_input(&mut running, run.input().into_bytes());
    let mut decoder = Text::default();
    let mut answer = String::new();
    let mut is_too_long = false;
    let exit = loop {
        match next(&mut running, &run).await {
            ProgramEvent::Output(bytes) => {
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
            ProgramEvent::Ended { exit, stderr } => break logged(exit, &stderr, &run),
        }
    };
    if is_too_long {
        return Err(Failure::fatal(format!("the program wrote more than {OUTPUT_BYTES_MAX} bytes")));
    }
    match check_exit(&exit) {
        // What a tool wrote before it failed says what went wrong.
        Err(failure) if run.turn.is_none() && !answer.is_empty() => {
            Err(failure.with_output(run.output(answer)))
        }
        ended => ended.map(|()| run.output(answer)),
    }
}

/// Writes the input and closes it in a task of its own: a program may answer before it has read all.
fn write_input(running: &mut RunningProgram, bytes: Vec<u8>) {
    if let Some(mut input) = running.input() {
        tokio::spawn(async move {
            // A program that does not read is free not to.
            drop(input.write(&bytes).await);
        });
    }
}

/// The next news of the program. Stops the program if the attempt must stop.
async fn next(running: &mut RunningProgram, run: &Run) -> ProgramEvent {
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

/// Logs how much the program wrote to stderr. Callers never see the text.
fn logged(exit: Exit, stderr: &str, run: &Run) -> Exit {
    if !stderr.is_empty() {
        tracing::debug!(task = %run.context.task(), bytes = stderr.len(), "the program wrote to stderr");
    }
    exit
}

fn check_exit(exit: &Exit) -> Result<(), Failure> {
    if exit.is_success() { Ok(()) } else { Err(Failure::new(format!("the program ended with {exit}"))) }
}

/// A JSON object on each line, both ways: see [`laneway_process::jsonl`].
pub(super) async fn jsonl(configured: &ProgramConfig, run: Run) -> Result<Value, Failure> {
    let mut running = program(configured, &run)?.start().map_err(Failure::fatal)?;
    let mut input = running.input().map(jsonl::writer);
    if let Some(input) = &input {
        // The channel has room for the first line.
        drop(input.try_send(jsonl::first_line(run.body())));
    }
    let mut output = OutputReader::new(OUTPUT_BYTES_MAX);
    let is_turn = run.is_session_turn();
    if is_turn {
        // The call fails only if the attempt has ended.
        drop(run.context.set_steering(true).await);
    }
    let exit = loop {
        let news = tokio::select! {
            news = next(&mut running, &run) => news,
            () = pass_steering(input.as_ref().filter(|_| is_turn), &run) => continue,
        };
        match news {
            ProgramEvent::Output(bytes) => {
                for event in output.push(&bytes).map_err(Failure::fatal)? {
                    match event {
                        OutputEvent::Delta(text) => run.context.delta(text),
                        OutputEvent::Progress(how_far) => run.context.progress(how_far),
                    }
                }
                if output.is_over() {
                    // The program may end when its input ends.
                    input = None;
                }
            }
            ProgramEvent::Ended { exit, stderr } => break logged(exit, &stderr, &run),
        }
    };
    match output.answer() {
        ProgramAnswer::Error { error, retryable, output } => Err(Failure { error, retryable, output }),
        ProgramAnswer::Result(result) => check_exit(&exit).map(|()| result),
        ProgramAnswer::Text(text) => check_exit(&exit).map(|()| run.output(text)),
    }
}

/// Passes steering messages to the program. Takes them only when the program can read them.
async fn pass_steering(input: Option<&mpsc::Sender<String>>, run: &Run) {
    let Some(input) = input else { return std::future::pending().await };
    let Ok(room) = input.reserve().await else { return std::future::pending().await };
    match run.context.next_steering().await {
        Ok(messages) => room.send(steer_lines(&messages)),
        // The attempt has ended. The next news says so.
        Err(_) => std::future::pending().await,
    }
}

fn steer_lines(messages: &[laneway_engine::SteeringMessage]) -> String {
    let line = |message: &laneway_engine::SteeringMessage| {
        let mut line = serde_json::to_value(message).unwrap_or_default();
        line["type"] = "steer".into();
        format!("{line}\n")
    };
    messages.iter().map(line).collect()
}
