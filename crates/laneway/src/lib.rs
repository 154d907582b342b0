//! Lanes for agent work, inside your program.
//!
//! A **lane** is a named limit: how many at once, how many may wait, how often per minute. A **task** names the lanes
//! that it needs and runs when each of them has a free slot. Nothing needs to be configured: a lane comes into
//! being when it is named.
//!
//! ```
//! use laneway::{Laneway, Task};
//!
//! # async fn call_model() -> &'static str { "hello" }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lanes = Laneway::in_memory();
//! let answer = lanes.run(Task::new("main").session("alice"), async { call_model().await }).await?;
//! # assert_eq!(answer, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! With a directory, the same queue survives `kill -9`. Work that outlives the program cannot be a closure: it is a kind
//! and a payload, and a handler that runs the kind.
//!
//! ```
//! use laneway::{Context, Laneway, Task};
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let dir = place.path().join("laneway-data");
//! let lanes = Laneway::open(dir)
//!     .handler("greet", |_: Context, payload: Value| async move { Ok(json!(format!("hello {payload}"))) })
//!     .await?;
//! let task = lanes.submit(Task::new("main").kind("greet").payload("bob")).await?;
//! assert_eq!(task.wait().await?, json!("hello \"bob\""));
//! lanes.shutdown(std::time::Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Handle`], which a [`Laneway`] derefs to, lists everything that can be asked.

mod configured;
mod open;

use std::ops::Deref;
use std::path::PathBuf;

pub use configured::{Config, ConfigError, Configured, FromConfig};
pub use laneway_core::{
    Agent, DropRule, Dropped, EffectiveQueue, Incoming, Message, MessageEnd, MessageId, MessagePolicy,
    MessageQueue, MessageReply, MessageSettings, MessageStatus, Mode, Origin, Otherwise, Place,
    QueueOverrides, SendOutcome, SessionDelta, SessionEvent, SessionView, Sourced, Steer, TurnView,
};
pub use laneway_core::{
    AlertLevel, Block, Blocker, CancelReason, Command, DeadLetter, End, Event, Explanation, Fence, Gate,
    Handler, Histogram, LaneChange, LaneFull, LaneName, LaneSettings, LaneStats, LiveTaskView, Millis, Name,
    Pattern, Period, RateLimit, Rejection, Reply, Retry, RetryStrategy, Selector, Settings, Source,
    StopReason, Switch, TaskId, TaskStatus, Timestamp, ToolLane,
};
pub use laneway_engine::{
    Claim, ClaimRequest, Clock, Context, Cursor, EndState, Ending, Error, Failure, Filter, Handle,
    HistoryFilter, HistoryPage, LaneSnapshot, OnDrop, Options, Program, RunError, Slot, SteadyClock,
    StopSignal, Stopped, Subscription, Task, TaskHandle, TaskRecord, ToolCalls, ToolLanes, ToolRefusal,
    ToolResult, ToolUse, Tools, UnknownKinds, Update,
};
pub use laneway_engine::{Heartbeat, HeartbeatReport, NewMessage, SteeringMessage, TurnPayload};
pub use laneway_store::{Durability, Finished, Store, StoreError, Try};
pub use open::Open;

/// A queue that runs. Clones are the same queue.
#[derive(Clone)]
pub struct Laneway(Handle);

impl Laneway {
    /// A queue that forgets everything with the process.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, like [`tokio::spawn`]. The runtime needs its timer.
    pub fn in_memory() -> Laneway {
        Laneway(Handle::in_memory(Options::default()))
    }

    /// A queue in memory with other options than the defaults. Panics like [`in_memory`](Laneway::in_memory).
    pub fn in_memory_with(options: Options) -> Laneway {
        Laneway(Handle::in_memory(options))
    }

    /// Opens the queue in this directory, which is made if it is not there. Await the result.
    ///
    /// Everything that was accepted before goes on. One process has the directory at a time; another gets an error that names it.
    pub fn open(dir: impl Into<PathBuf>) -> Open {
        Open::new(dir.into())
    }

    /// Opens the queue that a configuration file (`.hcl`, `.json5`, `.json` or `.toml`) describes. Await the result.
    ///
    /// The library applies the store, all settings of lanes (also those in the blocks of agents and in `queue`), how tool
    /// calls run, and `handler` blocks with a command. The environment overrides the file. Listening, agents and schedules
    /// are for the server; [`Configured::config`] has their values.
    pub fn from_config(path: impl Into<PathBuf>) -> FromConfig {
        FromConfig::new(path.into())
    }
}

impl Deref for Laneway {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.0
    }
}

impl From<Handle> for Laneway {
    fn from(handle: Handle) -> Laneway {
        Laneway(handle)
    }
}

/// The samples in the README must work.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// And those in the guide to sessions.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/sessions.md")]
struct SessionsGuide;

/// So must those in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embedding.md")]
struct Embedding;
