//! A log that lost its newest batches, after a failover or from a backup. Each replica reports it and re-submits the tasks
//! that it accepted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use common::{block, lane, replica_options as options, until};
use laneway_core::{BlobId, End, Event, MessageEnd, NoteChange, Retry, TaskId};
use laneway_engine::{Context, Failure, Filter, Handle, NewMessage, Task, Update};
use laneway_store::{
    Answer, Append, Durability, Head, HistoryQuery, MemoryStore, Retention, Store, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_lost_log_is_reported_to_subscribers_and_waiting_callers_and_never_forks() {
    let memory = Arc::new(Lossy::default());
    let a = Handle::join(Arc::clone(&memory) as Arc<dyn Store>, options()).await.unwrap();
    a.handler("work", |_: Context, (): ()| std::future::pending::<Result<(), Failure>>()).unwrap();
    // A task that may have run does not run again, unless it has retries.
    let lost = a.submit(Task::new("work").kind("work")).await.unwrap().id();
    let again = a.submit(Task::new("others").kind("work").retry(Retry::STANDARD)).await.unwrap().id();
    let mut updates = a.subscribe(Filter::lane(lane("elsewhere")));
    let waits = tokio::spawn({
        let a = a.clone();
        async move { a.wait_for(lost).await }
    });
    tokio::task::yield_now().await;
    memory.go_back(0).await;
    assert!(a.slot(["work"]).await.is_ok(), "it continues from the rest of the log");
    let Some(Update::LogLost { known, found, lost: reported, restored, ends_restored }) =
        updates.next().await
    else {
        panic!("no report")
    };
    assert_eq!((known, found, reported, restored), (Version(2), Version(0), vec![lost], vec![again]));
    assert_eq!(ends_restored, [lost]);
    assert_eq!(waits.await.unwrap().unwrap().end, End::Lost, "a waiting caller gets the end");
    assert_eq!(a.wait_for(lost).await.unwrap().end, End::Lost, "a later caller gets the end");
}

#[tokio::test(start_paused = true)]
async fn each_replica_resubmits_the_lost_tasks_that_it_accepted() {
    let memory = Arc::new(Lossy::default());
    let store = || Arc::clone(&memory) as Arc<dyn Store>;
    let [a, b] =
        [Handle::join(store(), options()).await.unwrap(), Handle::join(store(), options()).await.unwrap()];
    for lanes in [&a, &b] {
        lanes.handler("work", |_: Context, number: u32| async move { Ok::<_, Failure>(number + 1) }).unwrap();
        lanes
            .handler("talk", |_: Context, _: serde_json::Value| async { Ok::<_, Failure>("hello") })
            .unwrap();
    }
    a.configure(vec![block("work", "max_concurrency=1")]).await.unwrap();
    let held = a.slot(["work"]).await.unwrap();
    let mine = a.submit(Task::new("work").kind("work").payload(1)).await.unwrap();
    let theirs = b.submit(Task::new("work").kind("work").payload(2)).await.unwrap();
    let message = NewMessage::new("ann", "talk", "hello").lane("work").debounce(Duration::ZERO);
    let message = a.send_message(message).await.unwrap().message;
    let waits = tokio::spawn({
        let a = a.clone();
        async move { a.slot(["work"]).await.map(drop) }
    });
    until(&a, "work", 1, 4).await;
    let fence = held.fence();
    let mut updates = a.subscribe(Filter::lane(lane("nowhere")));
    memory.go_back(0).await;
    drop(a.slot(["elsewhere"]).await.unwrap());
    let Some(Update::LogLost { lost, restored, .. }) = updates.next().await else { panic!("no report") };
    assert!(restored.contains(&mine.id()) && restored.len() == 2 && !lost.contains(&mine.id()));
    assert!(
        lost.contains(&theirs.id()) && lost.contains(&held.task()),
        "tasks of the other replica and held slots are lost"
    );
    drop(held);
    let (mine, theirs) = (mine.id(), theirs.id());
    assert_eq!(a.wait_for(mine).await.unwrap().into_result().unwrap(), 2);
    drop(b.slot(["elsewhere"]).await.unwrap());
    assert_eq!(b.wait_for(theirs).await.unwrap().into_result().unwrap(), 3);
    waits.await.unwrap().unwrap();
    assert!(matches!(a.message_ended(message).await, Ok(MessageEnd::Delivered { .. })));
    // The old limit still holds, and fences are new.
    let slot = a.slot(["work"]).await.unwrap();
    assert!(slot.fence() > fence);
    assert!(b.try_slot(["work"]).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn ends_in_the_lost_part_are_reported_again_and_their_tasks_do_not_run_again() {
    let memory = Arc::new(Lossy::default());
    let a = Handle::join(Arc::clone(&memory) as Arc<dyn Store>, options()).await.unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let (go, may_go) = tokio::sync::watch::channel(false);
    a.handler("work", {
        let done = Arc::clone(&done);
        move |_: Context, number: u32| {
            let (done, mut may_go) = (Arc::clone(&done), may_go.clone());
            async move {
                may_go.wait_for(|may| *may).await.unwrap();
                done.lock().unwrap().push(number);
                match number {
                    9 => Err(Failure::fatal("nine")),
                    number => Ok(10 * number),
                }
            }
        }
    })
    .unwrap();
    a.configure(vec![block("work", "max_concurrency=1")]).await.unwrap();
    let task = async |number: u32| {
        let submitted = a.submit(Task::new("work").kind("work").payload(number)).await.unwrap();
        let id = submitted.id();
        submitted.detach();
        id
    };
    // In the rest of the log, the first task runs, the next two wait, and the last is unknown.
    let mut tasks = vec![task(1).await, task(2).await, task(9).await];
    until(&a, "work", 1, 2).await;
    let kept = memory.len();
    go.send_replace(true);
    tasks.push(task(4).await);
    until(&a, "work", 0, 0).await;
    let mut updates = a.subscribe(Filter::lane(lane("nowhere")));
    memory.go_back(kept).await;
    drop(a.slot(["elsewhere"]).await.unwrap());
    let Some(Update::LogLost { lost, restored, ends_restored, .. }) = updates.next().await else {
        panic!("no report")
    };
    let mut sorted = tasks.clone();
    sorted.sort_unstable();
    assert_eq!((lost, restored, ends_restored), (vec![], vec![], sorted));
    until(&a, "work", 0, 0).await;
    let mut ends = Vec::new();
    for task in &tasks {
        ends.push(a.wait_for(*task).await.unwrap().into_result().ok());
    }
    assert_eq!(ends, [Some(json!(10)), Some(json!(20)), None, Some(json!(40))]);
    assert_eq!(*done.lock().unwrap(), [1, 2, 9, 4], "each task ran once");
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_of_a_retried_task_is_reported_again() {
    let memory = Arc::new(Lossy::default());
    let a = Handle::join(Arc::clone(&memory) as Arc<dyn Store>, options()).await.unwrap();
    let tries = |context: Context, (): ()| async move {
        match context.attempt() {
            1 => Err(Failure::new("not yet")),
            attempt => Ok(attempt),
        }
    };
    a.handler("work", tries).unwrap();
    let kept = memory.len();
    let task = a.submit(Task::new("work").kind("work").retry(Retry::STANDARD)).await.unwrap();
    let id = task.id();
    assert_eq!(task.wait().await.unwrap(), 2);
    let mut updates = a.subscribe(Filter::task(id));
    memory.go_back(kept).await;
    drop(a.slot(["elsewhere"]).await.unwrap());
    until(&a, "work", 0, 0).await;
    assert_eq!(a.wait_for(id).await.unwrap().into_result().unwrap(), 2);
    a.shutdown(Duration::ZERO).await;
    let mut ends = Vec::new();
    while let Some(update) = updates.next().await {
        if let Update::Event { event, .. } = update
            && let Event::Ended { end, .. } = &*event
        {
            ends.push(end.clone());
        }
    }
    assert_eq!(ends, [End::Completed]);
}

#[tokio::test(start_paused = true)]
async fn lost_settings_are_set_again_without_replacing_newer_ones() {
    let memory = Arc::new(Lossy::default());
    let store = || Arc::clone(&memory) as Arc<dyn Store>;
    let [a, b] =
        [Handle::join(store(), options()).await.unwrap(), Handle::join(store(), options()).await.unwrap()];
    // The number of slots in a lane.
    let limit = async |lanes: &Handle, name: &str| {
        let mut slots = Vec::new();
        while let Ok(slot) = lanes.try_slot([name]).await {
            slots.push(slot);
        }
        slots.len()
    };
    let blocks = |limit: u32| ["one", "two"].map(|name| block(name, &format!("max_concurrency={limit}")));
    a.configure(blocks(1).to_vec()).await.unwrap();
    let kept = memory.len();
    let [one, two] = blocks(2);
    a.configure(vec![one]).await.unwrap();
    b.configure(vec![two]).await.unwrap();
    memory.go_back(kept).await;
    // The first replica to notice knows both settings, but sets only its own again.
    drop(a.slot(["one"]).await.unwrap());
    assert_eq!((limit(&a, "one").await, limit(&a, "two").await), (2, 1));
    drop(b.slot(["two"]).await.unwrap());
    assert_eq!((limit(&b, "one").await, limit(&b, "two").await), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_replica_sets_lost_notes_again() {
    let memory = Arc::new(Lossy::default());
    let store = || Arc::clone(&memory) as Arc<dyn Store>;
    let [a, b] =
        [Handle::join(store(), options()).await.unwrap(), Handle::join(store(), options()).await.unwrap()];
    let note = async |lanes: &Handle, key: &str, text: &str| {
        let changes = vec![(key.into(), Some(text.into()))];
        lanes.note(NoteChange { expected: vec![], changes }).await.unwrap();
    };
    note(&a, "k", "1").await;
    let kept = memory.len();
    note(&a, "k", "2").await;
    note(&b, "l", "3").await;
    memory.go_back(kept).await;
    drop(a.slot(["one"]).await.unwrap());
    drop(b.slot(["two"]).await.unwrap());
    let pair = |key: &str, text: &str| (Arc::from(key), Arc::from(text));
    assert_eq!(b.notes("").await.unwrap(), [pair("k", "2"), pair("l", "3")]);
}

/// A store that can lose its newest batches, or all of them, like a backend without a disk.
#[derive(Default)]
struct Lossy {
    store: Mutex<MemoryStore>,
    appended: Mutex<Vec<Append>>,
}

impl Lossy {
    /// The number of batches in the log.
    fn len(&self) -> usize {
        self.appended.lock().unwrap().len()
    }

    /// Loses all batches after the first `kept`.
    async fn go_back(&self, kept: usize) {
        let older = MemoryStore::new();
        let first = self.appended.lock().unwrap()[..kept].to_vec();
        for append in first {
            older.append(append).await.unwrap();
        }
        self.appended.lock().unwrap().truncate(kept);
        *self.store.lock().unwrap() = older;
    }

    fn now(&self) -> MemoryStore {
        self.store.lock().unwrap().clone()
    }
}

/// Forwards a call to the current store.
macro_rules! pass {
    ($self:ident, $store:ident => $answer:expr) => {{
        let $store = $self.now();
        Box::pin(async move { $answer.await })
    }};
}

impl Store for Lossy {
    fn name(&self) -> &str {
        "lossy"
    }
    fn durability(&self) -> Durability {
        Durability::Memory
    }
    fn head(&self) -> Answer<'_, Head> {
        pass!(self, store => store.head())
    }
    fn append(&self, append: Append) -> Answer<'_, Head> {
        let store = self.now();
        Box::pin(async move {
            let head = store.append(append.clone()).await?;
            self.appended.lock().unwrap().push(append);
            Ok(head)
        })
    }
    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        pass!(self, store => store.read(after))
    }
    fn tail(&self, after: Version) -> Answer<'_, Version> {
        pass!(self, store => store.tail(after))
    }
    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        pass!(self, store => store.snapshot())
    }
    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        pass!(self, store => store.save_snapshot(snapshot))
    }
    fn trim(&self, through: Version) -> Answer<'_, ()> {
        pass!(self, store => store.trim(through))
    }
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        pass!(self, store => store.blob(id))
    }
    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        pass!(self, store => store.remove_blobs(ids))
    }
    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        pass!(self, store => store.finished(task))
    }
    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        pass!(self, store => store.history(asked))
    }
    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        pass!(self, store => store.trim_history(keep))
    }
}
