//! Shutdown: running tasks may finish, waiting tasks are kept or refused, and the engine ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;

use common::{lanes, numbers, secs};
use laneway_core::{End, Retry};
use laneway_engine::{Context, Error, Failure, Handle, Options, RunError, Stopped, Task};
use laneway_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[tokio::test(start_paused = true)]
async fn running_tasks_finish_waiting_calls_end_and_new_tasks_are_refused() {
    let lanes = lanes();
    lanes
        .handler("work", |_: Context, payload: Value| async move {
            tokio::time::sleep(secs(3)).await;
            Ok(payload)
        })
        .unwrap();
    let runs = lanes.submit(Task::new("cron").kind("work").payload(1)).await.unwrap();
    let waits = lanes.submit(Task::new("cron").kind("work").payload(2)).await.unwrap();
    let end = tokio::spawn({
        let lanes = lanes.clone();
        async move { lanes.shutdown(secs(10)).await }
    });
    tokio::time::sleep(secs(1)).await;
    let refused = lanes.submit(Task::new("main").kind("work")).await.err().unwrap();
    assert_eq!(refused.code(), "DRAINING");
    let began = tokio::time::Instant::now();
    end.await.unwrap();
    assert_eq!(began.elapsed(), secs(2), "the shutdown waits only for running tasks");
    assert_eq!(runs.wait().await, Ok(json!(1)));
    assert_eq!(waits.wait().await, Err(RunError::Refused(Error::Closed)));
    assert_eq!(lanes.snapshot().await, Err(Error::Closed));
}

#[tokio::test(start_paused = true)]
async fn attempts_that_outlast_the_grace_stop_and_follow_their_retry_rule_at_the_next_start() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (tell, mut told) = mpsc::unbounded_channel();
    let lanes = Handle::open(Arc::clone(&store), Options::default()).await.unwrap();
    lanes
        .handler("work", move |context: Context, _: Value| {
            let tell = tell.clone();
            async move {
                tell.send(context.stop().wait().await).unwrap();
                std::future::pending::<Result<(), Failure>>().await
            }
        })
        .unwrap();
    let once = lanes.submit(Task::new("a").kind("work")).await.unwrap();
    let again = lanes.submit(Task::new("b").kind("work").retry(Retry::STANDARD)).await.unwrap().id();
    let waits = lanes.submit(Task::new("b").kind("work")).await.unwrap().id();
    lanes.shutdown(secs(10)).await;
    assert_eq!(told.recv().await, Some(Stopped::Shutdown));
    assert_eq!(once.ending().await.unwrap().end, End::Lost);
    let work = |context: Context, _: Value| async move { Ok(context.attempt()) };
    let lanes = Handle::open(store, Options::default().handler("work", work).unwrap()).await.unwrap();
    assert_eq!(lanes.wait_for(again).await.unwrap().into_result(), Ok(json!(2)));
    assert_eq!(lanes.wait_for(waits).await.unwrap().into_result(), Ok(json!(1)));
}

#[tokio::test(start_paused = true)]
async fn after_the_stop_signal_a_failure_counts_as_lost_and_a_success_as_completed() {
    let lanes = lanes();
    lanes
        .handler("work", |context: Context, payload: Value| async move {
            context.stop().wait().await;
            if payload == json!("done") { Ok(()) } else { Err(Failure::fatal("it was stopped")) }
        })
        .unwrap();
    let fails = lanes.submit(Task::new("a").kind("work").payload("fails")).await.unwrap();
    let done = lanes.submit(Task::new("b").kind("work").payload("done")).await.unwrap();
    lanes.shutdown(secs(1)).await;
    assert_eq!(fails.ending().await.unwrap().end, End::Lost);
    assert_eq!(done.ending().await.unwrap().end, End::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_loop_ends_with_the_last_handle() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let lanes = Handle::open(Arc::clone(&store), Options::default()).await.unwrap();
    let slot = lanes.slot(["main"]).await.unwrap();
    drop(lanes);
    tokio::task::yield_now().await;
    assert_ne!(Arc::strong_count(&store), 1, "a slot keeps the loop alive");
    drop(slot);
    while Arc::strong_count(&store) > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let lanes = Handle::open(store, Options::default()).await.unwrap();
    assert_eq!(numbers(&lanes, "main").await, (0, 0), "the loop stored the last report");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_idle_engines_do_nothing() {
    let engines: Vec<Handle> = (0..1000).map(|_| lanes()).collect();
    for engine in &engines {
        engine.run(Task::new("main"), async {}).await.unwrap();
    }
    // Wait until the alarm of the last lease has passed.
    tokio::time::sleep(secs(100)).await;
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.worker_park_count(0);
    tokio::time::sleep(secs(1_000_000)).await;
    let wakes = metrics.worker_park_count(0) - before;
    assert!(wakes < 10, "1000 idle engines woke {wakes} times");
}
