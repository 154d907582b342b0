//! The pure scheduler of Laneway.
//!
//! > `step(state, now, command) -> events`. State changes only by `apply(event)`.
//!
//! [`Scheduler`] is the whole of it: start there. It holds no clock, no randomness, no I/O and no async; time
//! and seeds are arguments. Everything around it (stores, servers, workers) turns something into a
//! [`Command`] or an [`Event`] into something.
//!
//! ```
//! use laneway_core::{Command, Event, LaneName, Name, Scheduler, TaskId, TaskSpec, Timestamp};
//!
//! let mut lanes = Scheduler::new(0);
//! let mut events = Vec::new();
//! for number in 1..=5 {
//!     let spec = TaskSpec::new(Name::new("chat")?, vec![LaneName::new("main")?]);
//!     lanes.step(Timestamp(0), Command::Submit { task: TaskId(number), spec: Box::new(spec) }, &mut events)?;
//! }
//! // `main` has four slots: the fifth task waits.
//! let granted = events.iter().filter(|event| matches!(event, Event::Granted { .. })).count();
//! assert_eq!((granted, lanes.position(TaskId(5))), (4, Some(1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api;
mod apply;
mod decide;
mod invariants;
mod query;
mod scheduler;
mod sessions;
mod state;
mod step;

pub use api::backoff::Backoff;
pub use api::command::{Command, Outcome, Reply, Selector, ToolBatch, ToolCall, ToolLane};
pub use api::event::{AlertLevel, CancelReason, DeadLetterRemoval, End, Event, LaneChange, StopReason};
pub use api::held_settings::{HeldSettings, SettingsChange};
pub use api::ids::{BlobId, Fence, TaskId};
pub use api::lane_settings::{
    Ageing, Block, Boost, BoostStrategy, COUNT_MAX, Handler, LEVEL_MAX, LaneSettings, Order, PRIORITY_MAX,
    Period, Priorities, RateLimit, STOP_GRACE, Settings, Source, Switch, WEIGHT_MAX,
};
pub use api::name::{LaneName, NAME_CHARS_MAX, Name, NameError, Pattern};
pub use api::owner::{Owner, ReplicaId};
pub use api::rejection::{BadTask, LaneFull, Rejection};
pub use api::retry::{Retry, RetryStrategy};
pub use api::session_command::{
    MessageReply, SendOutcome, SessionCommand, SessionDelta, SessionEvent, TurnMessage, Way,
};
pub use api::settings_schema::{SETTING_KEYS, SettingError, duration};
pub use api::task_spec::{
    CHAIN_DEPTH_MAX, Idempotency, KEY_BYTES_MAX, LANES_PER_TASK_MAX, Parent, TRACE_BYTES_MAX, TaskSpec,
};
pub use api::time::{Millis, Timestamp};
pub use api::views::{LaneView, LiveTaskView, Running, TaskStatus};
pub use decide::notes::{NOTE_BYTES_MAX, NOTE_CHANGES_MAX, NOTES_BYTES_MAX, Note, NoteChange};
pub use decide::outcome::LEASE_LAPSED;
pub use decide::submit::{BATCH_CALLS_MAX, KEY_WINDOW};
pub use query::explain::{Blocker, Explanation};
pub use query::listing::InLine;
pub use query::return_times::ReturnTimes;
pub use scheduler::Scheduler;
pub use sessions::directive::{Directive, Reading, read_directive};
pub use sessions::message::{
    AGENT_LANES_MAX, Address, Agent, BadMessage, Dropped, Extras, Incoming, LABEL_BYTES_MAX, Message,
    MessageEnd, MessageId, MessageStatus, Otherwise, PERMISSIONS_MAX, Place, Sender, Steer, TEXT_BYTES_MAX,
    TEXTS_BYTES_MAX,
};
pub use sessions::queue_mode::{
    ATTEMPTS_MAX, BeyondPolicy, DropRule, EffectiveQueue, MessagePolicy, MessageQueue, MessageSettings, Mode,
    Origin, QueueOverrides, Sourced,
};
pub use sessions::receipts::{PARKED_MAX, RECEIPTS_MAX};
pub use sessions::session::DEDUPE_WINDOW;
pub use sessions::turn_text::{Overflow, Part, SUMMARY_LINE_CHARS_MAX, summary, summary_line, turn_text};
pub use sessions::turns::BACK_OFFS;
pub use sessions::view::{ParkedMessage, SessionView, TurnContent, TurnView};
pub use state::dead_letters::DeadLetter;
pub use state::lane::Gate;
pub use state::snapshot::Snapshot;
pub use state::stats::{Count, Histogram, LaneStats};
pub use state::token_bucket::Bucket;

/// The parts that the walls of the core are made of, public so that tests outside can try to climb them.
///
/// The index of one table is no index of another. This compiles:
///
/// ```
/// fn same(task: laneway_core::walls::TaskIdx) -> laneway_core::walls::TaskIdx {
///     task
/// }
/// ```
///
/// and this does not:
///
/// ```compile_fail,E0308
/// fn other(lane: laneway_core::walls::LaneIdx) -> laneway_core::walls::TaskIdx {
///     lane
/// }
/// ```
#[doc(hidden)]
pub mod walls {
    pub use crate::state::lane::LaneIdx;
    pub use crate::state::task::TaskIdx;
    pub use crate::step::Step;
}
