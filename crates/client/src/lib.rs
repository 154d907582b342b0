//! A client of the Laneway server, with the server's own types, and the loop of a worker.
//!
//! | question | file |
//! |---|---|
//! | how is the server reached and called? | `client.rs`, `api_call.rs` |
//! | what can go wrong, and what does that mean? | `error.rs` |
//! | when is a call repeated by itself? | `retry.rs` |
//! | which running task sends a request? | `running.rs` |
//! | following events | `events.rs` |
//! | a call of the API | `api/`, one file for each resource |
//! | running tasks: the worker, its attempts, their leases and reports | `worker/` |
//!
//! ```no_run
//! # async fn sample() -> Result<(), laneway_client::Error> {
//! let client = laneway_client::Client::new("http://127.0.0.1:7717", None)?;
//! println!("{}", client.status().await?.line);
//! # Ok(())
//! # }
//! ```

mod api;
mod api_call;
mod client;
mod error;
mod events;
mod retry;
mod running;
mod worker;

pub use laneway_protocol as protocol;

pub use api::{AskKind, AskOptions, ChartQuery, TasksQuery};
pub use api_call::ApiCall;
pub use client::Client;
pub use error::Error;
pub use events::{Events, Watch};
pub use reqwest::Method;
pub use retry::RetryPolicy;
pub use worker::{Attempt, AttemptFailure, StopCause, Tally, Worker};
