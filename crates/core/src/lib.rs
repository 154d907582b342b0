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

mod acceptance;
mod apply;
mod aside;
mod at_once;
mod attempts;
mod best_first;
mod book;
mod bucket;
mod clock;
mod collected;
mod command;
mod control;
mod directive;
mod duplicates;
mod editing;
mod estimate;
mod event;
mod explain;
mod fair;
mod foresight;
mod grant;
mod home;
mod id;
mod index;
mod kinds;
mod lane;
mod lanes;
mod lending;
mod letters;
mod line;
mod listing;
mod message;
mod modes;
mod name;
mod node;
mod notes;
mod ordered;
mod ranking;
mod receipts;
mod recount;
mod rejection;
mod retry;
mod routes;
mod running;
mod scheduler;
mod seats;
mod seldom;
mod send;
mod session;
mod session_apply;
mod session_check;
mod session_command;
mod session_view;
mod sessions;
mod settings;
mod settings_text;
mod spec;
mod state;
mod stats;
mod steering;
mod submit;
mod table;
mod task;
mod time;
mod timers;
mod turns;
mod view;
mod violation;
mod waiting;

pub use at_once::Start;
pub use bucket::Bucket;
pub use collected::{Overflow, Part, SUMMARY_LINE_CHARS_MAX, summary, summary_line, turn_text};
pub use command::{Command, Outcome, Reply, Selector, ToolBatch, ToolCall, ToolLane};
pub use directive::{Directive, Reading, read_directive};
pub use event::{AlertLevel, CancelReason, End, Event, LaneChange, LetterGone, StopReason};
pub use explain::{Blocker, Explanation};
pub use id::{BlobId, Fence, TaskId};
pub use lane::Gate;
pub use letters::DeadLetter;
pub use listing::InLine;
pub use message::{
    AGENT_LANES_MAX, Address, Agent, BadMessage, Dropped, Extras, Incoming, LABEL_BYTES_MAX, Message,
    MessageEnd, MessageId, MessageStatus, Otherwise, PERMISSIONS_MAX, Place, Sender, Steer, TEXT_BYTES_MAX,
    TEXTS_BYTES_MAX,
};
pub use modes::{
    BeyondPolicy, DropRule, EffectiveQueue, MessagePolicy, MessageQueue, MessageSettings, Mode, Origin,
    QueueOverrides, Sourced,
};
pub use name::{LaneName, NAME_CHARS_MAX, Name, NameError, Pattern};
pub use notes::{NOTE_BYTES_MAX, NOTE_CHANGES_MAX, NOTES_BYTES_MAX, Note, NoteChange};
pub use receipts::{RECEIPTS_MAX, SET_ASIDE_MAX};
pub use rejection::{BadTask, LaneFull, Rejection};
pub use retry::{Retry, RetryStrategy};
pub use scheduler::Scheduler;
pub use session::DEDUPE_WINDOW;
pub use session_command::{
    MessageReply, SendOutcome, SessionChange, SessionCommand, SessionEvent, TurnMessage, Way,
};
pub use session_view::{SessionView, SetAside, TurnContent, TurnView};
pub use settings::{
    Ageing, Block, Boost, BoostStrategy, COUNT_MAX, Handler, LEVEL_MAX, LaneSettings, Order, PRIORITY_MAX,
    Period, RateLimit, STOP_GRACE, Settings, Source, Switch, WEIGHT_MAX,
};
pub use settings_text::{SETTING_KEYS, SettingError, duration};
pub use spec::{CHAIN_DEPTH_MAX, Idempotency, KEY_BYTES_MAX, LANES_PER_TASK_MAX, Parent, TaskSpec};
pub use state::State;
pub use stats::{Histogram, LaneStats};
pub use submit::{BATCH_CALLS_MAX, KEY_WINDOW};
pub use time::{Millis, Timestamp};
pub use turns::BACK_OFFS;
pub use view::{LaneView, Running, TaskStatus, TaskView};
