//! A Laneway store on Postgres (15 or newer), which any number of replicas share.
//!
//! [`PostgresStore::open`](laneway_store_remote::RemoteStore::open) takes an address like
//! `postgres://user:password@host:5432/database`, and makes or migrates its tables. The version is the primary key of the
//! log, and a batch with everything that belongs to it is one statement, which is one transaction. No statement contains a
//! rule of the queue.
//!
//! A store uses up to four connections: for appends, for reads, for snapshots, for following the log. Each
//! [subscriber](laneway_store::Store::subscribe) uses another.
//!
//! | question | file |
//! |---|---|
//! | what is stored in which table? | `schema.rs`, `migrations/` |
//! | how is Postgres reached? | `connect.rs`, `address.rs` |
//! | what is different behind a pooler such as PgBouncer? | `pooler.rs`, `parameter.rs` |
//! | which certificates does it trust? | `tls.rs`, `verifier.rs` |
//! | how is a batch appended, exactly once? | `append.rs`, `append.sql` |
//! | which statement belongs to each method of a store? | `backend.rs` |
//! | snapshots, trimming | `snapshot.rs` |
//! | finished tasks | `history.rs` |
//! | what does an error of Postgres mean? | `error.rs` |
//!
//! # Durability
//!
//! [`Store::durability`](laneway_store::Store::durability) is `disk` with `fsync` and `synchronous_commit` on, which are
//! the defaults of Postgres, and `replicated` with synchronous standbys. A failover to such a standby loses nothing.

mod address;
mod append;
mod author;
mod backend;
mod connect;
mod error;
mod history;
mod options;
mod parameter;
mod pooler;
mod schema;
mod snapshot;
mod tls;
mod verifier;

pub use backend::Postgres;
pub use options::Options;

/// A log in a Postgres that any number of replicas share.
pub type PostgresStore = laneway_store_remote::RemoteStore<Postgres>;
