//! The history of ended tasks, and the attempts of live ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{block, lane, secs};
use laneway_core::{End, Idempotency, Name, Retry, TaskId, TaskSpec, TaskStatus};
use laneway_engine::{
    ClaimRequest, Context, Cursor, EndState, Error, Failure, Handle, HistoryFilter, Options, Task, TaskRecord,
};
use laneway_store::{Finished, MemoryStore, state_word};
use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};

/// Runs a check on an engine without a store, with a store in memory, and with a store on disk.
async fn each(options: impl Fn() -> Options, check: impl AsyncFn(&Handle)) {
    check(&Handle::in_memory(options())).await;
    check(&Handle::open(Arc::new(MemoryStore::new()), options()).await.unwrap()).await;
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
    let lanes = Handle::open(store, options()).await.unwrap();
    check(&lanes).await;
    lanes.shutdown(secs(1)).await;
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Handlers that succeed, fail, or fail until their third attempt.
fn with_handlers(lanes: &Handle) {
    lanes.handler("echo", |_: Context, payload: Value| async move { Ok(payload) }).unwrap();
    lanes.handler("fail", |_: Context, _: Value| async { Err::<(), _>(Failure::new("broken")) }).unwrap();
    lanes
        .handler("third", |context: Context, _: Value| async move {
            match context.attempt() {
                3 => Ok("at last"),
                attempt => Err(Failure::new(format!("broken {attempt}"))),
            }
        })
        .unwrap();
}

async fn list(lanes: &Handle, filter: HistoryFilter) -> Vec<u64> {
    let page = lanes.history(filter).await.unwrap();
    page.items.iter().map(|finished| u64::from(finished.priority)).collect()
}

#[tokio::test]
async fn the_history_filters_ended_tasks() {
    each(Options::default, async |lanes| {
        with_handlers(lanes);
        // Each task has its own priority, which identifies it.
        let tasks = [
            Task::new("main").session("ann").kind("echo"),
            Task::new("gpu").kind("fail"),
            Task::new("session:ann/query").kind("echo").group("plan"),
            Task::new("main").session("bob").kind("fail"),
        ];
        for (number, task) in (1..).zip(tasks) {
            drop(lanes.submit(task.priority(number).payload(number)).await.unwrap().ending().await.unwrap());
        }
        // Closures are not in the history.
        lanes.run(Task::new("main"), async {}).await.unwrap();
        let all = HistoryFilter::default;
        for (filter, expected) in [
            (all(), vec![4, 3, 2, 1]),
            (HistoryFilter { state: Some(EndState::Failed), ..all() }, vec![4, 2]),
            (HistoryFilter { state: Some(EndState::Lost), ..all() }, vec![]),
            (HistoryFilter { lane: Some(lane("main")), ..all() }, vec![4, 1]),
            (HistoryFilter { kind: Some(name("echo")), ..all() }, vec![3, 1]),
            (HistoryFilter { session: Some("ann".into()), ..all() }, vec![3, 1]),
            (HistoryFilter { group: Some(name("plan")), ..all() }, vec![3]),
            (HistoryFilter { session: Some("bob".into()), state: Some(EndState::Failed), ..all() }, vec![4]),
        ] {
            assert_eq!(list(lanes, filter.clone()).await, expected, "{filter:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_page_continues_after_the_last_one_while_tasks_end() {
    each(Options::default, async |lanes| {
        with_handlers(lanes);
        let run = async |number: u8| {
            let task = Task::new("main").kind("echo").priority(number);
            lanes.submit(task).await.unwrap().wait().await.unwrap();
        };
        for number in 1..=5 {
            run(number).await;
        }
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = lanes.history(HistoryFilter { after, max: 2, ..Default::default() }).await.unwrap();
            seen.extend(page.items.iter().map(|finished| finished.priority));
            run(9).await;
            let Some(next) = page.next else { break };
            after = Some(next.to_string().parse::<Cursor>().unwrap());
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
    })
    .await;
    assert_eq!(
        "x.1".parse::<Cursor>().unwrap_err().to_string(),
        "must be a cursor that an earlier list gave"
    );
}

async fn over(lanes: &Handle, task: TaskId) -> (Finished, TaskRecord) {
    let mut record = lanes.record(task).await.unwrap().unwrap();
    (record.finished.take().unwrap(), record)
}

#[tokio::test]
async fn a_task_s_record_has_every_attempt() {
    each(Options::default, async |lanes| {
        with_handlers(lanes);
        let retry = Retry { max_retries: 3, initial_delay: laneway_core::Millis(1), ..Retry::STANDARD };
        let task = Task::new("main").kind("third").retry(retry);
        let task = lanes.submit(task).await.unwrap();
        let id = task.id();
        task.wait().await.unwrap();
        let (finished, record) = over(lanes, id).await;
        assert_eq!((finished.attempts, &finished.end), (3, &End::Completed));
        assert_eq!(record.result.as_deref(), Some(&b"\"at last\""[..]));
        let errors: Vec<&str> = record.tries.iter().map(|tried| &*tried.error).collect();
        assert_eq!(errors, ["broken 1", "broken 2"]);
        let mut times = vec![finished.submitted];
        for tried in &record.tries {
            times.extend([tried.started.unwrap(), tried.ended]);
        }
        times.extend([finished.started.unwrap(), finished.ended]);
        assert!(times.is_sorted(), "{times:?}");
        assert!(record.tries[0].fence < record.tries[1].fence);
        assert_eq!(lanes.record(TaskId(7)).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_live_task_s_record_has_its_payload_and_its_attempts_so_far() {
    each(Options::default, async |lanes| {
        with_handlers(lanes);
        let retry = Retry { initial_delay: laneway_core::Millis(3_600_000), ..Retry::STANDARD };
        let mut updates = lanes.subscribe(Default::default());
        let task = lanes.submit(Task::new("main").kind("fail").payload("x").retry(retry)).await.unwrap();
        loop {
            let update = updates.next().await.unwrap();
            if format!("{update:?}").contains("Retrying") {
                break;
            }
        }
        let record = lanes.record(task.id()).await.unwrap().unwrap();
        assert_eq!((record.live.unwrap().attempts, record.finished), (1, None));
        assert_eq!(record.payload.as_deref(), Some(&b"\"x\""[..]));
        assert_eq!(record.tries.len(), 1);
        assert!(record.tries[0].started.is_some());
    })
    .await;
}

#[tokio::test]
async fn attempts_and_names_of_workers_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = async |options| Handle::open(Arc::new(SqliteStore::open(dir.path()).unwrap()), options).await;
    let lanes = open(Options::default()).await.unwrap();
    let short = "handler=external lease=1s max_redelivery=2";
    lanes.configure(vec![block("gpu", short), block("main", "retry=fixed")]).await.unwrap();
    lanes.handler("stuck", |_: Context, _: Value| std::future::pending::<Result<(), Failure>>()).unwrap();
    let stuck = lanes.submit(Task::new("main").kind("stuck")).await.unwrap().id();
    let render = lanes.submit(Task::new("gpu").kind("render")).await.unwrap().id();
    let first = lanes.claim(ClaimRequest::new("w1", ["gpu"])).await.unwrap();
    assert_eq!(first.len(), 1);
    // The worker is silent, and its lease lapses.
    let second = lanes.claim_when_there_is(ClaimRequest::new("w2", ["gpu"]).lease(secs(60))).await.unwrap();
    lanes.shutdown(Duration::ZERO).await;
    drop(lanes);
    let done = |_: Context, _: Value| async { Ok(json!(1)) };
    let lanes = open(Options::default().handler("stuck", done).unwrap()).await.unwrap();
    lanes.complete(render, second[0].fence, None).await.unwrap();
    let (finished, record) = over(&lanes, render).await;
    assert_eq!((finished.attempts, finished.worker), (2, Some(name("w2"))));
    assert_eq!((record.tries.len(), &record.tries[0].worker), (1, &Some(name("w1"))));
    assert_eq!(record.tries[0].fence, first[0].fence);
    lanes.wait_for(stuck).await.unwrap();
    let (finished, record) = over(&lanes, stuck).await;
    assert_eq!((finished.attempts, record.tries.len()), (2, 1));
    assert_eq!(&*record.tries[0].error, "the lease lapsed");
    assert!(record.tries[0].started.is_some());
    lanes.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn the_history_has_the_payloads_of_tasks_that_never_ran() {
    let options = || {
        let mut options = Options::default();
        options.payloads_kept_max = 16;
        options
    };
    each(options, async |lanes| {
        lanes.configure(vec![block("away", "handler=external")]).await.unwrap();
        let submit = async |payload: Value| {
            lanes.submit(Task::new("away").kind("index").payload(payload)).await.unwrap()
        };
        let cancelled = submit(json!({"n": 1})).await;
        cancelled.cancel().await.unwrap();
        let cleared = submit(json!({"n": 2})).await;
        lanes.clear(lane("away")).await.unwrap();
        let left = submit(json!({"n": 3})).await;
        let left_id = left.id();
        let mut updates = lanes.subscribe(laneway_engine::Filter::task(left_id));
        drop(left.on_drop(laneway_engine::OnDrop::Cancel));
        while lanes.task(left_id).await.unwrap().is_some() {
            updates.next().await.unwrap();
        }
        let long = submit(json!("more than sixteen bytes")).await;
        long.cancel().await.unwrap();
        for (task, payload) in [
            (cancelled.id(), Some("{\"n\":1}")),
            (cleared.id(), Some("{\"n\":2}")),
            (left_id, Some("{\"n\":3}")),
            (long.id(), None),
        ] {
            let (_, record) = over(lanes, task).await;
            assert_eq!(record.payload.as_deref(), payload.map(str::as_bytes));
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_without_a_waiting_caller_is_accepted_run_and_remembered() {
    each(Options::default, async |lanes| {
        with_handlers(lanes);
        let mut spec = Box::new(TaskSpec::new(name("echo"), vec![lane("main")]));
        spec.idempotency = Some(Idempotency { key: "once".into(), fingerprint: 1, until_end: false });
        let first = lanes.submit_detached(lanes.new_id(), spec.clone(), Some("7".into())).await.unwrap();
        assert_eq!((first.joined, first.standing.status), (false, Some(TaskStatus::Running)));
        let ending = lanes.wait_for(first.task).await.unwrap();
        assert_eq!((ending.end, ending.result.as_deref()), (End::Completed, Some(b"7".as_slice())));
        let again = lanes.submit_detached(lanes.new_id(), spec, Some("7".into())).await.unwrap();
        assert_eq!((again.task, again.joined, again.standing.status), (first.task, true, None));
        let refused = lanes
            .submit_detached(lanes.new_id(), Box::new(TaskSpec::new(name("missing"), vec![])), None)
            .await;
        assert!(matches!(refused, Err(Error::NoHandler { .. })), "{refused:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_history_is_limited_by_length_and_by_age() {
    let mut options = Options::default();
    (options.history_max, options.history_for) = (3, Some(secs(60)));
    let lanes = Handle::in_memory(options);
    with_handlers(&lanes);
    for number in 1..=5 {
        let task = Task::new("main").kind("echo").priority(number);
        lanes.submit(task).await.unwrap().wait().await.unwrap();
        tokio::time::sleep(secs(25)).await;
    }
    assert_eq!(list(&lanes, HistoryFilter::default()).await, [5, 4, 3]);
    tokio::time::sleep(secs(30)).await;
    lanes.submit(Task::new("main").kind("echo").priority(6)).await.unwrap().wait().await.unwrap();
    assert_eq!(list(&lanes, HistoryFilter::default()).await, [6, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_store_s_history_is_trimmed_with_its_snapshots() {
    let store = Arc::new(MemoryStore::new());
    let mut options = Options::default();
    options.history_for = Some(Duration::ZERO);
    let lanes = Handle::open(store.clone(), options).await.unwrap();
    with_handlers(&lanes);
    lanes.submit(Task::new("main").kind("echo")).await.unwrap().wait().await.unwrap();
    tokio::time::advance(secs(1)).await;
    lanes.pause(lane("main")).await.unwrap();
    assert_eq!(list(&lanes, HistoryFilter::default()).await.len(), 1);
    lanes.shutdown(Duration::ZERO).await;
    let lanes = Handle::open(store, Options::default()).await.unwrap();
    assert_eq!(list(&lanes, HistoryFilter::default()).await.len(), 0);
}

#[test]
fn every_end_has_its_own_word() {
    let reason = laneway_core::CancelReason::Caller;
    let ends = [
        End::Completed,
        End::Failed { error: "x".into() },
        End::TimedOut,
        End::Cancelled { reason },
        End::Expired,
        End::WaitTimeout,
        End::Lost,
    ];
    for end in ends {
        let word = state_word(&end);
        assert_eq!(word.parse::<EndState>().unwrap().as_str(), word);
    }
    let error = "done".parse::<EndState>().unwrap_err().to_string();
    assert!(error.starts_with("must be one of completed, failed,"), "{error}");
}
