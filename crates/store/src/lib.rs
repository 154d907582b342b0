//! Where Laneway keeps what happened.
//!
//! > Commit the events, then tell the world.
//!
//! [`Store`] is what an engine (a file, Redis, Postgres) has to do: a log with append-if-unchanged, a snapshot,
//! blobs, and a list of finished work. It moves bytes and knows no rule of the queue. [`Log`] stands on any
//! store and speaks in events: it encodes, it checks every byte that comes back, and it brings a
//! [`Scheduler`](laneway_core::Scheduler) up to date.
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
//! // Whoever still believes that the log is empty is told, and nothing is written.
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
    BATCH_FORMAT, Batch, FINISHED_FORMAT, Finished, PAYLOAD_FORMAT, RESULT_FORMAT, SNAPSHOT_FORMAT, Try,
    decode_tries, encode_tries, is_next, label, state_word, tries_blob,
};
pub use store::{
    Answer, Append, Author, BatchId, Durability, Head, HistoryQuery, Place, READ_BATCHES_MAX, READ_BYTES_MAX,
    Retention, Store, StoredBatch, StoredFinished, StoredSnapshot, Version, WORDS_BYTES_MAX,
};
