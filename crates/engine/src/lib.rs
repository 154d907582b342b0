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
//! | what can a program ask? | `handle.rs`, `teaching.rs`, `views.rs`, `workers.rs`, `tools.rs`, `task.rs`, `sessions.rs`, `message.rs` |
//! | the loop | `engine.rs`, `turn.rs`, `effects.rs`; in memory without a loop: `inline.rs` |
//! | how is something run, and stopped? | `slot.rs`, `handler.rs`, `command.rs`, `direct.rs`, `spot.rs`, `runs.rs`, `stop.rs` |
//! | what if the store fails, or the process did? | `recovery.rs`, `saver.rs` |
//! | how do several engines share one log? | `replica.rs`, `others.rs`, `follow.rs`, `baton.rs`, `rewind.rs`, `putting_back.rs` |
//! | what is to be seen? | `watch.rs`, `positions.rs`, `refusals.rs`, `appends.rs` |
//! | what has been? | `history.rs`, `journal.rs`, `works.rs` |
//! | who reads the clock, throws the dice and starts tasks? | `clock.rs`, `store_clock.rs`, `ids.rs`, `tasks.rs` |

mod appends;
mod baton;
mod call;
mod catch;
mod clock;
mod closing;
mod command;
mod context;
mod direct;
mod effects;
mod engine;
mod error;
mod follow;
mod handle;
mod handler;
mod history;
mod ids;
mod inline;
mod journal;
mod message;
mod options;
mod others;
mod outbox;
#[cfg(feature = "planted")]
pub mod planted;
mod positions;
mod putting_back;
mod reading;
mod recovery;
mod refusals;
mod replica;
mod rewind;
mod runs;
mod saver;
mod sessions;
mod slot;
mod spot;
mod stop;
mod store_clock;
mod submission;
mod taking;
mod task;
mod task_handle;
mod tasks;
mod teaching;
mod tool_lanes;
mod tools;
mod turn;
mod turn_payload;
mod views;
mod voice;
mod watch;
mod workers;
mod works;

pub use appends::Appends;
pub use call::Ending;
pub use clock::{Clock, SteadyClock};
pub use context::Context;
pub use error::{Error, Failure, RunError};
pub use handle::Handle;
pub use history::{Cursor, EndState, HistoryFilter, HistoryPage, TaskRecord, UnknownWord};
pub use laneway_process::{Program, StartError};
pub use message::Message;
pub use options::{Options, UnknownKinds};
pub use refusals::Refusals;
pub use sessions::Heartbeat;
pub use slot::Slot;
pub use stop::{StopSignal, Stopped};
pub use submission::{Standing, Submitted};
pub use task::Task;
pub use task_handle::{OnDrop, TaskHandle};
pub use tasks::Spawn;
pub use tool_lanes::{ToolCalls, ToolLanes};
pub use tools::{ToolResult, ToolUse, Tools};
pub use turn_payload::{SteeringMessage, TurnPayload};
pub use views::LaneSnapshot;
pub use watch::{Filter, Update, Updates};
pub use workers::{Claim, ClaimRequest};
