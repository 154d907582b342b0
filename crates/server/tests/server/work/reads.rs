//! How often the server reads its store while it works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use laneway_core::{BlobId, TaskId};
use laneway_store::{
    Answer, Append, Durability, Head, HistoryQuery, MemoryStore, Retention, Store, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
use serde_json::json;

use crate::common::serve_in;

/// A store that counts its reads. The memory store takes the part of a disk.
struct CountedStore {
    inner: MemoryStore,
    reads: AtomicU64,
}

impl CountedStore {
    fn read_inner(&self) -> &MemoryStore {
        self.reads.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }
}

impl Store for CountedStore {
    fn name(&self) -> &str {
        "counted"
    }

    fn durability(&self) -> Durability {
        Durability::Disk
    }

    fn head(&self) -> Answer<'_, Head> {
        self.inner.head()
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        self.inner.append(append)
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        self.read_inner().read(after)
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        self.inner.tail(after)
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        self.read_inner().snapshot()
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        self.inner.save_snapshot(snapshot)
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        self.inner.trim(through)
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        self.read_inner().blob(id)
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        self.inner.remove_blobs(ids)
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        self.read_inner().finished(task)
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        self.read_inner().history(query)
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        self.inner.trim_history(keep)
    }
}

#[tokio::test]
async fn a_chat_with_its_answer_reads_nothing_from_the_store() {
    let store = Arc::new(CountedStore { inner: MemoryStore::new(), reads: AtomicU64::new(0) });
    let reads = || store.reads.load(Ordering::SeqCst);
    let server = serve_in("", Some(Arc::clone(&store) as Arc<dyn Store>), None).await;
    let opening = reads();
    let mut last = String::new();
    for number in 0..20 {
        let said = format!("number {number}");
        let answer = server.post("/api/agents/echo/chat", json!({ "message": said })).await;
        assert_eq!((answer.status, answer.json()["response"].as_str()), (200, Some(said.as_str())));
        last = answer.header("x-laneway-task-id").to_owned();
    }
    assert_eq!(reads(), opening);
    // Only the store knows a task that has ended.
    assert_eq!(server.get(&format!("/api/tasks/{last}")).await.json()["status"], "completed");
    assert!(reads() > opening);
}
