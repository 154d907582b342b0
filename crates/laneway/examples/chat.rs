//! A chat with a slow agent: write while it works, and see what each mode does with what you write.
//!
//! The agent answers after five seconds, looking up from its work each second for messages that steer it.
//!
//! ```sh
//! cargo run -p laneway --example chat
//! ```
//!
//! Each line is sent at once. `/queue steer` (or collect, followup, steer-backlog, interrupt, reject, latest) sets what
//! happens to messages while the agent works, and `/queue` shows it. `/stop` stops, and `/new` starts a new conversation.
//! An empty line waits for five seconds, a dot for one, and the end of the input until everything is answered. With
//! `--script`, lines come from a file or a pipe, and the clock is virtual, so the five seconds pass at once.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use laneway::{
    Context, Error, Event, Failure, Laneway, MessageEnd, NewMessage, SessionDelta, Subscription, TurnPayload,
    Update,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const WORK: u32 = 5;

fn main() -> Outcome<()> {
    let is_script = std::env::args().nth(1).as_deref() == Some("--script");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time();
    if is_script {
        runtime.start_paused(true);
    }
    runtime.build()?.block_on(chat(is_script))
}

async fn chat(is_script: bool) -> Outcome<()> {
    let lanes = Laneway::in_memory();
    lanes.handler("agent", work)?;
    let mut updates = lanes.session_events("terminal")?;
    let mut lines = typed(is_script);
    loop {
        tokio::select! {
            biased;
            update = updates.next() => tell(update),
            line = lines.recv() => match line {
                Some(line) if line.trim().is_empty() => wait(&mut updates, Duration::from_secs(5)).await,
                Some(line) if line.trim() == "." => wait(&mut updates, Duration::from_secs(1)).await,
                Some(line) => say(&lanes, &line).await?,
                None => break,
            },
        }
    }
    while lanes.session("terminal").await?.is_some_and(|session| session.typing) {
        tell(updates.next().await);
    }
    while let Some(update) = updates.try_next() {
        tell(Some(update));
    }
    Ok(())
}

/// The agent: works for a while, and looks up from it each second.
async fn work(context: Context, turn: TurnPayload) -> Result<(), Failure> {
    let fresh = if turn.fresh { " afresh" } else { "" };
    println!("agent: works{fresh} on {:?}", turn.text);
    context.set_steering(true).await.map_err(Failure::fatal)?;
    for _ in 0..WORK {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = context.stop().wait() => {
                println!("agent: drops that");
                return Err(Failure::fatal("stopped"));
            }
        }
        for message in context.take_steering().await.map_err(Failure::fatal)? {
            println!("agent: looks up, {:?}", message.text);
        }
    }
    context.set_steering(false).await.map_err(Failure::fatal)?;
    println!("agent: is done");
    Ok(())
}

async fn say(lanes: &Laneway, line: &str) -> Outcome<()> {
    // A terminal shows what is typed by itself.
    if !std::io::stdin().is_terminal() {
        println!("you: {line}");
    }
    match lanes.send_message(NewMessage::new("terminal", "agent", line).may_configure()).await {
        Ok(reply) => match reply.reply {
            Some(answer) => println!("  {answer}"),
            None => println!("  {}", reply.outcome.as_str()),
        },
        Err(Error::Rejected(rejection)) => println!("  refused: {}", rejection.code()),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Tells what became of messages that the sender was not told at once.
fn tell(update: Option<Update>) {
    let Some(Update::Event { event, .. }) = update else { return };
    let Event::Session(event) = &*event else { return };
    match &event.change {
        SessionDelta::Ended { end: MessageEnd::Dropped { rule }, .. } => {
            println!("  dropped by the rule {}", rule.as_str())
        }
        SessionDelta::Ended { end: MessageEnd::Cancelled { .. }, .. } => println!("  cancelled"),
        SessionDelta::Returned { messages, .. } => println!("  {} too late, in line again", messages.len()),
        _ => {}
    }
}

/// Goes on telling for a while.
async fn wait(updates: &mut Subscription, length: Duration) {
    let pause = tokio::time::sleep(length);
    tokio::pin!(pause);
    loop {
        tokio::select! {
            biased;
            update = updates.next() => tell(update),
            () = &mut pause => return,
        }
    }
}

/// The lines that are typed. A script is there as a whole before anything happens; a person types when he likes.
fn typed(is_script: bool) -> tokio::sync::mpsc::Receiver<String> {
    let (sender, lines) = tokio::sync::mpsc::channel(1024);
    let read = move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    };
    if is_script {
        // The clock stands still meanwhile.
        drop(std::thread::spawn(read).join());
    } else {
        std::thread::spawn(read);
    }
    lines
}
