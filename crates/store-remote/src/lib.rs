//! What the stores on Redis and Postgres share: reaching a backend over a network, reading and following its log.
//!
//! | question | file |
//! |---|---|
//! | what does a backend have to do? | `backend.rs` |
//! | how does it become a [`Store`](laneway_store::Store)? | `store.rs` |
//! | how is a connection made, and made again? | `link.rs` |
//! | how is the log read, and followed? | `read.rs`, `follow.rs`, `recent.rs` |
//! | what may an address contain? | `address.rs` |
//! | when must an operator repair something? | `warn.rs` |

mod address;
mod backend;
mod follow;
mod link;
mod read;
mod recent;
mod store;
mod warn;

pub use address::{Identity, TlsFiles, escape, take_parameters};
pub use backend::{Backend, LogPage};
pub use link::{Connect, Link, Verdict};
pub use read::PAGE_BATCHES;
pub use recent::Recent;
pub use store::RemoteStore;
