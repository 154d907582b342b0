//! One replica: it brings work, runs work, and says what was accepted and what it has done.
//!
//! Its lines: `ready`, `accepted <task>` (a store has it), `done <task> <fence>` (before it is reported), `away` (refused
//! because the store is), `idle` (it brings no more).

use std::io::Write;
use std::time::Duration;

use laneway_core::{Block, LaneSettings, Pattern};
use laneway_engine::{Context, Failure, Handle, Options, Task};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::backend::open;
use crate::{LEASE_MS, REPLICA_LEASE_MS, SESSIONS, WORK_MAX};

/// How often a replica brings something.
const EVERY: Duration = Duration::from_millis(25);
/// How long to wait before a store that was not there at the start is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Says a line that outlives us: it is in the pipe when this returns.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

fn block(lanes: &str, words: &[(&str, &str)]) -> Block {
    let mut settings = LaneSettings::default();
    words.iter().for_each(|(key, value)| settings.set(key, value).unwrap());
    Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(settings) }
}

pub(crate) async fn be(url: &str, number: u64, run_ms_max: u64) {
    let lanes = join(url).await;
    say("ready");
    let load = tokio::spawn(bring(lanes.clone(), number, run_ms_max));
    // A line, or the end of our input: bring no more.
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    drop(input.next_line().await);
    load.abort();
    say("idle");
    // Whatever is left is run by all of us, until the input ends.
    while let Ok(Some(_)) = input.next_line().await {}
    lanes.shutdown(Duration::from_secs(5)).await;
}

async fn join(url: &str) -> Handle {
    loop {
        let mut options = Options::default();
        options.replica_lease = Duration::from_millis(REPLICA_LEASE_MS);
        // The whole log is there to be checked.
        options.snapshot_every = u64::MAX;
        let options = options.handler("turn", turn).unwrap();
        if let Ok(store) = open(url).await
            && let Ok(lanes) = Handle::join(store, options).await
        {
            let (lease, most) = (format!("{LEASE_MS}ms"), WORK_MAX.to_string());
            let work = block(
                "work",
                &[("max_concurrency", &most), ("max_queued", "60"), ("lease", &lease), ("retry", "fixed")],
            );
            let sessions = block("session:*", &[("max_concurrency", "1"), ("max_queued", "40")]);
            if lanes.configure(vec![work, sessions]).await.is_ok() {
                return lanes;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn turn(context: Context, ms: u64) -> Result<Value, Failure> {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    say(&format!("done {} {}", context.task().0, context.fence().0));
    Ok(json!(ms))
}

/// Brings turns of conversations, and every fifth time a closure.
async fn bring(lanes: Handle, number: u64, run_ms_max: u64) {
    let mut brought = number * 7;
    loop {
        tokio::time::sleep(EVERY).await;
        brought += 1;
        let ms = brought * 13 % run_ms_max;
        if brought.is_multiple_of(5) {
            let lanes = lanes.clone();
            tokio::spawn(async move {
                // Refused, lost or done: the log is what counts.
                drop(lanes.run(Task::new("work"), tokio::time::sleep(Duration::from_millis(ms))).await);
            });
            continue;
        }
        let task = Task::new("work").lane(format!("session:{}", brought % SESSIONS)).kind("turn").payload(ms);
        let lanes = lanes.clone();
        tokio::spawn(async move {
            match lanes.submit(task).await {
                Ok(task) => {
                    say(&format!("accepted {}", task.id().0));
                    task.detach();
                }
                Err(error) if error.code() == "STORE_UNAVAILABLE" => say("away"),
                // A full line.
                Err(_) => {}
            }
        });
    }
}
