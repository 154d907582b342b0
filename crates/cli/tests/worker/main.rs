//! `laneway worker` and the client with real processes, real kills and a real server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod away;
mod calls;
mod chaos;
mod common;
mod ending;
mod guide;
mod injection;
mod own_handlers;
mod talking;
