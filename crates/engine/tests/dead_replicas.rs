//! A replica that dies or leaves: what becomes of its work, its callers and its slots.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{block, lane, numbers, replicas, secs, until};
use laneway_core::{End, Name, Retry, TaskSpec};
use laneway_engine::{Context, Failure, Handle, RunError, Slot, Task, TaskHandle};
use laneway_store::testing::FaultyStore;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[tokio::test(start_paused = true)]
async fn tasks_of_a_dead_replica_end_after_its_lease() {
    let ([a, b], stores) = replicas::<2>().await;
    a.configure(vec![block("work", "max_concurrency=1 lease=30s max_queued=10")]).await.unwrap();
    let running = a.slot(["work"]).await.unwrap();
    let ghosts: Vec<_> = (0..3)
        .map(|_| {
            tokio::spawn({
                let a = a.clone();
                async move { a.slot(["work"]).await }
            })
        })
        .collect();
    until(&b, "work", 1, 3).await;
    stores[0].go_away();
    let died = tokio::time::Instant::now();
    // This caller waits behind those of the dead replica, and is the first live one.
    let slot = b.slot(["work"]).await.unwrap();
    assert!(died.elapsed() <= secs(7), "{:?}", died.elapsed());
    assert_eq!(numbers(&b, "work").await, (1, 0));
    drop(slot);
    // When the replica is back, it learns that its tasks have ended.
    stores[0].come_back();
    running.stop().wait().await;
    for ghost in ghosts {
        assert!(ghost.await.unwrap().is_err());
    }
    until(&a, "work", 0, 0).await;
}

/// Two replicas whose handler returns the replica's name, and a task of a caller at the first one. The task waits for a slot
/// that the second replica holds.
async fn connected() -> ([Handle; 2], [Arc<FaultyStore>; 2], TaskHandle, Slot) {
    let ([a, b], stores) = replicas::<2>().await;
    for (lanes, name) in [(&a, "a"), (&b, "b")] {
        lanes.handler("work", move |_: Context, (): ()| async move { Ok::<_, Failure>(name) }).unwrap();
    }
    a.configure(vec![block("work", "max_concurrency=1")]).await.unwrap();
    let slot = b.slot(["work"]).await.unwrap();
    let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![lane("work")]);
    spec.caller_at = a.here();
    assert!(spec.caller_at.is_some() && spec.caller_at != b.here());
    let task = a.submit_spec(a.new_id(), Box::new(spec), None).await.unwrap();
    until(&b, "work", 1, 1).await;
    ([a, b], stores, task, slot)
}

#[tokio::test(start_paused = true)]
async fn the_replica_of_the_caller_runs_the_task_although_another_grants_it() {
    let ([_a, b], _, task, slot) = connected().await;
    let unbound = b.submit(Task::new("work").kind("work")).await.unwrap();
    drop(slot);
    assert_eq!(task.wait().await.unwrap(), "a", "granted by b");
    let ran = unbound.wait().await.unwrap();
    assert_eq!(ran, "a", "a freed the slot");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_of_a_dead_replicas_caller_is_cancelled() {
    let ([_a, b], stores, task, slot) = connected().await;
    stores[0].go_away();
    tokio::time::sleep(secs(6)).await;
    until(&b, "work", 1, 0).await;
    drop(slot);
    assert_eq!(numbers(&b, "work").await, (0, 0));
    stores[0].come_back();
    assert!(matches!(task.wait().await, Err(RunError::Ended(End::Cancelled { .. }))));
}

#[tokio::test(start_paused = true)]
async fn a_task_granted_to_a_dead_replicas_caller_is_lost_after_its_lease() {
    let ([_a, b], stores, task, slot) = connected().await;
    stores[0].go_away();
    drop(slot);
    until(&b, "work", 1, 0).await;
    let id = task.id();
    tokio::time::sleep(secs(6)).await;
    until(&b, "work", 0, 0).await;
    assert_eq!(b.wait_for(id).await.unwrap().end, End::Lost);
    stores[0].come_back();
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_other_replicas_run_its_waiting_tasks() {
    let ([a, b], _, task, slot) = connected().await;
    let id = task.id();
    task.detach();
    a.shutdown(Duration::ZERO).await;
    drop(slot);
    assert_eq!(b.wait_for(id).await.unwrap().into_result().unwrap(), "b");
    assert_eq!(numbers(&b, "work").await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_replica_with_waiting_callers_keeps_reporting_that_it_is_alive() {
    let ([_a, b], _, task, slot) = connected().await;
    tokio::time::sleep(secs(60)).await;
    assert_eq!(numbers(&b, "work").await, (1, 1));
    drop(slot);
    assert_eq!(task.wait().await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn another_replica_retries_tasks_of_a_dead_one_by_their_retry_rule() {
    let ([a, b], stores) = replicas::<2>().await;
    a.configure(vec![block("again", "lease=6s retry=fixed"), block("once", "lease=6s")]).await.unwrap();
    let (started, mut starts) = mpsc::unbounded_channel();
    for (lanes, name) in [(&a, "a"), (&b, "b")] {
        let started = started.clone();
        lanes
            .handler("work", move |context: Context, _: Value| {
                let started = started.clone();
                async move {
                    started.send((name, context.attempt())).unwrap();
                    match name {
                        "a" => std::future::pending().await,
                        _ => Ok::<_, Failure>(json!(context.attempt())),
                    }
                }
            })
            .unwrap();
    }
    let again = a.submit(Task::new("again").kind("work").retry(Retry::STANDARD)).await.unwrap().id();
    let once = a.submit(Task::new("once").kind("work")).await.unwrap().id();
    assert_eq!((starts.recv().await, starts.recv().await), (Some(("a", 1)), Some(("a", 1))));
    stores[0].go_away();
    assert_eq!(b.wait_for(again).await.unwrap().result, Some("2".into()));
    assert_eq!(starts.recv().await, Some(("b", 2)));
    assert_eq!(b.wait_for(once).await.unwrap().end, End::Lost);
}
