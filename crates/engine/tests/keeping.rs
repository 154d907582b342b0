//! The engine and its store: recovery, outages, rivals, and the length of the log.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;

use common::shared_store::Shared;
use common::{block, numbers, secs};
use laneway_core::{End, Millis, ReplicaId, Reply, Retry};
use laneway_engine::{ClaimRequest, Context, Error, Failure, Handle, Options, RunError, Task, UnknownKinds};
use laneway_store::testing::{Fault, FaultyStore};
use laneway_store::{HistoryQuery, MemoryStore, Store};
use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Runs `work` and then drops its runtime with all handles, as in a crash.
fn crash<T: Send + 'static>(
    store: &Arc<dyn Store>,
    options: Options,
    work: impl AsyncFnOnce(Handle) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let store = Arc::clone(store);
    let out = runtime.block_on(async { work(Handle::open(store, options).await.unwrap()).await });
    runtime.shutdown_background();
    out
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

#[tokio::test]
async fn during_an_append_a_full_lane_refuses_at_once_and_other_calls_wait() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(Arc::clone(&store) as Arc<dyn Store>, Options::default()).await.unwrap();
    let blocks = ["full", "other"].map(|name| block(name, "handler=external max_queued=2"));
    lanes.configure(blocks.into()).await.unwrap();
    let submit = |lane: &str| {
        let (lanes, task) = (lanes.clone(), Task::new(lane).kind("work"));
        tokio::spawn(async move { lanes.submit(task).await.map(|task| task.id()) })
    };
    for lane in ["full", "full", "other"] {
        submit(lane).await.unwrap().unwrap();
    }
    store.plan(Fault::Slow);
    let slow = submit("other");
    while store.planned() > 0 {
        tokio::task::yield_now().await;
    }
    let held = tokio::spawn({
        let lanes = lanes.clone();
        async move { numbers(&lanes, "other").await }
    });
    for full in ["full", "other"] {
        let refused = submit(full).await.unwrap().unwrap_err();
        assert_eq!(refused.code(), "AT_CAPACITY", "{refused}");
    }
    assert!(!slow.is_finished() && !held.is_finished());
    store.go_on();
    slow.await.unwrap().unwrap();
    assert_eq!(held.await.unwrap(), (0, 2));
}

