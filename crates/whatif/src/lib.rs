//! What would another configuration have done?
//!
//! A [`Trace`] says when work arrived and how long it ran. [`replay()`] feeds it to the real
//! [`Scheduler`](laneway_core::Scheduler) on virtual time, with other settings, and [`Report`] puts what came of it into
//! numbers: how long work waited in each lane, what was refused, how busy the lanes were, how evenly the waiting was
//! spread. There is no second implementation of any rule: this crate submits, reports runs as over when their recorded
//! time has passed, and looks at the clock when the scheduler asks for it.
//!
//! | question | file |
//! |---|---|
//! | what does a trace hold? | `trace.rs` and `words.rs`; read in `reading.rs` |
//! | how does a store become one? | `export.rs`, with `recorder.rs` for the log, `past.rs` for history and `anonymous.rs` |
//! | what does each task do when it runs? | `script.rs`, and `family.rs` for those that wait for others |
//! | how is it replayed? | `replay.rs` |
//! | what is told of it? | `played.rs` (what happened), `report.rs` (in numbers), `table.rs` (as text), `plot.rs` (as a picture, drawn by `svg.rs`) |

mod anonymous;
mod export;
mod family;
mod past;
mod played;
mod plot;
mod reading;
mod recorder;
mod replay;
mod report;
mod script;
mod svg;
mod table;
mod trace;
mod words;

pub use export::{ExportError, TraceStart, export};
pub use played::{Fate, Played, PlayedTask, Run};
pub use plot::plot;
pub use reading::{TraceError, read_trace};
pub use replay::{ReplayError, replay};
pub use report::{Comparison, Fairness, LaneReport, Report};
pub use script::Assumptions;
pub use svg::Svg;
pub use table::table;
pub use trace::{
    Arrival, Asker, AttemptEnd, Header, ParentOf, RecordedAttempt, RetryOf, Sources, Strategy, TRACE_FORMAT,
    TaskOutcome, Trace,
};
