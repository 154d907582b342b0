//! Where Laneway keeps what happened.
//!
//! > Commit the events, then tell the world.
//!
//! [`Store`] is what a backend (a file, Redis, Postgres) has to do: a log with append-if-unchanged, a snapshot,
//! payloads, and a history of finished tasks. [`Log`] works on any store, in terms of events: it encodes, it checks
//! every byte that comes back, and it brings a [`Scheduler`](laneway_core::Scheduler) up to date.
//!
//! ```
//! # use std::sync::Arc;
//! # use laneway_core::Timestamp;
//! # use laneway_store::{Batch, BatchId, Entry, Head, Log, MemoryStore};
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let log = Log::new(Arc::new(MemoryStore::new()));
//! let batch = Batch { id: BatchId(1), at: Timestamp(0), events: vec![] };
//! let head = log.append(Head::EMPTY, &Entry::of(batch)).await?;
//! assert_eq!(log.read(Head::EMPTY).await?.len(), 1);
//! // An append that expects an empty log is refused now.
//! let late = Batch { id: BatchId(2), at: Timestamp(0), events: vec![] };
//! assert!(log.append(Head::EMPTY, &Entry::of(late)).await.is_err());
//! assert_eq!(log.store().head().await?, head);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copy;
mod error;
mod frame;
mod log;
mod memory;
mod record;
mod store;
mod types;

#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "testing")]
pub mod testing;

pub use copy::{Copied, CopyError, copy};
pub use error::{Damage, ErrorKind, StoreError};
pub use frame::Record;
pub use log::{Entry, Log};
pub use memory::MemoryStore;
pub use record::{
    BATCH_FORMAT, Batch, FINISHED_FORMAT, Finished, OLDEST_FORMAT, PAYLOAD_FORMAT, RESULT_FORMAT,
    SNAPSHOT_FORMAT, Try, decode_tries, encode_tries, is_next, label, state_word, tries_blob,
};
pub use store::{Answer, PUBLISHED_BYTES_MAX, READ_BATCHES_MAX, READ_BYTES_MAX, Store, UNREAD_MAX};
pub use types::{
    Append, Author, BatchId, Durability, Head, HistoryPosition, HistoryQuery, Retention, StoredBatch,
    StoredFinished, StoredSnapshot, Version,
};
