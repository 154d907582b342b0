//! A recording of a real engine, replayed with its own configuration, gives what was recorded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Block, LaneSettings, Pattern, Retry, Source};
use laneway_engine::{Context, Failure, Handle, Options, Task};
use laneway_store::{Log, MemoryStore, Store};
use laneway_whatif::{Fate, TaskOutcome, Timeline, Trace, export, read_trace, replay};
use serde_json::Value;

/// The engine decides a moment after what it decides about, and the next run begins a moment later.
const TOLERANCE_MS: u64 = 5;

fn block(lanes: &str, words: &str) -> Block {
    let mut settings = LaneSettings::default();
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap();
        settings.set(key, value).unwrap();
    }
    Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(settings) }
}

fn blocks() -> Vec<Block> {
    vec![
        block("main", "max_concurrency=3"),
        block("provider:llm", "max_concurrency=2"),
        block("quick", "max_concurrency=2 timeout=400ms"),
        block("global", "max_concurrency=6"),
    ]
}

/// Sleeps for as long as its payload says; one that says a negative number fails at the first attempt.
async fn work(context: Context, millis: Value) -> Result<(), Failure> {
    let millis = millis.as_i64().unwrap();
    tokio::time::sleep(Duration::from_millis(millis.unsigned_abs())).await;
    if millis < 0 && context.attempt() == 1 { Err(Failure::new("not at the first try")) } else { Ok(()) }
}

/// Two hundred tasks of several sorts, a few milliseconds apart, through a real engine on tokio's clock.
async fn record(store: Arc<dyn Store>, snapshot_every: u64) -> Handle {
    let mut options = Options::default().handler("work", work).unwrap();
    options.snapshot_every = snapshot_every;
    options.settings = Some(Box::new(|_, _| blocks()));
    let lanes = Handle::open(store, options).await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..200_u64 {
        tokio::time::sleep(Duration::from_millis(7 + number % 13 * 9)).await;
        let millis = 50 + number * 37 % 400;
        let task = match number % 5 {
            0 => Task::new("main").lane("provider:llm").payload(millis),
            1 => Task::new("main").lane(format!("session:{}", number % 7)).payload(millis),
            2 => Task::new("quick").payload(millis + 50),
            3 => Task::new("main").source(Source::Background).payload(millis),
            _ => Task::new("quick").retry(Retry::STANDARD).payload(-(millis as i64) / 2),
        };
        waiting.push(lanes.submit(task.kind("work")).await.unwrap());
    }
    for task in waiting {
        // Some time out, which is an end like any other.
        drop(task.ending().await);
    }
    lanes
}

async fn recorded(snapshot_every: u64) -> Trace {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    // A shutdown would compact the log.
    let _open = record(Arc::clone(&store), snapshot_every).await;
    export(&Log::new(store), None, false).await.unwrap()
}

fn starts(played: &Timeline) -> Vec<usize> {
    let mut starts: Vec<(u64, usize)> = played
        .tasks
        .iter()
        .enumerate()
        .flat_map(|(task, played)| played.runs.iter().map(move |run| (run.start, task)))
        .collect();
    starts.sort_unstable();
    starts.into_iter().map(|(_, task)| task).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_configuration_gives_the_recorded_starts_and_waits() {
    let trace = recorded(u64::MAX).await;
    assert_eq!((trace.arrivals.len(), trace.header.sources.log), (200, 200));
    let (was, is) = (Timeline::recorded(&trace), replay(&trace, blocks()).unwrap());
    assert_eq!(starts(&is), starts(&was));
    for (was, is) in was.tasks.iter().zip(&is.tasks) {
        assert_eq!(is.fate, was.fate);
        assert_eq!(is.runs.len(), was.runs.len());
        assert!(is.waited().unwrap().abs_diff(was.waited().unwrap()) <= TOLERANCE_MS, "{was:?} {is:?}");
        assert!(is.ended.unwrap().abs_diff(was.ended.unwrap()) <= TOLERANCE_MS, "{was:?} {is:?}");
    }
    // It would be nothing to reproduce if nothing had waited, failed or timed out.
    let waited = was.tasks.iter().filter(|task| task.waited() > Some(50)).count();
    let late = was.tasks.iter().filter(|task| task.fate == Fate::Accepted(TaskOutcome::TimedOut)).count();
    let tried = was.tasks.iter().filter(|task| task.runs.len() > 1).count();
    assert!(waited > 20 && late > 3 && tried > 10, "{waited} {late} {tried}");
}

#[tokio::test(start_paused = true)]
async fn a_compacted_log_gives_the_arrivals_from_the_history_and_says_what_is_missing() {
    let trace = recorded(100).await;
    let sources = trace.header.sources;
    assert_eq!(sources.log + sources.history + sources.live, 200);
    assert!(sources.history > 50, "{sources:?}");
    let missing = trace.header.missing.join("\n");
    assert!(missing.contains("when the log begins, and has left the history too"), "{missing}");
    assert!(missing.contains(&format!("borrowed slots of {} tasks", sources.history)), "{missing}");
    let whole = recorded(u64::MAX).await;
    // The history knows when each attempt ran, too.
    let (one, other) = (Timeline::recorded(&trace), Timeline::recorded(&whole));
    let runs = |played: &Timeline| played.tasks.iter().map(|task| task.runs.len()).collect::<Vec<_>>();
    assert_eq!(runs(&one), runs(&other));
    assert_eq!(read_trace(&trace.to_text().unwrap()), Ok(trace));
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_trace_names_nobody_and_replays_the_same() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let _open = record(Arc::clone(&store), u64::MAX).await;
    let log = Log::new(store);
    let (named, nameless) =
        (export(&log, None, false).await.unwrap(), export(&log, None, true).await.unwrap());
    let text = nameless.to_text().unwrap();
    assert!(!text.contains("\"work\"") && !text.contains("memory"), "{text}");
    assert!(
        text.contains("\"kind-1\"") && text.contains("session:session-1") && text.contains("provider:llm")
    );
    let tasks = |trace| replay(trace, blocks()).unwrap().tasks;
    assert_eq!(tasks(&named), tasks(&nameless));
}
