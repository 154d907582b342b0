//! A Laneway store on Redis (7 or newer) or Valkey, which any number of processes share.
//!
//! [`RedisStore::open`] is the way in. The log is a stream whose entry ids are the versions; one short script appends
//! to it if it still ends where the caller believes. No rule of the queue is in there.
//!
//! | question | file |
//! |---|---|
//! | what lies under which key? | `keys.rs` |
//! | how is it reached, and reached again? what may it not be? | `link.rs`, `address.rs`, `tls.rs`, `fit.rs` |
//! | how is a batch appended, exactly once? | `append.rs`, `append.lua` |
//! | how is it read, and followed? | `log.rs`, `follow.rs`, `recent.rs` |
//! | snapshots, trimming | `snapshot.rs`, `snapshot.lua` |
//! | finished work | `history.rs` |
//! | what does an error of Redis mean? | `failure.rs` |
//!
//! # What it promises
//!
//! What Redis has acknowledged is in Redis's memory, and on disk or on a second machine as Redis is configured:
//! [`Store::durability`](laneway_store::Store::durability) says `disk` only with `appendonly yes` and
//! `appendfsync always`, and `replicated` only with [`Options::replicas`]. Redis replicates asynchronously: a failover
//! can lose the last writes. The log's end names its last batch, so whoever stood on a lost one is told.

mod address;
mod append;
mod failure;
mod fit;
mod follow;
mod history;
mod keys;
mod link;
mod log;
mod options;
mod recent;
mod said;
mod snapshot;
mod store;
mod tls;

pub use options::Options;
pub use store::RedisStore;
