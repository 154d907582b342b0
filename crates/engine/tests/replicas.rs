//! Several replicas on one log share their lanes, whichever of them gets a call and whichever of them dies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{block, lane, numbers, replica_options as options, secs, until};
use laneway_core::{Claimer, End, LaneName, Name, Retry, TaskSpec, Timestamp};
use laneway_engine::{
    Appends, ClaimRequest, Context, Error, Failure, Handle, Options, RunError, Slot, Task, TaskHandle,
};
use laneway_store::testing::{Fault, FaultyStore, in_format};
use laneway_store::{
    Author, BATCH_FORMAT, Batch, BatchId, Entry, Head, Log, MemoryStore, Record, Store, Version,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Replicas on one store in memory. A test can cut off each of them.
async fn replicas<const N: usize>() -> ([Handle; N], [Arc<FaultyStore>; N]) {
    replicas_with(options).await
}

async fn replicas_with<const N: usize>(
    options: impl Fn() -> Options,
) -> ([Handle; N], [Arc<FaultyStore>; N]) {
    let memory = MemoryStore::new();
    let stores: [_; N] = std::array::from_fn(|_| Arc::new(FaultyStore::new(Arc::new(memory.clone()))));
    let mut handles = Vec::new();
    for store in &stores {
        let store: Arc<dyn Store> = Arc::<FaultyStore>::clone(store);
        handles.push(Handle::join(store, options()).await.unwrap());
    }
    (handles.try_into().unwrap_or_else(|_| panic!("as many")), stores)
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_over_all_replicas() {
    let (replicas, _) = replicas::<3>().await;
    replicas[0].configure(vec![block("work", "max_concurrency=2 max_queued=100")]).await.unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..60 {
        let (lanes, now, most) = (replicas[number % 3].clone(), Arc::clone(&now), Arc::clone(&most));
        runs.spawn(async move {
            let work = async {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
            };
            lanes.run(Task::new("work"), work).await
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    for lanes in &replicas {
        until(lanes, "work", 0, 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_may_run_tasks_of_another_and_the_caller_gets_the_result() {
    let ([a, b], _) = replicas::<2>().await;
    for (lanes, name) in [(&a, "a"), (&b, "b")] {
        lanes
            .handler("say", move |_: Context, what: Value| async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Ok(json!([what, name]))
            })
            .unwrap();
    }
    let mut waiting = Vec::new();
    for number in 0..40 {
        let lanes = if (number + number / 8) % 2 == 0 { &a } else { &b };
        let task = Task::new(format!("say-{}", number / 8)).kind("say").payload(number);
        waiting.push(lanes.submit(task).await.unwrap());
    }
    let mut by = std::collections::BTreeSet::new();
    for (number, handle) in waiting.into_iter().enumerate() {
        let result = handle.wait().await.unwrap();
        assert_eq!(result[0], json!(number));
        by.insert(result[1].clone().to_string());
    }
    assert_eq!(by.len(), 2, "both replicas ran tasks");
}

#[tokio::test(start_paused = true)]
async fn every_replica_accepts_every_call() {
    let ([a, b], _) = replicas::<2>().await;
    b.configure(vec![block("work", "max_concurrency=1")]).await.unwrap();
    until(&a, "work", 0, 0).await;
    let slot = a.slot(["work"]).await.unwrap();
    let line = tokio::spawn({
        let a = a.clone();
        async move { a.slot(["work"]).await.map(drop) }
    });
    until(&b, "work", 1, 1).await;
    // The cancel reaches the owner of the attempt.
    b.cancel(slot.task()).await.unwrap();
    slot.stop().wait().await;
    drop(slot);
    line.await.unwrap().unwrap();
    let slot = a.slot(["work"]).await.unwrap();
    let line = tokio::spawn({
        let b = b.clone();
        async move { b.slot(["work"]).await.map(drop) }
    });
    until(&a, "work", 1, 1).await;
    assert_eq!(a.clear(lane("work")).await.unwrap(), 1);
    assert!(matches!(line.await.unwrap(), Err(RunError::Ended(End::Cancelled { .. }))));
    // After a forced release the old slot is stale, and the next caller gets it.
    b.force_release(lane("work")).await.unwrap();
    slot.stop().wait().await;
    let next = b.slot(["work"]).await.unwrap();
    drop(slot);
    assert!(b.try_slot(["work"]).await.is_err(), "a report of the stale slot frees nothing");
    drop(next);
    until(&a, "work", 0, 0).await;
    b.pause(lane("work")).await.unwrap();
    assert!(a.try_slot(["work"]).await.is_err(), "a pause holds at every replica");
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_dead_replica_end_after_its_lease() {
    let ([a, b], stores) = replicas::<2>().await;
    a.configure(vec![block("work", "max_concurrency=1 lease=6s max_queued=10")]).await.unwrap();
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
    spec.home = a.here();
    assert!(spec.home.is_some() && spec.home != b.here());
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

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_nothing_is_granted_and_running_tasks_report_later() {
    let ([a, b], stores) = replicas::<2>().await;
    a.configure(vec![block("work", "max_concurrency=1 lease=6s")]).await.unwrap();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn({
        let a = a.clone();
        async move { a.run(Task::new("work"), async { finished.await.unwrap() }).await }
    });
    until(&b, "work", 1, 0).await;
    stores.iter().for_each(|store| store.go_away());
    for lanes in [&a, &b] {
        let refused = lanes.slot(["work"]).await.err().unwrap();
        assert_eq!(refused.code(), "STORE_UNAVAILABLE");
    }
    // The outage is longer than the lease. The attempt continues, and the first replica to return does not end it.
    tokio::time::sleep(secs(20)).await;
    stores[1].come_back();
    until_answers(&b).await;
    assert_eq!(numbers(&b, "work").await, (1, 0));
    finish.send(()).unwrap();
    run.await.unwrap().unwrap();
    stores[0].come_back();
    until(&b, "work", 0, 0).await;
    until_answers(&a).await;
    drop(a.slot(["work"]).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_worker_s_lease_does_not_lapse_during_an_outage_of_the_store() {
    let ([a, b], stores) = replicas::<2>().await;
    a.configure(vec![block("gpu", "handler=external lease=30s max_redelivery=0")]).await.unwrap();
    let id = a.submit(Task::new("gpu").kind("work")).await.unwrap().id();
    let claims = b.claim(ClaimRequest::new("w", ["gpu"]).lease(secs(3))).await.unwrap();
    stores.iter().for_each(|store| store.go_away());
    tokio::time::sleep(secs(12)).await;
    stores.iter().for_each(|store| store.come_back());
    until_answers(&a).await;
    until_answers(&b).await;
    a.heartbeat(id, claims[0].fence).await.unwrap();
    b.complete(id, claims[0].fence, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_external_slot_outlives_the_replica_that_granted_it_until_its_lease() {
    let ([a, b], _) = replicas().await;
    a.configure(vec![block("work", "max_concurrency=1 lease=9s")]).await.unwrap();
    let mut spec = TaskSpec::new(Name::new("held").unwrap(), vec![LaneName::new("work").unwrap()]);
    spec.claimer = Some(Claimer { worker: Name::new("caller").unwrap(), lease: None });
    a.submit_spec(a.new_id(), Box::new(spec), None).await.unwrap().detach();
    until(&b, "work", 1, 0).await;
    a.shutdown(Duration::ZERO).await;
    tokio::time::sleep(secs(2)).await;
    assert_eq!(numbers(&b, "work").await, (1, 0), "its owner still uses it");
    tokio::time::sleep(secs(9)).await;
    until(&b, "work", 0, 0).await;
}

async fn until_answers(lanes: &Handle) {
    while lanes.snapshot().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_finds_its_append_after_a_lost_reply_although_another_has_appended() {
    let ([a, b], stores) = replicas::<2>().await;
    for fault in [Fault::ReplyLost, Fault::NotWritten, Fault::Overtaken] {
        stores[0].plan(fault);
        let slot = a.slot(["work"]).await.unwrap();
        assert!(b.try_slot(["work"]).await.is_err());
        drop(slot);
        drop(b.slot(["work"]).await.unwrap());
        until(&a, "work", 0, 0).await;
        until(&b, "other", 0, 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_program_stops_at_a_batch_of_a_newer_one() {
    let memory = MemoryStore::new();
    let a = Handle::join(Arc::new(memory.clone()), options()).await.unwrap();
    a.configure(vec![block("work", "max_concurrency=1")]).await.unwrap();
    let head = memory.head().await.unwrap();
    let log = Log::new(Arc::new(memory.clone()));
    let batch = Batch { id: BatchId(7), at: Timestamp(0), events: vec![] };
    let mut newer = log.seal(head, &Entry::of(batch)).unwrap();
    newer.record = in_format(Record::Batch(newer.outcome().version), BATCH_FORMAT + 1, &newer.record);
    let (version, batch) = (newer.outcome().version, newer.batch);
    memory.append(newer).await.unwrap();
    let refused = a.snapshot().await.err().unwrap();
    assert!(matches!(refused, Error::Broken(_)) && refused.to_string().contains("newer version of Laneway"));
    // It decides nothing further, and appends nothing after the batch that it cannot read.
    assert!(matches!(a.slot(["work"]).await, Err(RunError::Refused(Error::Broken(_)))));
    assert_eq!(memory.head().await.unwrap(), Head { version, batch });
}

/// The author of an engine's batches.
async fn author_of(lanes: &Handle, memory: &MemoryStore) -> Author {
    drop(lanes.slot(["elsewhere"]).await.unwrap());
    memory.head().await.unwrap().batch.author()
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_dies_with_the_append_turn_delays_others_only_briefly() {
    let memory = MemoryStore::new();
    let a = Handle::join(Arc::new(memory.clone()), options()).await.unwrap();
    let b = Handle::join(Arc::new(memory.clone()), options()).await.unwrap();
    memory.request_baton(Author(7)).await.unwrap();
    let slot = a.slot(["work"]).await.unwrap();
    assert_eq!(memory.newest().unwrap().1, Some(Author(7)));
    let began = tokio::time::Instant::now();
    drop(b.slot(["other"]).await.unwrap());
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(50) && waited < Duration::from_millis(100), "{waited:?}");
    // Replicas do not wait for it a second time.
    let began = tokio::time::Instant::now();
    drop((b.slot(["third"]).await.unwrap(), a.slot(["fourth"]).await.unwrap()));
    drop(slot);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_replica_with_nothing_to_append_passes_the_append_turn_on() {
    let memory = MemoryStore::new();
    let a = Handle::join(Arc::new(memory.clone()), options()).await.unwrap();
    let b = Handle::join(Arc::new(memory.clone()), options()).await.unwrap();
    a.configure(vec![block("work", "max_concurrency=1 max_queued=0")]).await.unwrap();
    let idle = author_of(&a, &memory).await;
    until(&a, "elsewhere", 0, 0).await;
    for is_asked in [false, true] {
        memory.request_baton(idle).await.unwrap();
        let began = tokio::time::Instant::now();
        let before = memory.head().await.unwrap().version;
        let slot = b.slot(["work"]).await.unwrap();
        while memory.head().await.unwrap().version.0 < before.0 + 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(memory.head().await.unwrap().batch.author(), idle, "it appended a batch without events");
        if is_asked {
            // A refusal appends nothing.
            assert_eq!(a.slot(["work"]).await.err().unwrap().code(), "AT_CAPACITY");
        }
        drop(b.slot(["other"]).await.unwrap());
        assert_eq!(began.elapsed(), Duration::ZERO, "no replica waits for it");
        drop(slot);
        until(&a, "work", 0, 0).await;
    }
}

/// Makes each append take about a millisecond from now on.
fn slow_down(store: &Arc<FaultyStore>) {
    const PLANNED: usize = 10_000;
    (0..PLANNED).for_each(|_| store.plan(Fault::Slow));
    let store = Arc::clone(store);
    tokio::spawn(async move {
        let mut done = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if PLANNED - store.planned() > done {
                done += 1;
                store.go_on();
            }
        }
    });
}

#[tokio::test(start_paused = true)]
async fn contending_replicas_append_in_turn_and_rarely_conflict() {
    let (replicas, stores) = replicas::<3>().await;
    replicas[0].configure(vec![block("work", "max_concurrency=30 max_queued=100")]).await.unwrap();
    stores.iter().for_each(slow_down);
    for lanes in &replicas {
        lanes.handler("noop", |_: Context, (): ()| async { Ok(()) }).unwrap();
    }
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..60 {
        let lanes = replicas[number % 3].clone();
        callers.spawn(async move {
            for _ in 0..20 {
                lanes.submit(Task::new("work").kind("noop")).await.unwrap().wait().await.unwrap();
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    let all = replicas.each_ref().map(Handle::appends);
    let sum = |count: fn(&Appends) -> u64| all.iter().map(count).sum::<u64>();
    let (kept, lost) = (sum(|appends| appends.kept), sum(|appends| appends.lost));
    assert!(kept > 50 && sum(|appends| appends.waits) > kept / 2, "the replicas contend: {all:?}");
    assert!(lost * 10 < kept, "{all:?}");
    assert_eq!(sum(|appends| appends.overdue), 0, "no append turn was overdue: {all:?}");
    let wanted: u64 = stores.iter().map(|store| store.batons_wanted()).sum();
    assert!(
        wanted * 2 < kept,
        "most requests for the turn are part of an append: {wanted} were not, {all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_waiting_calls_of_its_replica() {
    let ([a, b], _) = replicas::<2>().await;
    a.configure(vec![block("work", "max_concurrency=1")]).await.unwrap();
    let slot = b.slot(["work"]).await.unwrap();
    let line = tokio::spawn({
        let a = a.clone();
        async move { a.slot(["work"]).await.map(drop) }
    });
    until(&b, "work", 1, 1).await;
    a.shutdown(Duration::ZERO).await;
    assert!(line.await.unwrap().is_err());
    until(&b, "work", 1, 0).await;
    drop(slot);
}

#[tokio::test(start_paused = true)]
async fn a_replica_loads_the_snapshot_after_a_long_absence() {
    let memory = MemoryStore::new();
    let quick = || {
        let mut options = options();
        options.snapshot_every = 10;
        options
    };
    let faulty = Arc::new(FaultyStore::new(Arc::new(memory.clone())));
    let a = Handle::join(Arc::<FaultyStore>::clone(&faulty), quick()).await.unwrap();
    let b = Handle::join(Arc::new(memory.clone()), quick()).await.unwrap();
    b.handler("work", |_: Context, what: Value| async move { Ok(what) }).unwrap();
    a.handler("work", |_: Context, what: Value| async move { Ok(what) }).unwrap();
    b.configure(vec![block("held", "max_concurrency=1")]).await.unwrap();
    let held = b.slot(["held"]).await.unwrap();
    let waited = a.submit(Task::new("held").kind("work").payload(7)).await.unwrap();
    faulty.go_away();
    drop(held);
    for _ in 0..5000 {
        b.submit(Task::new("work").kind("work").payload(1)).await.unwrap().wait().await.unwrap();
    }
    assert!(memory.read(Version(0)).await.is_err(), "the beginning of the log is gone");
    faulty.come_back();
    until_answers(&a).await;
    assert_eq!(waited.wait().await.unwrap(), json!(7));
    assert_eq!(a.tasks().await.unwrap(), vec![]);
}
