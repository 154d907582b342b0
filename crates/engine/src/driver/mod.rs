//! The loop that drives the scheduler: take commands, decide them as one batch, store the events, then answer.

mod admission;
mod alarm;
pub(crate) mod batch;
pub(crate) mod clock;
pub(crate) mod effects;
pub(crate) mod engine;
pub(crate) mod faults;
pub(crate) mod ids;
pub(crate) mod in_memory;
pub(crate) mod mailbox;
pub(crate) mod outbox;
pub(crate) mod shutdown;
pub(crate) mod spawner;
mod store_loop;
