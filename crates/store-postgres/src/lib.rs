//! A Laneway store on Postgres (15 or newer), which any number of processes share.
//!
//! [`PostgresStore::open`] is the way in. The version is the primary key of the log, and a batch with all that belongs
//! to it is one statement, which is one transaction. No rule of the queue is in there.
//!
//! | question | file |
//! |---|---|
//! | what lies in which table? | `schema.rs`, `migrations/` |
//! | how is it reached, and reached again? | `link.rs`, `address.rs`, `parameters.rs` |
//! | whom does it trust over TLS? | `tls.rs`, `trust.rs` |
//! | how is a batch appended, exactly once? | `append.rs`, `append.sql` |
//! | how is it read, and followed? | `log.rs`, `follow.rs` |
//! | snapshots, trimming | `snapshot.rs` |
//! | finished work | `history.rs` |
//! | what does an error of Postgres mean? | `failure.rs` |
//!
//! # What it promises
//!
//! [`Store::durability`](laneway_store::Store::durability) is `disk` with `fsync` and `synchronous_commit` on, which is
//! how Postgres comes, and `replicated` with synchronous standbys; a failover to such a standby loses nothing.

mod address;
mod append;
mod baton;
mod failure;
mod follow;
mod history;
mod link;
mod log;
mod options;
mod parameters;
mod said;
mod schema;
mod snapshot;
mod store;
mod tls;
mod trust;

pub use options::Options;
pub use store::PostgresStore;
