//! Several replicas on one log share their lanes, whichever of them gets a call and whichever of them dies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{block, lane, numbers, replica_options as options, replicas, secs, until};
use laneway_core::{End, LaneName, Name, Owner, TaskSpec, Timestamp};
use laneway_engine::{Appends, ClaimRequest, Context, Error, Handle, RunError, Task};
use laneway_store::testing::{Fault, FaultyStore, in_format};
use laneway_store::{
    Author, BATCH_FORMAT, Batch, BatchId, Entry, Head, Log, MemoryStore, Record, Store, Version,
};
use serde_json::{Value, json};

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
    spec.owner = Some(Owner::Worker(Name::new("caller").unwrap()));
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
    memory.request_append_turn(Author(7)).await.unwrap();
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
        memory.request_append_turn(idle).await.unwrap();
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
    let wanted: u64 = stores.iter().map(|store| store.append_turns_wanted()).sum();
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
