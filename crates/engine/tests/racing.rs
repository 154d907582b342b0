//! Many threads at once: limits hold, no slot is lost, and every caller gets an answer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{block, lane, lanes, numbers};
use laneway_core::{CancelReason, End};
use laneway_engine::{Context, Handle, Options, RunError, Task};
use laneway_store::MemoryStore;
use serde_json::Value;
use tokio::task::JoinSet;

/// Starts many callers. Some give up, and some cancel their tasks.
async fn rush(lanes: Handle) {
    lanes.configure(vec![block("busy", "max_concurrency=3 max_queued=100000")]).await.unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, high) = (Arc::clone(&running), Arc::clone(&most));
    lanes
        .handler("work", move |_: Context, _: Value| {
            let (now, high) = (Arc::clone(&now), Arc::clone(&high));
            async move {
                high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .unwrap();
    let mut callers = JoinSet::new();
    for number in 0..2000 {
        let (lanes, now, high) = (lanes.clone(), Arc::clone(&running), Arc::clone(&most));
        callers.spawn(async move {
            match number % 4 {
                0 => {
                    let task = lanes.submit(Task::new("busy").kind("work")).await.unwrap();
                    task.wait().await.unwrap();
                }
                1 => {
                    let task = lanes.submit(Task::new("busy").kind("work")).await.unwrap();
                    // The race between the cancel and the end may have either result, but must not lose the slot.
                    let cancelled = task.cancel().await.is_ok();
                    match task.ending().await.unwrap().end {
                        End::Completed => {}
                        End::Cancelled { reason: CancelReason::Caller } => assert!(cancelled),
                        other => panic!("{other:?}"),
                    }
                }
                2 => {
                    let wait = lanes.slot(["busy"]);
                    drop(tokio::time::timeout(std::time::Duration::from_micros(300), wait).await);
                }
                _ => {
                    let ran = lanes.run(Task::new("busy"), async {
                        high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                    assert_eq!(ran.await, Ok(()));
                }
            }
        });
    }
    callers.join_all().await;
    let most = most.load(Ordering::SeqCst);
    assert!((2..=3).contains(&most), "{most} ran at once in a lane of 3");
    // The last cancels may still be on their way.
    let left = lanes.take(Task::new("busy").priority(0)).await.unwrap();
    drop(left);
    while numbers(&lanes, "busy").await != (0, 0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_memory() {
    for _ in 0..5 {
        rush(Handle::in_memory(Options::default())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_a_store() {
    rush(Handle::open(Arc::new(MemoryStore::new()), Options::default()).await.unwrap()).await;
}

#[test]
fn a_slot_may_be_dropped_on_a_thread_without_a_runtime() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let lanes = runtime.block_on(async { lanes() });
    lanes.handler("work", |_: Context, payload: Value| async move { Ok(payload) }).unwrap();
    for number in 0..100 {
        let slot = runtime.block_on(lanes.slot(["cron"])).unwrap();
        let task = runtime.block_on(lanes.submit(Task::new("cron").kind("work").payload(number))).unwrap();
        std::thread::spawn(move || drop(slot)).join().unwrap();
        assert_eq!(runtime.block_on(task.wait()), Ok(number.into()));
    }
    let cleared = runtime.block_on(lanes.clear(lane("cron")));
    assert_eq!(cleared, Ok(0));
    runtime.block_on(lanes.shutdown(std::time::Duration::ZERO));
    let after = runtime.block_on(lanes.slot(["cron"])).map(drop);
    assert_eq!(after, Err(RunError::Refused(laneway_engine::Error::Closed)));
}
