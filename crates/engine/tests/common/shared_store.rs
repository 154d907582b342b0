//! A memory store that reports itself as shared.

use laneway_store::{Answer, HistoryQuery, MemoryStore, Store};

/// A store that reports itself as shared.
pub struct Shared(pub MemoryStore);

impl Store for Shared {
    fn name(&self) -> &str {
        "shared"
    }
    fn is_shared(&self) -> bool {
        true
    }
    fn durability(&self) -> laneway_store::Durability {
        self.0.durability()
    }
    fn head(&self) -> Answer<'_, laneway_store::Head> {
        self.0.head()
    }
    fn append(&self, append: laneway_store::Append) -> Answer<'_, laneway_store::Head> {
        self.0.append(append)
    }
    fn read(&self, after: laneway_store::Version) -> Answer<'_, Vec<laneway_store::StoredBatch>> {
        self.0.read(after)
    }
    fn tail(&self, after: laneway_store::Version) -> Answer<'_, laneway_store::Version> {
        self.0.tail(after)
    }
    fn snapshot(&self) -> Answer<'_, Option<laneway_store::StoredSnapshot>> {
        self.0.snapshot()
    }
    fn save_snapshot(&self, snapshot: laneway_store::StoredSnapshot) -> Answer<'_, ()> {
        self.0.save_snapshot(snapshot)
    }
    fn trim(&self, through: laneway_store::Version) -> Answer<'_, ()> {
        self.0.trim(through)
    }
    fn blob(&self, id: laneway_core::BlobId) -> Answer<'_, Option<bytes::Bytes>> {
        self.0.blob(id)
    }
    fn remove_blobs(&self, ids: Vec<laneway_core::BlobId>) -> Answer<'_, ()> {
        self.0.remove_blobs(ids)
    }
    fn finished(&self, task: laneway_core::TaskId) -> Answer<'_, Option<laneway_store::StoredFinished>> {
        self.0.finished(task)
    }
    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<laneway_store::StoredFinished>> {
        self.0.history(asked)
    }
    fn trim_history(&self, keep: laneway_store::Retention) -> Answer<'_, u64> {
        self.0.trim_history(keep)
    }
}
