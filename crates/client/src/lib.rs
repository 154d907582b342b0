//! A client of the Laneway server, with the types that the server itself uses, and the loop of a worker.
//!
//! | question | file |
//! |---|---|
//! | where is the server, and how is it asked? | `client.rs`, `call.rs` |
//! | what can go wrong, and what does that mean? | `error.rs` |
//! | when is a call repeated by itself? | `patience.rs` |
//! | following events | `events.rs` |
//! | doing work: the loop, an attempt, its lease, its outcome | `worker.rs`, `crew.rs`, `attempt.rs`, `attempting.rs`, `lease.rs`, `outcome.rs` |
//! | asking an agent | `agents.rs` |
//! | tasks, groups, batches, slots | `tasks.rs` |
//! | claims, signs of life, outcomes | `claims.rs` |
//! | dead letters | `letters.rs` |
//! | lanes, status, charts | `lanes.rs` |
//! | sessions and their messages | `sessions.rs` |
//! | schedules, tokens, audit, configuration | `operations.rs` |
//!
//! ```no_run
//! # async fn sample() -> Result<(), laneway_client::Error> {
//! let client = laneway_client::Client::new("http://127.0.0.1:7717", None)?;
//! println!("{}", client.status().await?.line);
//! # Ok(())
//! # }
//! ```

mod agents;
mod attempt;
mod attempting;
mod call;
mod claims;
mod client;
mod crew;
mod error;
mod events;
mod lanes;
mod lease;
mod letters;
mod operations;
mod outcome;
mod patience;
mod sessions;
mod tasks;
mod worker;

pub use laneway_protocol as protocol;

pub use agents::{Form, Manner};
pub use attempt::{Attempt, Failure, StopReason};
pub use call::Call;
pub use client::Client;
pub use error::Error;
pub use events::{Events, Watch};
pub use lanes::ChartQuery;
pub use patience::Patience;
pub use reqwest::Method;
pub use tasks::TasksQuery;
pub use worker::{Tally, Worker};
