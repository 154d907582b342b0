//! External lanes and workers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use common::{block, lanes, numbers, secs};
use laneway_core::{End, StopReason};
use laneway_engine::{ClaimRequest, Context, Failure, Filter, Handle, Task, Update};
use serde_json::{Value, json};

async fn external() -> Handle {
    let lanes = lanes();
    let gpu = block("gpu", "handler=external lease=10s max_concurrency=2");
    lanes.configure(vec![gpu]).await.unwrap();
    lanes
}

fn claim(worker: &str) -> ClaimRequest {
    ClaimRequest::new(worker.to_owned(), ["gpu"])
}

#[tokio::test(start_paused = true)]
async fn the_pending_list_is_in_order_and_two_workers_never_get_the_same_task() {
    let lanes = external().await;
    let mut ids = Vec::new();
    for frame in 0..3 {
        let task = Task::new("gpu").session(format!("s{frame}")).kind("render").payload(frame);
        ids.push(lanes.submit(task.timeout(secs(60))).await.unwrap().id());
    }
    let pending = lanes.pending().await.unwrap();
    assert_eq!(pending.iter().map(|view| view.id).collect::<Vec<_>>(), ids);
    assert_eq!(pending[1].lanes[1].as_str(), "session:s1");
    assert_eq!((pending[0].attempts, pending[0].timeout.unwrap().0), (0, 60_000));
    assert_eq!(numbers(&lanes, "gpu").await, (0, 3), "unclaimed work holds no slot");
    let first = lanes.claim(claim("w1").kind("render")).await.unwrap();
    let second = lanes.claim(claim("w2").max(5)).await.unwrap();
    let claimed: Vec<_> = first.iter().chain(&second).map(|claim| claim.task).collect();
    assert_eq!(claimed, ids[..2], "the lane has two slots");
    assert_eq!(first[0].payload.as_deref(), Some(&b"0"[..]));
    assert!(lanes.claim(claim("w3")).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_worker_loses_its_lease_and_its_reports_are_stale() {
    let lanes = external().await;
    let task = lanes.submit(Task::new("gpu").kind("render")).await.unwrap();
    let old = lanes.claim(claim("w1")).await.unwrap().remove(0);
    tokio::time::sleep(secs(6)).await;
    let (until, stopping) = lanes.heartbeat(old.task, old.fence).await.unwrap();
    assert_eq!((until.since(old.lease_until).0, stopping), (6000, None));
    tokio::time::sleep(secs(11)).await;
    let new = lanes.claim(claim("w2")).await.unwrap().remove(0);
    assert_eq!((new.task, new.attempt), (old.task, 2));
    assert!(new.fence > old.fence);
    assert_eq!(lanes.heartbeat(old.task, old.fence).await.unwrap_err().code(), "STALE_LEASE");
    assert_eq!(lanes.complete(old.task, old.fence, None).await.unwrap_err().code(), "STALE_LEASE");
    lanes.complete(new.task, new.fence, Some("[1]".into())).await.unwrap();
    assert_eq!(lanes.complete(new.task, new.fence, None).await.unwrap_err().code(), "STALE_LEASE");
    let ending = task.ending().await.unwrap();
    assert_eq!((ending.attempts, ending.into_result()), (2, Ok(json!([1]))));
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_a_task_without_polling() {
    let lanes = external().await;
    let worker = tokio::spawn({
        let lanes = lanes.clone();
        async move { lanes.claim_when_there_is(claim("w1")).await }
    });
    tokio::time::sleep(secs(60)).await;
    assert!(!worker.is_finished());
    let task = lanes.submit(Task::new("gpu").kind("render")).await.unwrap();
    assert_eq!(worker.await.unwrap().unwrap()[0].task, task.id());
    // A claim that waits for a rate limit ends when the limit allows it.
    lanes.configure(vec![block("slow", "handler=external rate_limit=1/minute")]).await.unwrap();
    for _ in 0..2 {
        lanes.submit(Task::new("slow").kind("any")).await.unwrap().detach();
        let before = tokio::time::Instant::now();
        let claims = lanes.claim_when_there_is(ClaimRequest::new("w1", ["slow"])).await.unwrap();
        lanes.complete(claims[0].task, claims[0].fence, None).await.unwrap();
        assert!(before.elapsed() <= secs(61));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_ends_empty_at_its_deadline_and_never_drops_a_claimed_task() {
    let lanes = external().await;
    let before = tokio::time::Instant::now();
    assert_eq!(lanes.claim_until(claim("w1"), tokio::time::sleep(secs(20))).await.unwrap().len(), 0);
    assert_eq!(before.elapsed(), secs(20));
    let task = lanes.submit(Task::new("gpu").kind("render")).await.unwrap();
    // The wait is already over, but the claim returns the task that it took.
    let claims = lanes.claim_until(claim("w1"), std::future::ready(())).await.unwrap();
    assert_eq!(claims[0].task, task.id());
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_carries_the_stop_and_a_worker_reports_a_failure() {
    let lanes = external().await;
    let task = lanes.submit(Task::new("gpu").kind("render").timeout(secs(5))).await.unwrap();
    let claimed = lanes.claim(claim("w1")).await.unwrap().remove(0);
    tokio::time::sleep(secs(6)).await;
    let (_, stopping) = lanes.heartbeat(claimed.task, claimed.fence).await.unwrap();
    assert_eq!(stopping, Some(StopReason::Timeout));
    lanes.stopped(claimed.task, claimed.fence).await.unwrap();
    assert_eq!(task.ending().await.unwrap().end, End::TimedOut);
    let task = lanes.submit(Task::new("gpu").kind("render")).await.unwrap();
    let claimed = lanes.claim(claim("w1")).await.unwrap().remove(0);
    lanes.fail(claimed.task, claimed.fence, Failure::new("no memory")).await.unwrap();
    assert_eq!(task.wait().await.unwrap_err().to_string(), "failed: no memory");
}

#[tokio::test(start_paused = true)]
async fn a_hybrid_lane_runs_handlers_and_a_new_mode_applies_only_to_later_tasks() {
    let lanes = lanes();
    lanes.handler("render", |_: Context, payload: Value| async move { Ok(payload) }).unwrap();
    lanes.configure(vec![block("gpu", "handler=hybrid")]).await.unwrap();
    let mut updates = lanes.subscribe(Filter::default());
    let task = lanes.submit(Task::new("gpu").kind("render").payload(1)).await.unwrap();
    let id = task.id();
    assert_eq!(task.wait().await, Ok(json!(1)));
    let mut events = 0;
    while let Some(update) = updates.try_next() {
        events += u32::from(matches!(update, Update::Event { .. }));
    }
    assert_eq!(events, 3, "submitted, granted, ended");
    assert!(lanes.claim(claim("w1")).await.unwrap().is_empty());
    lanes.configure(vec![block("gpu", "handler=external")]).await.unwrap();
    let external = lanes.submit(Task::new("gpu").kind("render").payload(2)).await.unwrap();
    lanes.configure(vec![block("gpu", "handler=internal")]).await.unwrap();
    let internal = lanes.submit(Task::new("gpu").kind("render").payload(3)).await.unwrap();
    assert_eq!(internal.wait().await, Ok(json!(3)));
    let pending = lanes.pending().await.unwrap();
    assert_eq!(pending.iter().map(|view| view.id).collect::<Vec<_>>(), [external.id()]);
    assert_ne!(id, external.id());
}
