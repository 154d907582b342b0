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

mod driver;
mod error;
mod events;
mod handle;
mod journal;
mod options;
mod replica;
mod runs;

pub use driver::clock::{Clock, SteadyClock};
pub use driver::faults::Faults;
pub use driver::mailbox::Ending;
pub use driver::spawner::Spawn;
pub use error::{Error, Failure, RunError};
pub use events::groups::GroupCounts;
pub use events::hub::{Expectation, Hub, Observer};
pub use events::refusals::Refusals;
pub use events::subscription::{Feed, Filter, Reach, Since, Subscription};
pub use events::update::{HubEvent, Update};
pub use handle::Handle;
pub use handle::history::{Cursor, EndState, HistoryFilter, HistoryPage, TaskRecord, UnknownWord};
pub use handle::lanes::LaneSnapshot;
pub use handle::message::Message;
pub use handle::sessions::Heartbeat;
pub use handle::submission::{Standing, Submitted};
pub use handle::task::Task;
pub use handle::task_handle::{OnDrop, TaskHandle};
pub use handle::workers::{Claim, ClaimRequest};
pub use laneway_process::{Program, StartError};
pub use options::{Options, UnknownKinds};
pub use replica::append_counts::Appends;
pub use runs::context::Context;
pub use runs::slot::Slot;
pub use runs::stop::{StopSignal, Stopped};
pub use runs::tool_lanes::{ToolCalls, ToolLanes};
pub use runs::tools::{ToolResult, ToolUse, Tools};
pub use runs::turn_payload::{SteeringMessage, TurnPayload};
