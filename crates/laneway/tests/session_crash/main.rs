//! Kills a process with SIGKILL that has one turn running and nine messages waiting, in each mode, and looks whether
//! all ten are accounted for after the restart.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway::{Context, Failure, Laneway, MessageEnd, MessageId, Mode, NewMessage, TurnPayload};

/// Where the child finds the store, and in which mode it sends.
const DIR: &str = "LANEWAY_SESSION_CRASH_DIR";
const MODE: &str = "LANEWAY_SESSION_CRASH_MODE";

const MODES: [&str; 8] =
    ["collect", "followup", "steer", "steer-backlog", "interrupt", "queue", "reject", "latest"];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let outcome = match (env::var(DIR), env::var(MODE)) {
        (Ok(dir), Ok(mode)) => runtime().and_then(|runtime| runtime.block_on(child(Path::new(&dir), &mode))),
        _ => parent(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("session crash: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_time().build()?)
}

/// Starts a turn that never ends, sends nine messages more, and waits for the kill.
async fn child(dir: &Path, mode: &str) -> Outcome<()> {
    let mode = Mode::parse(mode).ok_or("no such mode")?;
    let (running, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let lanes = Laneway::open(dir)
        .handler("bot", move |context: Context, _: TurnPayload| {
            let running = running.clone();
            async move {
                context.set_steering(true).await.map_err(Failure::fatal)?;
                running.send(()).map_err(Failure::fatal)?;
                std::future::pending::<Result<(), Failure>>().await
            }
        })
        .await?;
    for number in 0..10 {
        let text = format!("m{number}");
        let message = NewMessage::new("alice", "bot", text).mode(mode).debounce(Duration::ZERO);
        match lanes.send_message(message).await {
            Ok(reply) => println!("sent {number} {} {}", reply.message.0, reply.outcome.as_str()),
            Err(error) => println!("refused {number} 0 {}", error.code()),
        }
        if number == 0 {
            runs.recv().await;
        }
    }
    println!("ready 0 0 -");
    std::future::pending().await
}

fn parent() -> Outcome<()> {
    let program = env::current_exe()?;
    let problems = std::thread::scope(|scope| {
        let checks = MODES.map(|mode| {
            let program = &program;
            scope.spawn(move || check(program, mode).map_err(|problem| format!("{mode}: {problem}")))
        });
        checks.map(|check| check.join().unwrap_or(Err("it panicked".to_owned())))
    });
    problems.into_iter().collect::<Result<Vec<()>, String>>()?;
    println!(
        "session crash: one turn running and nine messages sent, killed in {} modes, all accounted for",
        MODES.len()
    );
    Ok(())
}

fn check(program: &Path, mode: &str) -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let dir = place.path().join("data");
    let mut child = Command::new(program).env(DIR, &dir).env(MODE, mode).stdout(Stdio::piped()).spawn()?;
    let pipe = child.stdout.take().ok_or("the child has no pipe")?;
    let mut sent: BTreeMap<u32, (MessageId, String)> = BTreeMap::new();
    let mut refused = 0;
    for line in BufReader::new(pipe).lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["sent", number, id, outcome] => {
                sent.insert(number.parse()?, (MessageId(id.parse()?), outcome.to_owned()));
            }
            ["refused", _, _, "SESSION_BUSY"] => refused += 1,
            ["ready", ..] => break,
            _ => return Err(format!("the child said {line:?}").into()),
        }
    }
    child.kill()?;
    child.wait()?;
    let (turns, ends) = runtime()?.block_on(finish(&dir, &sent))?;
    compare(mode, refused, &turns, &ends).map_err(|problem| format!("{problem}; {turns:?} {ends:?}").into())
}

/// What each turn after the restart was about: its messages, and whether it was marked as sent again.
type Turns = Vec<(Vec<String>, bool)>;

/// Opens the store that the child left, and lets everything come to its end.
async fn finish(
    dir: &Path,
    sent: &BTreeMap<u32, (MessageId, String)>,
) -> Outcome<(Turns, BTreeMap<u32, MessageEnd>)> {
    let turns: Arc<Mutex<Turns>> = Arc::default();
    let told = Arc::clone(&turns);
    let lanes = Laneway::open(dir)
        .handler("bot", move |_: Context, turn: TurnPayload| {
            let texts = turn.messages.into_iter().map(|message| message.text).collect();
            told.lock().unwrap_or_else(PoisonError::into_inner).push((texts, turn.redelivered));
            async { Ok(()) }
        })
        .await?;
    let mut ends = BTreeMap::new();
    for (number, (message, _)) in sent {
        ends.insert(*number, lanes.message_ended(*message).await?);
    }
    if lanes.session("alice").await?.is_some_and(|session| !session.waiting.is_empty() || session.busy) {
        return Err("something is left".into());
    }
    lanes.shutdown(Duration::from_secs(5)).await;
    let turns = turns.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((turns, ends))
}

fn compare(mode: &str, refused: u32, turns: &Turns, ends: &BTreeMap<u32, MessageEnd>) -> Outcome<()> {
    let texts = |numbers: std::ops::Range<u32>| -> Vec<String> {
        numbers.map(|number| format!("m{number}")).collect()
    };
    let first = (texts(0..1), true);
    let alone = |numbers: std::ops::Range<u32>| numbers.map(|number| (texts(number..number + 1), false));
    let expected: Turns = match mode {
        "collect" => vec![first, (texts(1..10), false)],
        "followup" | "steer" | "queue" | "steer-backlog" => {
            std::iter::once(first).chain(alone(1..10)).collect()
        }
        "interrupt" => alone(9..10).collect(),
        "reject" => vec![first],
        _ => std::iter::once(first).chain(alone(9..10)).collect(),
    };
    if *turns != expected {
        return Err(format!("the turns were not {expected:?}").into());
    }
    let count = |is_it: fn(&MessageEnd) -> bool| ends.values().filter(|end| is_it(end)).count() as u32;
    let delivered = count(|end| matches!(end, MessageEnd::Delivered { .. }));
    let cancelled = count(|end| matches!(end, MessageEnd::Cancelled { .. }));
    let dropped = count(|end| matches!(end, MessageEnd::Dropped { .. }));
    let counted = match mode {
        "interrupt" => (1, 9, 0, 0),
        "reject" => (1, 0, 0, 9),
        "latest" => (2, 0, 8, 0),
        _ => (10, 0, 0, 0),
    };
    if (delivered, cancelled, dropped, refused) == counted {
        Ok(())
    } else {
        Err(format!("delivered, cancelled, dropped, refused are not {counted:?}").into())
    }
}
