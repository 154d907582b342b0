//! The store in memory does what every store must do.

use std::sync::Arc;

use laneway_store::conformance::{Site, run};
use laneway_store::{Answer, MemoryStore, Record, Store};

struct Memory(MemoryStore);

impl Site for Memory {
    fn has_append_turn(&self) -> bool {
        true
    }

    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        let store: Arc<dyn Store> = Arc::new(self.0.clone());
        Box::pin(async { Ok(store) })
    }

    fn tamper(&self, record: Record, change: &(dyn Fn(&mut Vec<u8>) + Sync)) -> bool {
        self.0.tamper(record, &|bytes| change(bytes))
    }
}

#[tokio::test]
async fn memory_conforms() {
    run(|| Memory(MemoryStore::new())).await;
}
