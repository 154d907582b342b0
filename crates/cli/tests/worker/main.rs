//! `laneway worker` and the client as people run them: real processes, real kills, a real server.
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
