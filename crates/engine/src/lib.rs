//! Runs the work of Laneway.
//!
//! > Commit the events, then tell the world.
//!
//! [`Handle`] is the way in. Behind it the engine takes a batch of commands, has the
//! [`Scheduler`](laneway_core::Scheduler) decide them at one time, stores the events, and only then answers callers and
//! starts attempts. It decides nothing itself: every rule of the queue is in `laneway-core`.
//!
//! | question | folder |
//! |---|---|
//! | what can a program ask? | `handle/` |
//! | how are commands decided, with a store and without? | `driver/` |
//! | how does an attempt run, and stop? | `runs/` |
//! | how are events stored, and recovered after a failure? | `journal/` |
//! | how do several engines share one log? | `replica/` |
//! | who hears of events and positions? | `events/` |

mod driver;
mod error;
mod events;
mod handle;
mod journal;
mod options;
mod replica;
mod runs;

pub use driver::clock::{Clock, SteadyClock};
#[doc(hidden)]
pub use driver::faults::Faults;
pub use driver::mailbox::Ending;
pub use driver::spawner::Spawn;
pub use error::{Error, Failure, RunError};
pub use events::groups::GroupCounts;
pub use events::hub::{Expectation, Hub, Observer};
pub use events::subscription::{Feed, Filter, Reach, Since, Subscription};
pub use events::update::{HubEvent, Update};
pub use handle::Handle;
pub use handle::history::{Cursor, EndState, HistoryFilter, HistoryPage, TaskRecord, UnknownWord};
pub use handle::lanes::LaneSnapshot;
pub use handle::message::NewMessage;
pub use handle::sessions::{Heartbeat, HeartbeatReport};
pub use handle::submission::{Standing, Submitted};
pub use handle::task::Task;
pub use handle::task_handle::{OnDrop, TaskHandle};
pub use handle::workers::{Claim, ClaimRequest};
pub use laneway_process::{Program, StartError};
pub use options::{Options, SettingsOf, UnknownKinds};
pub use replica::append_counts::{AppendTimes, Appends, OwnStats};
pub use runs::context::Context;
pub use runs::slot::Slot;
pub use runs::stop::{StopSignal, Stopped};
pub use runs::tool_lanes::{ToolCalls, ToolLanes};
pub use runs::tools::{ToolRefusal, ToolResult, ToolUse, Tools};
pub use runs::turn_payload::{SteeringMessage, TurnPayload};
