//! The server as its clients see it: through real sockets, one server for each test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, missing_docs)]

mod access;
mod common;
mod events;
mod fixtures;
mod leaving;
mod mcp;
mod running;
mod sessions;
mod work;
