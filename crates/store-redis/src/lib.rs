//! A Laneway store on Redis (7 or newer) or Valkey, which any number of replicas share.
//!
//! [`RedisStore::open`](laneway_store_remote::RemoteStore::open) takes an address like
//! `redis://user:password@host:6379/0`. The log is a stream whose entry ids are the versions; one short script appends to
//! it if it still ends where the caller expects. The scripts contain no rule of the queue.
//!
//! | question | file |
//! |---|---|
//! | what is stored under which key? | `keys.rs` |
//! | how is Redis reached, and which Redis is refused? | `connect.rs`, `address.rs`, `check.rs` |
//! | which machines may have the log, in a cluster or behind Sentinels? | `nodes.rs` |
//! | how is a batch appended, exactly once? | `append.rs`, `append.lua` |
//! | what is sent for each method of a store? | `backend.rs`, `log.rs` |
//! | snapshots, trimming | `snapshot.rs`, `snapshot.lua` |
//! | finished tasks | `history.rs` |
//! | what does an error of Redis mean? | `error.rs` |
//!
//! # Durability
//!
//! An acknowledged write is in the memory of Redis, and on disk or on a second machine as Redis is configured:
//! [`Store::durability`](laneway_store::Store::durability) is `disk` only with `appendonly yes` and `appendfsync always`,
//! and `replicated` only with [`Options::replicas`]. Redis replicates asynchronously, so a failover can lose the last
//! writes. The log's end names its last batch, so a replica that has applied a lost one notices.

mod address;
mod append;
mod backend;
mod check;
mod connect;
mod error;
mod history;
mod keys;
mod log;
mod nodes;
mod options;
mod script;
mod snapshot;

pub use backend::Redis;
pub use options::Options;

/// A log in a Redis that any number of replicas share.
pub type RedisStore = laneway_store_remote::RemoteStore<Redis>;
