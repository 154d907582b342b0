//! Slots, closures and handlers: how tasks start, stop and give their slots back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{block, lane, lanes, numbers, secs};
use laneway_core::{CancelReason, End, LaneName, Name, Owner, Rejection, Reply, Retry, Source, TaskSpec};
use laneway_engine::{Context, Error, Failure, OnDrop, RunError, Stopped, Task};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

#[tokio::test(start_paused = true)]
async fn four_run_and_six_wait_and_start_in_order() {
    let lanes = lanes();
    let (started, mut starts) = mpsc::unbounded_channel();
    let mut ends = Vec::new();
    for number in 0..10 {
        let (end, ended) = oneshot::channel::<()>();
        ends.push(end);
        let (lanes, started) = (lanes.clone(), started.clone());
        tokio::spawn(async move {
            lanes
                .run(Task::new("main"), async move {
                    started.send(number).unwrap();
                    ended.await.unwrap();
                })
                .await
        });
        tokio::task::yield_now().await;
    }
    for number in 0..4 {
        assert_eq!(starts.recv().await, Some(number));
    }
    assert_eq!(numbers(&lanes, "main").await, (4, 6));
    for (next, end) in ends.into_iter().enumerate() {
        end.send(()).unwrap();
        if next + 4 < 10 {
            assert_eq!(starts.recv().await, Some(next + 4));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_slot_frees_it_and_a_full_lane_names_a_retry_time() {
    let lanes = lanes();
    let slot = lanes.try_slot(["cron"]).await.unwrap();
    assert_eq!(lanes.inflight().await, Ok(1));
    let Err(RunError::Refused(Error::Rejected(Rejection::LaneFull(full)))) = lanes.try_slot(["cron"]).await
    else {
        panic!("refused for another reason");
    };
    assert_eq!((full.running, full.current), (1, Some(slot.task())));
    drop(slot);
    let _again = lanes.slot(["cron", "main"]).await.unwrap();
    assert_eq!(numbers(&lanes, "main").await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_leaves_the_lane() {
    let lanes = lanes();
    let held = lanes.slot(["cron"]).await.unwrap();
    let waiting = tokio::spawn({
        let lanes = lanes.clone();
        async move { lanes.slot(["cron"]).await.map(drop) }
    });
    tokio::task::yield_now().await;
    assert_eq!(numbers(&lanes, "cron").await, (1, 1));
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(numbers(&lanes, "cron").await, (1, 0));
    drop(held);
    assert_eq!(numbers(&lanes, "cron").await, (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_and_frees_its_slot() {
    let lanes = lanes();
    let ran = lanes.run(Task::new("cron"), async { panic!("ouch {}", 1) }).await;
    let Err(RunError::Ended(End::Failed { error })) = ran else { panic!("{ran:?}") };
    assert_eq!(&*error, "panicked: ouch 1");
    assert_eq!(lanes.run(Task::new("cron"), async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_drops_the_future_before_the_slot_is_free() {
    struct Tell(Arc<AtomicUsize>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let lanes = lanes();
    let drops = Arc::new(AtomicUsize::new(0));
    let tell = Tell(Arc::clone(&drops));
    let task = Task::new("cron").timeout(secs(2));
    let ran = lanes
        .run(task, async move {
            let _tell = tell;
            std::future::pending::<()>().await;
        })
        .await;
    assert_eq!(ran, Err(RunError::Ended(End::TimedOut)));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(lanes.run(Task::new("cron"), async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_wait_timeout_and_a_cleared_lane_have_different_ends() {
    let lanes = lanes();
    let _held = lanes.slot(["cron"]).await.unwrap();
    let wait = |task: Task| {
        let lanes = lanes.clone();
        tokio::spawn(async move { lanes.take(task).await.map(drop) })
    };
    let late = wait(Task::new("cron").wait_timeout(secs(3)));
    assert_eq!(late.await.unwrap(), Err(RunError::Ended(End::WaitTimeout)));
    let cleared = wait(Task::new("cron"));
    tokio::task::yield_now().await;
    assert_eq!(lanes.clear(lane("cron")).await, Ok(1));
    assert_eq!(
        cleared.await.unwrap(),
        Err(RunError::Ended(End::Cancelled { reason: CancelReason::Cleared }))
    );
    assert_eq!(lanes.clear(lane("nowhere")).await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_retried_until_it_succeeds_and_its_ending_has_the_number_of_attempts() {
    let lanes = lanes();
    lanes
        .handler("shaky", |context: Context, payload: Value| async move {
            match context.attempt() {
                1 => Err(Failure::new("not yet")),
                2 => panic!("ouch"),
                _ => Ok(json!({ "got": payload, "attempt": context.attempt() })),
            }
        })
        .unwrap();
    let task = Task::new("main").kind("shaky").payload(json!([1, 2])).retry(Retry::STANDARD);
    let ending = lanes.submit(task).await.unwrap().ending().await.unwrap();
    assert_eq!((ending.attempts, &ending.end), (3, &End::Completed));
    assert_eq!(ending.into_result(), Ok(json!({ "got": [1, 2], "attempt": 3 })));
}

#[tokio::test(start_paused = true)]
async fn a_fatal_failure_skips_retries_and_leaves_a_dead_letter_that_can_be_redriven() {
    let lanes = lanes();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    lanes
        .handler("bad", move |_: Context, payload: Value| {
            let run = count.fetch_add(1, Ordering::SeqCst);
            async move { if run == 0 { Err(Failure::fatal("hopeless")) } else { Ok(payload) } }
        })
        .unwrap();
    let task = Task::new("main").kind("bad").payload("p").retry(Retry::STANDARD);
    let failed = lanes.submit(task).await.unwrap().wait().await;
    assert_eq!(failed, Err(RunError::Ended(End::Failed { error: "hopeless".into() })));
    let dead_letters = lanes.dead_letters().await.unwrap();
    assert_eq!((dead_letters.len(), dead_letters[0].attempts), (1, 1));
    // The new task has the same payload.
    let again = lanes.redrive(dead_letters[0].task).await.unwrap();
    assert_eq!(again.wait().await, Ok(json!("p")));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert!(lanes.dead_letters().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_dead_letter_of_a_slot_is_not_redriven() {
    let lanes = lanes();
    let mut spec = TaskSpec::new(Name::new("hold").unwrap(), vec![LaneName::main()]);
    spec.owner = Some(Owner::Worker(Name::new("caller").unwrap()));
    let task = lanes.submit_spec(lanes.new_id(), Box::new(spec), None).await.unwrap();
    let error = "its owner sent no heartbeat".into();
    assert_eq!(task.wait().await, Err(RunError::Ended(End::Failed { error })));
    let dead_letters = lanes.dead_letters().await.unwrap();
    let refused = lanes.redrive(dead_letters[0].task).await.err().unwrap();
    let words = "only a task of a named handler that does the work itself can have a second life";
    assert_eq!(refused.to_string(), words);
    assert_eq!(lanes.dead_letters().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_handler_gets_a_stop_signal_and_is_dropped_after_the_grace() {
    let lanes = lanes();
    let (tell, mut told) = mpsc::unbounded_channel();
    lanes
        .handler("long", move |context: Context, polite: bool| {
            let tell = tell.clone();
            async move {
                tell.send(None).unwrap();
                let reason = context.stop().wait().await;
                tell.send(Some(reason)).unwrap();
                if !polite {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        })
        .unwrap();
    for polite in [true, false] {
        let task = lanes.submit(Task::new("cron").kind("long").payload(polite)).await.unwrap();
        assert_eq!(told.recv().await, Some(None));
        assert_eq!(task.cancel().await, Ok(Reply::Stopping));
        assert_eq!(told.recv().await, Some(Some(Stopped::Cancelled(CancelReason::Caller))));
        let began = tokio::time::Instant::now();
        let cancelled = RunError::Ended(End::Cancelled { reason: CancelReason::Caller });
        assert_eq!(task.wait().await, Err(cancelled));
        let grace = if polite { Duration::ZERO } else { secs(1) };
        assert_eq!(began.elapsed(), grace, "polite: {polite}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_task_handle_cancels_the_task_only_with_on_drop_cancel() {
    let lanes = lanes();
    lanes.handler("any", |_: Context, _: Value| async { Ok(()) }).unwrap();
    let _held = lanes.slot(["cron"]).await.unwrap();
    let task = || Task::new("cron").kind("any");
    drop(lanes.submit(task()).await.unwrap());
    assert_eq!(numbers(&lanes, "cron").await, (1, 1));
    drop(lanes.submit(task()).await.unwrap().on_drop(OnDrop::Cancel));
    assert_eq!(numbers(&lanes, "cron").await, (1, 1));
    // With two callers under one key, the task is cancelled when the second one leaves.
    let keyed = || lanes.submit(task().idempotency("key", 1));
    let (first, second) = (keyed().await.unwrap(), keyed().await.unwrap());
    assert_eq!((first.id() == second.id(), second.joined()), (true, true));
    drop(first.on_drop(OnDrop::Cancel));
    assert_eq!(numbers(&lanes, "cron").await, (1, 2));
    drop(second.on_drop(OnDrop::Cancel));
    assert_eq!(numbers(&lanes, "cron").await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_after_the_end_gets_the_same_result() {
    let lanes = lanes();
    lanes.handler("any", |context: Context, _: Value| async move { Ok(context.fence().0) }).unwrap();
    let ask = || lanes.submit(Task::new("main").kind("any").idempotency("key", 1));
    assert_eq!(ask().await.unwrap().wait().await, Ok(json!(1)));
    assert_eq!(ask().await.unwrap().wait().await, Ok(json!(1)));
    let other = lanes.submit(Task::new("main").kind("any").idempotency("key", 2)).await;
    assert_eq!(other.err().unwrap().code(), "IDEMPOTENCY_CONFLICT");
}

#[tokio::test(start_paused = true)]
async fn a_child_borrows_the_only_slot_of_its_parent() {
    let lanes = lanes();
    lanes.handler("child", |_: Context, payload: Value| async move { Ok(payload) }).unwrap();
    lanes
        .handler("parent", |context: Context, _: Value| async move {
            let child = context.submit(Task::new("cron").kind("child").payload(5)).await?;
            let closure = context.run(Task::new("cron"), async { 6 });
            let (child, closure) = (child.wait().await?, closure.await?);
            Ok(json!([child, closure]))
        })
        .unwrap();
    let parent = lanes.submit(Task::new("cron").kind("parent")).await.unwrap();
    assert_eq!(parent.wait().await, Ok(json!([5, 6])));
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_while_an_attempt_runs() {
    let lanes = lanes();
    lanes.configure(vec![block("cron", "lease=3s")]).await.unwrap();
    let slot = lanes.slot(["cron"]).await.unwrap();
    tokio::time::sleep(secs(900)).await;
    let view = lanes.task(slot.task()).await.unwrap().unwrap();
    assert_eq!(view.running.unwrap().fence, slot.fence());
    assert_eq!(slot.stop().reason(), None);
}

#[tokio::test(start_paused = true)]
async fn a_released_attempt_gets_a_stop_signal_and_the_next_one_keeps_the_slot() {
    let lanes = lanes();
    let old = lanes.slot(["cron"]).await.unwrap();
    assert_eq!(lanes.force_release(lane("cron")).await, Ok(vec![old.task()]));
    let next = lanes.slot(["cron"]).await.unwrap();
    assert_eq!(old.stop().wait().await, Stopped::Cancelled(CancelReason::Released));
    drop(old);
    assert_eq!(numbers(&lanes, "cron").await, (1, 0));
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn urgent_sources_go_first() {
    let lanes = lanes();
    let held = lanes.slot(["cron"]).await.unwrap();
    let (tell, mut order) = mpsc::unbounded_channel();
    for source in [Source::Background, Source::User, Source::Schedule] {
        let (lanes, tell) = (lanes.clone(), tell.clone());
        tokio::spawn(async move {
            lanes.run(Task::new("cron").source(source), async { tell.send(source).unwrap() }).await
        });
        tokio::task::yield_now().await;
    }
    assert_eq!(numbers(&lanes, "cron").await, (1, 3));
    drop(held);
    for source in [Source::User, Source::Schedule, Source::Background] {
        assert_eq!(order.recv().await, Some(source));
    }
}

#[tokio::test(start_paused = true)]
async fn impossible_requests_are_refused_with_a_reason() {
    let lanes = lanes();
    let refused = lanes.submit(Task::new("main").kind("missing")).await.err().unwrap();
    assert_eq!(refused.to_string(), "nothing here runs tasks of kind missing");
    let refused = lanes.take(Task::new("main").payload(1)).await.err().unwrap();
    assert_eq!(
        refused.to_string(),
        "only a task of a named handler that does the work itself can have a payload"
    );
    let refused = lanes.take(Task::new("a\u{7}b")).await.err().unwrap();
    assert_eq!(refused.code(), "INVALID");
    lanes.configure(vec![block("gpu", "handler=external")]).await.unwrap();
    let refused = lanes.take(Task::new("gpu")).await.err().unwrap();
    assert_eq!(refused.to_string(), "lane gpu hands its work to workers, so nothing runs here in it");
    lanes.handler("number", |_: Context, number: u32| async move { Ok(number) }).unwrap();
    let failed = lanes.submit(Task::new("main").kind("number").payload("x")).await.unwrap().wait().await;
    assert!(failed.unwrap_err().to_string().starts_with("failed: the payload does not fit"));
}