#[test]
fn after_a_crash_waiting_tasks_run_and_running_tasks_follow_their_retry_rule() {
    let store = memory();
    let (once, again, waiting) = crash(&store, Options::default(), async |lanes: Handle| {
        let handler = |_: Context, _: Value| std::future::pending::<Result<(), Failure>>();
        lanes.handler("work", handler).unwrap();
        let submit = |task: Task| {
            let lanes = lanes.clone();
            async move { lanes.submit(task.kind("work")).await.unwrap().id() }
        };
        let once = submit(Task::new("a").payload("once")).await;
        let again = submit(Task::new("b").payload("again").retry(Retry::STANDARD)).await;
        let waiting = submit(Task::new("b").payload("waiting")).await;
        // Slots end with their program, so that neither of these survives.
        std::mem::forget(lanes.slot(["c"]).await.unwrap());
        let line = tokio::spawn({
            let lanes = lanes.clone();
            async move { lanes.slot(["c"]).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(numbers(&lanes, "c").await, (1, 1));
        drop(line);
        (once, again, waiting)
    });
    let work = |context: Context, payload: Value| async move { Ok(json!([payload, context.attempt()])) };
    let options = Options::default().handler("work", work).unwrap();
    crash(&store, options, async |lanes: Handle| {
        // The new process owns the store, so the old one is dead, and its leases end at once.
        let at_once = tokio::time::timeout(secs(10), lanes.wait_for(once)).await.unwrap();
        assert_eq!(at_once.unwrap().end, End::Lost);
        assert_eq!(lanes.wait_for(again).await.unwrap().into_result(), Ok(json!(["again", 2])));
        assert_eq!(lanes.wait_for(waiting).await.unwrap().into_result(), Ok(json!(["waiting", 1])));
        assert_eq!(numbers(&lanes, "c").await, (0, 0));
        let dead_letters = lanes.dead_letters().await.unwrap();
        assert_eq!(dead_letters.iter().map(|dead| dead.task).collect::<Vec<_>>(), [once]);
        let payload = lanes.payload(dead_letters[0].spec.payload.unwrap()).await.unwrap().unwrap();
        assert_eq!(&payload[..], br#""once""#);
    });
}

#[tokio::test]
async fn a_store_on_disk_is_closed_by_a_shutdown_and_opened_again() {
    let place = tempfile::tempdir().unwrap();
    let open = || Arc::new(SqliteStore::open(place.path()).unwrap());
    let lanes = Handle::open(open(), Options::default()).await.unwrap();
    lanes.configure(vec![block("gpu", "handler=external")]).await.unwrap();
    let task = lanes.submit(Task::new("gpu").kind("render").payload(json!({"frame": 1}))).await.unwrap();
    let id = task.id();
    lanes.shutdown(secs(5)).await;
    assert_eq!(task.wait().await, Err(RunError::Refused(Error::Closed)));
    let lanes = Handle::open(open(), Options::default()).await.unwrap();
    let claims = lanes.claim(ClaimRequest::new("w1", ["gpu"])).await.unwrap();
    assert_eq!((claims[0].task, claims[0].payload.as_deref()), (id, Some(&br#"{"frame":1}"#[..])));
    lanes.complete(id, claims[0].fence, Some("3".into())).await.unwrap();
    assert_eq!(lanes.ending_of(id).await.unwrap().into_result(), Ok(json!(3)));
    // A second caller gets the same result, although the payload is no longer needed.
    assert_eq!(lanes.wait_for(id).await.unwrap().attempts, 1);
    lanes.shutdown(secs(5)).await;
}

#[tokio::test]
async fn a_worker_keeps_its_claim_across_a_restart() {
    let store = memory();
    let (id, fence) = {
        let lanes = Handle::open(Arc::clone(&store), Options::default()).await.unwrap();
        lanes.configure(vec![block("gpu", "handler=external")]).await.unwrap();
        let id = lanes.submit(Task::new("gpu").kind("render")).await.unwrap().id();
        let claims = lanes.claim(ClaimRequest::new("w1", ["gpu"])).await.unwrap();
        lanes.shutdown(secs(0)).await;
        (id, claims[0].fence)
    };
    let lanes = Handle::open(store, Options::default()).await.unwrap();
    lanes.heartbeat(id, fence).await.unwrap();
    lanes.complete(id, fence, None).await.unwrap();
    assert_eq!(lanes.ending_of(id).await.unwrap().end, End::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_and_a_rival_change_nothing_for_the_caller() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(store.clone(), Options::default()).await.unwrap();
    lanes.handler("work", |_: Context, payload: Value| async move { Ok(payload) }).unwrap();
    for fault in [Fault::ReplyLost, Fault::NotWritten, Fault::Overtaken] {
        store.plan(fault);
        let task = lanes.submit(Task::new("main").kind("work").payload(1)).await.unwrap();
        assert_eq!(task.wait().await, Ok(json!(1)), "{fault:?}");
        store.plan(fault);
        assert_eq!(lanes.run(Task::new("main"), async { 2 }).await, Ok(2), "{fault:?}");
    }
    assert_eq!(store.planned(), 0);
    assert_eq!(numbers(&lanes, "main").await, (0, 0));
    let stats = lanes.stats().await.unwrap();
    let main = &stats.iter().find(|(label, _)| label == "main").unwrap().1;
    assert_eq!((main.accepted, main.completed), (6, 6));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_is_granted_and_running_tasks_report_later() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(store.clone(), Options::default()).await.unwrap();
    let (finish, finished) = oneshot::channel::<u32>();
    let finished = std::sync::Mutex::new(Some(finished));
    lanes
        .handler("work", move |_: Context, _: Value| {
            let finished = finished.lock().unwrap().take();
            async move { Ok(finished.unwrap().await.unwrap()) }
        })
        .unwrap();
    let task = lanes.submit(Task::new("main").kind("work")).await.unwrap();
    let slot = lanes.slot(["main"]).await.unwrap();
    store.go_away();
    let refused = lanes.slot(["main"]).await.err().unwrap();
    assert_eq!(refused.code(), "STORE_UNAVAILABLE");
    finish.send(5).unwrap();
    // The outage is much longer than a lease, but attempts of this process stay alive.
    tokio::time::sleep(secs(200)).await;
    assert_eq!(lanes.snapshot().await.unwrap_err().code(), "STORE_UNAVAILABLE");
    store.come_back();
    assert_eq!(task.wait().await, Ok(json!(5)));
    assert_eq!((slot.stop().reason(), numbers(&lanes, "main").await), (None, (1, 0)));
    drop(slot);
    assert_eq!(numbers(&lanes, "main").await, (0, 0));
    assert_eq!(lanes.run(Task::new("main"), async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn waits_and_run_times_are_right_after_an_outage() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(store.clone(), Options::default()).await.unwrap();
    lanes
        .handler("sleep", |_: Context, length: Value| async move {
            tokio::time::sleep(secs(length.as_u64().unwrap())).await;
            Ok(json!(null))
        })
        .unwrap();
    let sleep = |length: u64| lanes.submit(Task::new("one").kind("sleep").payload(length));
    let (mut first, mut second) = (sleep(30).await.unwrap(), sleep(5).await.unwrap());
    tokio::time::sleep(secs(10)).await;
    store.go_away();
    tokio::time::sleep(secs(100)).await;
    store.come_back();
    let (first_end, second_end) = (first.ended().await.unwrap(), second.ended().await.unwrap());
    // The first one ended during the outage. The second one started after it, when the store was asked again.
    assert_eq!((first_end.waited, first_end.ran), (Millis(0), Millis(30_000)));
    assert!((110_000..113_000).contains(&second_end.waited.0), "{second_end:?}");
    assert_eq!(second_end.ran, Millis(5_000));
    let finished = lanes.finished(first.id()).await.unwrap().unwrap().0;
    assert_eq!(finished.ended.since(finished.started.unwrap()), Millis(30_000));
}

#[tokio::test(start_paused = true)]
async fn a_stored_task_runs_after_the_outage_although_its_caller_got_unavailable() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(store.clone(), Options::default()).await.unwrap();
    let (tell, mut ran) = mpsc::unbounded_channel();
    lanes
        .handler("work", move |_: Context, payload: u32| {
            let tell = tell.clone();
            async move { tell.send(payload).map_err(Failure::new) }
        })
        .unwrap();
    // The store keeps the append but loses its reply, and it refuses the retries.
    for fault in [Fault::ReplyLost, Fault::NotWritten, Fault::NotWritten] {
        store.plan(fault);
    }
    let refused = lanes.submit(Task::new("main").kind("work").payload(1)).await.err().unwrap();
    assert_eq!(refused.code(), "STORE_UNAVAILABLE");
    assert_eq!(ran.recv().await, Some(1));
    // The engine gives a slot back if its caller got an error.
    for fault in [Fault::ReplyLost, Fault::NotWritten, Fault::NotWritten] {
        store.plan(fault);
    }
    assert!(lanes.slot(["cron"]).await.is_err());
    assert_eq!(
        lanes.run(Task::new("cron"), async { 7 }).await.map_err(|error| error.code()),
        Err("STORE_UNAVAILABLE")
    );
    tokio::time::sleep(secs(1)).await;
    assert_eq!(lanes.run(Task::new("cron"), async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_starts_at_once_gets_its_payload_without_a_read_from_the_store() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(store.clone(), Options::default()).await.unwrap();
    let (tell, mut ran) = mpsc::unbounded_channel();
    lanes
        .handler("work", move |_: Context, payload: Value| {
            let tell = tell.clone();
            async move { tell.send(payload).map_err(Failure::new) }
        })
        .unwrap();
    store.plan(Fault::Slow);
    let submit = |number: u32| {
        let lanes = lanes.clone();
        tokio::spawn(async move { lanes.submit(Task::new("main").kind("work").payload(number)).await })
    };
    let (first, second) = (submit(1), submit(2));
    while store.planned() > 0 {
        tokio::task::yield_now().await;
    }
    // The store completes the current append, and then allows no reads.
    store.go_away();
    store.go_on();
    let ran_both = async { (ran.recv().await, ran.recv().await) };
    let ran_both = tokio::time::timeout(secs(60), ran_both).await.unwrap();
    assert_eq!(ran_both, (Some(json!(1)), Some(json!(2))));
    store.come_back();
    for task in [first, second] {
        task.await.unwrap().unwrap().wait().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn each_task_of_a_batch_gets_its_own_payload_whichever_of_them_start() {
    let store = Arc::new(FaultyStore::new(memory()));
    let lanes = Handle::open(store.clone(), Options::default()).await.unwrap();
    let (tell, mut ran) = mpsc::unbounded_channel();
    lanes
        .handler("work", move |context: Context, payload: Value| {
            let tell = tell.clone();
            async move { tell.send((context.lanes()[0].to_string(), payload)).map_err(Failure::new) }
        })
        .unwrap();
    store.plan(Fault::Slow);
    let submit = |task: Task| {
        let lanes = lanes.clone();
        tokio::spawn(async move { lanes.submit(task.kind("work")).await })
    };
    let first = submit(Task::new("first").payload("first"));
    while store.planned() > 0 {
        tokio::task::yield_now().await;
    }
    // These arrive during an append, so the next batch decides them all. Each lane has one slot, so one of each pair waits.
    let pairs = ["a", "a", "b", "b", "c", "c"].into_iter().enumerate();
    let mut tasks: Vec<_> =
        pairs.map(|(at, lane)| submit(Task::new(lane).payload(json!([lane, at])))).collect();
    tasks.push(submit(Task::new("none")));
    // On one thread, all of them have sent their commands when this task runs again.
    tokio::task::yield_now().await;
    let is_answered = |task: &tokio::task::JoinHandle<_>| task.is_finished();
    assert!(!is_answered(&first) && !tasks.iter().any(is_answered), "no answer comes before the append");
    assert_eq!(ran.try_recv().ok(), None, "no task runs before the append");
    store.go_on();
    for task in std::iter::once(first).chain(tasks) {
        task.await.unwrap().unwrap().wait().await.unwrap();
    }
    let mut seen = Vec::new();
    while let Ok(run) = ran.try_recv() {
        seen.push(run);
    }
    let own = |lane: &str, at: usize| (lane.to_owned(), json!([lane, at]));
    let mut expected = vec![("first".to_owned(), json!("first")), ("none".to_owned(), Value::Null)];
    expected.extend(["a", "a", "b", "b", "c", "c"].into_iter().enumerate().map(|(at, lane)| own(lane, at)));
    seen.sort_by_key(|(_, payload)| payload.to_string());
    expected.sort_by_key(|(_, payload)| payload.to_string());
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_log_stays_short_and_keeps_all_live_tasks() {
    let store = memory();
    let mut options = Options::default();
    options.snapshot_every = 100;
    options.history_max = 20;
    let lanes = Handle::open(Arc::clone(&store), options).await.unwrap();
    lanes.handler("work", |_: Context, payload: Value| async move { Ok(payload) }).unwrap();
    let mut last = None;
    for number in 0..500 {
        let task = lanes.submit(Task::new("main").kind("work").payload(number)).await.unwrap();
        last = Some(task.id());
        assert_eq!(task.wait().await, Ok(json!(number)));
    }
    lanes.configure(vec![block("gpu", "handler=external")]).await.unwrap();
    let waits = lanes.submit(Task::new("gpu").kind("render").payload("x")).await.unwrap().id();
    lanes.shutdown(secs(5)).await;
    let head = store.head().await.unwrap();
    assert!(store.read(laneway_store::Version(head.version.0 - 200)).await.is_err(), "the log was trimmed");
    assert_eq!(store.history(HistoryQuery { max: 100, ..HistoryQuery::default() }).await.unwrap().len(), 20);
    let lanes = Handle::open(store, Options::default()).await.unwrap();
    assert_eq!(lanes.pending().await.unwrap()[0].id, waits);
    assert_eq!(lanes.ending_of(last.unwrap()).await.unwrap().into_result(), Ok(json!(499)));
    assert_eq!(lanes.cancel(waits).await, Ok(Reply::CancelledWhileWaiting));
}

#[tokio::test(start_paused = true)]
async fn a_store_with_tasks_without_a_handler_is_refused_unless_they_may_fail() {
    let store = memory();
    let lanes = Handle::open(Arc::clone(&store), Options::default()).await.unwrap();
    let echo = |_: Context, payload: Value| async move { Ok(payload) };
    lanes.configure(vec![block("gpu", "handler=external")]).await.unwrap();
    lanes.handler("work", echo).unwrap();
    let held = lanes.slot(["cron"]).await.unwrap();
    let id = lanes.submit(Task::new("cron").kind("work").payload(4)).await.unwrap().id();
    // A worker runs this task, so the engine needs no handler.
    lanes.submit(Task::new("gpu").kind("render")).await.unwrap().detach();
    lanes.shutdown(secs(0)).await;
    drop(held);
    let before = store.head().await.unwrap();
    let refused = Handle::open(Arc::clone(&store), Options::default()).await.err().unwrap();
    let words = "the store holds tasks of kind work, which nothing here runs; open it with their handlers";
    assert_eq!(refused.to_string(), words);
    assert_eq!(store.head().await.unwrap(), before, "nothing changed");
    let mut options = Options::default();
    options.unknown_kinds = UnknownKinds::Fail;
    let lanes = Handle::open(Arc::clone(&store), options).await.unwrap();
    let error: Arc<str> = "nothing here runs tasks of kind work".into();
    assert_eq!(lanes.wait_for(id).await.unwrap().end, End::Failed { error });
    assert_eq!(numbers(&lanes, "cron").await, (0, 0));
    // The dead letter can be redriven once there is a handler.
    lanes.handler("work", echo).unwrap();
    assert_eq!(lanes.redrive(id).await.unwrap().wait().await, Ok(json!(4)));
}

#[tokio::test(start_paused = true)]
async fn processes_that_share_a_store_know_their_own_attempts() {
    let store = MemoryStore::new();
    let runs: Arc<std::sync::Mutex<Vec<&str>>> = Arc::default();
    let open = async |name: &'static str| {
        let runs = Arc::clone(&runs);
        let work = move |_: Context, payload: Value| {
            runs.lock().unwrap().push(name);
            async move {
                tokio::time::sleep(secs(20)).await;
                Ok(payload)
            }
        };
        let options = Options::default().handler("work", work).unwrap();
        Handle::open(Arc::new(Shared(store.clone())), options).await.unwrap()
    };
    let first = open("first").await;
    let task = first.submit(Task::new("main").kind("work").payload(1)).await.unwrap();
    let owner = first.task(task.id()).await.unwrap().unwrap().running.unwrap().owner;
    assert!(owner.replica().is_some_and(|replica| replica != ReplicaId::SOLE), "{owner:?}");
    // The second process neither ends nor repeats attempts of the first, also when it catches up with the log.
    let second = open("second").await;
    let seen = second.task(task.id()).await.unwrap().unwrap().running.unwrap();
    assert_eq!((seen.owner, seen.stopping), (owner, false));
    let other = second.submit(Task::new("main").kind("work").payload(2)).await.unwrap();
    let third = first.submit(Task::new("main").kind("work").payload(3)).await.unwrap();
    assert_eq!(*runs.lock().unwrap(), ["first", "second", "first"]);
    assert_eq!((task.wait().await, other.wait().await), (Ok(json!(1)), Ok(json!(2))));
    assert_eq!(third.wait().await, Ok(json!(3)));
    assert_eq!(runs.lock().unwrap().len(), 3);
}
