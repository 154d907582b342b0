//! Scripts for the scheduler: lines of commands in, lines of what happened out.
//!
//! A script line is `TIME COMMAND ARGUMENTS`; the time is in milliseconds (or `2s`, `5m`), blank lines and lines
//! that start with `#` are skipped. Tasks are called by names; `t1..t31` means all of them in turn, and `{}`
//! in the name of a lane stands for the task's own name. [`COMMANDS`] lists all commands.
//!
//! ```
//! let lines = laneway_scenario::play("
//!     0 lane gpu lease=10ms max_redelivery=1 handler=external
//!     0 submit a gpu
//!     0 claim w1 gpu
//!     10 claim w2 gpu
//!     11 finish a #1
//! ")?;
//! let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
//! assert_eq!(text.last().unwrap(), "11 rejected: lease #1 on a is stale");
//! # Ok::<(), laneway_scenario::ScriptError>(())
//! ```
//!
//! Between two lines the clock stops at every moment at which the scheduler wants to be woken. Each step checks the
//! invariants of the scheduler. The end checks that replaying the events and restoring the saved state lead to the same
//! state.

mod answer;
mod commands;
mod describe;
mod describe_sessions;
mod error;
mod line;
mod names;
mod player;
mod script;
mod session_commands;
mod submit_command;
mod tokens;

pub use commands::COMMANDS;
pub use error::ScriptError;
pub use line::{Line, Tone};
pub use player::{play, play_with_restarts};
