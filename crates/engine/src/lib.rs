//! Runs the work of Laneway.
//!
//! > Commit the events, then tell the world.
//!
//! [`Handle`] is the way in. Behind it one loop owns the [`Scheduler`](laneway_core::Scheduler): it takes a batch of
//! commands, decides them all at one time, keeps the events, and only then answers, starts runs and tells
//! watchers. It decides nothing itself: every rule of the queue is in `laneway-core`.
//!
//! | question | file |
//! |---|---|
//! | what can a program ask? | `handle.rs`, `views.rs`, `workers.rs`, `tools.rs`, `task.rs` |
//! | the loop | `engine.rs`, `turn.rs`, `effects.rs`; in memory without a loop: `inline.rs` |
//! | how is something run, and stopped? | `slot.rs`, `handler.rs`, `runs.rs`, `stop.rs` |
//! | what if the store fails, or the process did? | `recovery.rs`, `saver.rs` |
//! | who reads the clock? | `clock.rs` |

mod call;
mod catch;
mod clock;
mod context;
mod direct;
mod effects;
mod engine;
mod error;
mod handle;
mod handler;
mod ids;
mod inline;
mod journal;
mod options;
mod outbox;
mod recovery;
mod runs;
mod saver;
mod slot;
mod stop;
mod task;
mod task_handle;
mod tools;
mod turn;
mod views;
mod watch;
mod workers;

pub use call::Ending;
pub use clock::{Clock, SteadyClock};
pub use context::Context;
pub use error::{Error, Failure, RunError};
pub use handle::Handle;
pub use options::Options;
pub use slot::Slot;
pub use stop::{StopSignal, Stopped};
pub use task::Task;
pub use task_handle::{OnDrop, TaskHandle};
pub use tools::{ToolResult, ToolUse, Tools};
pub use views::LaneSnapshot;
pub use watch::{Filter, Update, Updates};
pub use workers::{Claim, ClaimRequest};
