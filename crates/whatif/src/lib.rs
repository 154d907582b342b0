//! What would another configuration have done?
//!
//! A [`Trace`] says when work arrived and how long it ran. [`replay()`] feeds it to the real
//! [`Scheduler`](laneway_core::Scheduler) on virtual time, with other settings. [`Report`] puts the result into numbers:
//! how long work waited in each lane, what was refused, how busy the lanes were, and how evenly the waiting was spread.
//!
//! No rule is implemented twice. This crate only submits tasks, ends runs when their recorded time has passed, and ticks
//! when the scheduler asks for it.
//!
//! | question | file |
//! |---|---|
//! | what does a trace hold? | `trace.rs`; read in `parse.rs` |
//! | how does a store become one? | `export.rs`, with `recorder.rs` for the log, `earlier_tasks.rs` for history and `anonymous.rs` |
//! | what does each task do when it runs? | `script.rs`, and `family.rs` for those that wait for others |
//! | how is it replayed? | `replay.rs` |
//! | what does it show? | `timeline.rs` (each task), `report.rs` (numbers), `table.rs` (text), `plot.rs` (a picture, drawn by `svg.rs`) |

mod anonymous;
mod earlier_tasks;
mod export;
mod family;
mod parse;
mod plot;
mod recorder;
mod replay;
mod report;
mod script;
mod svg;
mod table;
mod timeline;
mod trace;

pub use export::{ExportError, TraceStart, export};
pub use parse::{TraceError, TraceProblem, read_trace};
pub use plot::plot;
pub use replay::{ReplayError, replay};
pub use report::{Comparison, Fairness, LaneReport, Report};
pub use script::Assumptions;
pub use svg::Svg;
pub use table::table;
pub use timeline::{Fate, Run, TaskTimeline, Timeline};
pub use trace::{
    Arrival, AttemptEnd, Header, ParentOf, RecordedAttempt, Sources, TRACE_FORMAT, TaskOutcome, Trace,
};
