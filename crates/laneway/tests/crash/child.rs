//! The process that is killed: submits, runs, and tells of both.

use std::env;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway::{Block, Context, Failure, LaneSettings, Laneway, Pattern, Task};
use serde_json::{Value, json};

use crate::{FINISH, FIRST, number};

/// The lanes: what is lost when it was under way, and what is tried again.
pub(crate) const LANES: [&str; 2] = ["once", "again"];

pub(crate) fn main(dir: &Path) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(work(dir)).map_err(|error| error.to_string())
}

async fn work(dir: &Path) -> Result<(), laneway::Error> {
    let mut open = Laneway::open(dir).with(|options| {
        // Often, so that kills strike while the state is saved and the log trimmed.
        options.snapshot_every = 40;
        options.history_max = u64::MAX;
    });
    for lane in LANES {
        open = open.handler(lane, move |context: Context, payload: Value| run(lane, context, payload));
    }
    let lanes = open.await?;
    tell("open");
    lanes.configure(vec![block("once", &[]), block("again", &RETRY), block("closures", &[])]).await?;
    if env::var(FINISH).is_ok() {
        while lanes.tasks().await?.iter().any(|_| true) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        lanes.shutdown(Duration::from_secs(10)).await;
        return Ok(());
    }
    let next = Arc::new(AtomicU64::new(number(FIRST).unwrap_or(0)));
    let submitters = LANES.map(|lane| tokio::spawn(submit(lanes.clone(), lane, Arc::clone(&next))));
    let closures = tokio::spawn(run_closures(lanes.clone()));
    for submitter in submitters {
        submitter.await.map_err(|_| laneway::Error::Closed)??;
    }
    // Only the kill ends this.
    drop(closures.await);
    Ok(())
}

const RETRY: [(&str, &str); 3] =
    [("retry", "fixed"), ("retry.fixed_delay", "1ms"), ("retry.max_retries", "1000000")];

fn block(lane: &str, words: &[(&str, &str)]) -> Block {
    let mut settings = LaneSettings::default();
    let slots = [("max_concurrency", "2"), ("max_queued", "1000000")];
    for (key, value) in slots.iter().chain(words) {
        // A setting that is refused would show in the very first round.
        settings.set(key, value).unwrap_or_else(|error| tell(&format!("bad {error}")));
    }
    let lanes = Pattern::new(lane).unwrap_or_else(|_| Pattern::from(&laneway::LaneName::main()));
    Block { lanes, settings: Some(settings) }
}

/// One submitter for each lane, so that the numbers of a lane are in the order of acceptance.
async fn submit(lanes: Laneway, lane: &'static str, next: Arc<AtomicU64>) -> Result<(), laneway::Error> {
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        tell(&format!("try {lane} {number}"));
        let task = Task::new(lane).kind(lane).payload(payload(number));
        let id = lanes.submit(task).await?.id();
        tell(&format!("ack {lane} {number} {}", id.0));
    }
}

async fn run_closures(lanes: Laneway) {
    loop {
        // The end of a closure is lost with the kill.
        drop(lanes.run(Task::new("closures"), tokio::time::sleep(Duration::from_micros(500))).await);
    }
}

async fn run(lane: &'static str, context: Context, payload: Value) -> Result<u64, Failure> {
    let number = payload["number"].as_u64().ok_or_else(|| Failure::fatal("no number"))?;
    tell(&format!("start {lane} {number} {}", context.attempt()));
    tokio::time::sleep(Duration::from_micros(number % 4 * 700)).await;
    tell(&format!("done {lane} {number} {}", context.attempt()));
    Ok(number)
}

pub(crate) fn payload(number: u64) -> Value {
    json!({ "number": number, "padding": "x".repeat(number as usize % 300) })
}

/// One line in one write, so that the kill cannot tear it.
fn tell(line: &str) {
    let line = format!("{line}\n");
    let mut out = std::io::stdout().lock();
    let told = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    if told.is_err() {
        std::process::exit(1);
    }
}
