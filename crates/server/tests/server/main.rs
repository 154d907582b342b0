//! The server as its clients see it: through real sockets, one server for each test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, missing_docs)]

mod admission;
mod bounds;
mod common;
mod events;
mod fixtures;
mod keys;
mod leaving;
mod lists;
mod mcp;
mod operating;
mod ownership;
mod programs;
mod replicas;
mod requests;
mod schedules;
mod security;
mod sessions;
mod stopping;
mod traces;
mod upstreams;
mod workers;
