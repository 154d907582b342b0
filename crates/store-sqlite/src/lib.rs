//! A Laneway store in one directory: SQLite, flushed to disk at every append.
//!
//! [`SqliteStore::open`] is the way in. The directory belongs to one process at a time.
//!
//! | question | file |
//! |---|---|
//! | how is it opened, and made the first time? | `open.rs`, `lock.rs`, `wal.rs` |
//! | what lies where? | `schema.rs` |
//! | how is something written? | `writer.rs`, `change.rs` |
//! | how is something read? | `readers.rs`, `query.rs` |
//! | what does an error of SQLite mean? | `error.rs` |

mod change;
mod error;
mod lock;
mod open;
mod query;
mod readers;
mod schema;
mod store;
mod wal;
mod writer;

pub use open::Options;
pub use store::SqliteStore;
