//! A queue that moves from one store to another.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

use std::future::poll_fn;
use std::num::NonZeroU128;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use laneway_core::{BlobId, Command, End, LaneName, Name, Scheduler, Source, TaskId, TaskSpec, Timestamp};
use laneway_store::testing::{Fault, FaultyStore};
use laneway_store::{
    Batch, BatchId, CopyError, Entry, Finished, Head, HistoryQuery, Log, MemoryStore, Store, copy,
};

/// More than one batch of a copy holds.
const TASKS: u128 = 700;

fn blob(number: u128) -> BlobId {
    BlobId(NonZeroU128::new(number + 1).unwrap())
}

fn finished(number: u128) -> Finished {
    Finished {
        task: TaskId(1_000_000 + number),
        kind: Name::new("turn").unwrap(),
        lanes: vec![LaneName::main()],
        source: Source::User,
        priority: 2,
        group: None,
        parent: None,
        worker: None,
        submitted: Timestamp(1),
        started: None,
        ended: Timestamp(2),
        attempts: 1,
        end: End::Completed,
        tries: Vec::new(),
        caller: None,
        trace: None,
        label: None,
        payload: None,
    }
}

/// A store in which tasks wait and others are over.
async fn full() -> Log {
    let log = Log::new(Arc::new(MemoryStore::new()));
    let mut scheduler = Scheduler::new(0);
    let mut head = Head::EMPTY;
    for number in 0..TASKS {
        let session = LaneName::session(&format!("s{}", number % 10)).unwrap();
        let mut spec = TaskSpec::new(Name::new("turn").unwrap(), vec![session]);
        spec.payload = Some(blob(number));
        let mut events = Vec::new();
        let submit = Command::Submit { task: TaskId(number + 1), spec: Box::new(spec) };
        scheduler.step(Timestamp(5), submit, &mut events).unwrap();
        let payload = Bytes::from(format!("payload {number}"));
        let result = Some(Bytes::from(format!("result {number}")));
        let entry = Entry {
            batch: Batch { id: BatchId(77 + number), at: Timestamp(5), events },
            payloads: vec![(blob(number), payload)],
            dropped: Vec::new(),
            finished: vec![(finished(number), result)],
        };
        head = log.append(head, &entry).await.unwrap();
    }
    log
}

async fn assert_same(from: &Log, to: &Log) {
    let (_, before) = from.restore(0).await.unwrap();
    let (_, after) = to.restore(0).await.unwrap();
    assert_eq!(before.snapshot(), after.snapshot());
    assert_eq!(before.live_tasks() as u128, TASKS);
    for task in before.tasks() {
        let id = task.payload.unwrap();
        assert_eq!(from.payload(id).await.unwrap(), to.payload(id).await.unwrap());
    }
    let all = HistoryQuery { max: 10_000, ..HistoryQuery::default() };
    let order = |list: Vec<(_, Finished)>| list.into_iter().map(|(_, finished)| finished).collect::<Vec<_>>();
    let (old, new) = (from.history(all.clone()).await.unwrap(), to.history(all).await.unwrap());
    let last = old.last().unwrap().1.task;
    assert_eq!(order(old), order(new));
    assert_eq!(from.finished(last).await.unwrap(), to.finished(last).await.unwrap());
}

#[tokio::test]
async fn tasks_payloads_and_history_are_all_there_in_their_order() {
    let (from, to) = (full().await, Log::new(Arc::new(MemoryStore::new())));
    let mut told = (0, 0);
    let copied = copy(&from, &to, |done, total| told = (done, total)).await.unwrap();
    assert_eq!((copied.payloads, copied.finished, told.0), (copied.tasks, copied.tasks, told.1));
    assert_same(&from, &to).await;
}

#[tokio::test]
async fn a_copy_that_was_interrupted_goes_on_where_it_was() {
    let from = full().await;
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let to = Log::new(Arc::clone(&store) as Arc<dyn Store>);
    // The answer to the first batch is lost; in the second try there is no room for the second batch.
    for fault in [Fault::ReplyLost, Fault::DiskFull] {
        store.plan(fault);
        assert!(matches!(copy(&from, &to, |_, _| ()).await, Err(CopyError::Store(_))));
        assert_eq!(to.restore(0).await.unwrap().1.live_tasks(), 0, "half of it is nothing");
    }
    copy(&from, &to, |_, _| ()).await.unwrap();
    assert_same(&from, &to).await;
}

#[tokio::test]
async fn what_is_there_is_never_overwritten() {
    let (from, to) = (full().await, full().await);
    let before = to.store().head().await.unwrap();
    let refused = copy(&from, &to, |_, _| ()).await.unwrap_err();
    assert!(refused.to_string().contains("only an empty store is filled"), "{refused}");
    assert_eq!(to.store().head().await.unwrap(), before);

    // Not even a whole copy of the same.
    let to = Log::new(Arc::new(MemoryStore::new()));
    copy(&from, &to, |_, _| ()).await.unwrap();
    assert!(matches!(copy(&from, &to, |_, _| ()).await, Err(CopyError::NotEmpty { .. })));
    let empty = Log::new(Arc::new(MemoryStore::new()));
    assert!(matches!(copy(&empty, &empty, |_, _| ()).await, Err(CopyError::Nothing { .. })));
}

#[tokio::test]
async fn a_payload_that_is_lost_and_a_store_in_use_are_told() {
    let from = full().await;
    from.store().remove_blobs(vec![blob(3)]).await.unwrap();
    let to = Log::new(Arc::new(MemoryStore::new()));
    let refused = copy(&from, &to, |_, _| ()).await.unwrap_err();
    assert!(matches!(refused, CopyError::Missing { .. }), "{refused}");
    assert_eq!(to.restore(0).await.unwrap().1.live_tasks(), 0);

    // Another author appends during the copy.
    let from = full().await;
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    store.plan(Fault::Slow);
    let to = Log::new(Arc::clone(&store) as Arc<dyn Store>);
    let mut copying = pin!(copy(&from, &to, |_, _| ()));
    let is_waiting = poll_fn(|context| Poll::Ready(copying.as_mut().poll(context).is_pending())).await;
    assert!(is_waiting);
    let head = from.store().head().await.unwrap();
    let other = Batch { id: BatchId(1), at: Timestamp(6), events: Vec::new() };
    from.append(head, &Entry::of(other)).await.unwrap();
    store.go_on();
    let refused = copying.await.unwrap_err();
    assert!(matches!(refused, CopyError::Moved { .. }), "{refused}");
    assert_eq!(to.restore(0).await.unwrap().1.live_tasks(), 0);
}
