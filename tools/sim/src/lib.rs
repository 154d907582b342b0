//! Simulates whole histories of Laneway in one thread, on virtual time.
//!
//! ```text
//!   clients ──┐ calls: slow, lost,   ┌── replica 0: the real engine ──┐ wire: slow, lost, late,
//!   workers ──┤ answers lost         ├── replica 1                    ├ refused, cut off          one log
//!             └──────────────────────┴── replica 2                    ┘
//!   each is a machine that can stand still or die at any await
//! ```
//!
//! A seed gives a [`Plan`]: what callers ask, what goes wrong, and when. [`run()`] carries it out. The engine, the scheduler and the
//! encoding are the real ones. The store is a log in memory behind wires with faults.
//!
//! Every batch is checked when it is written. Every answer to a caller is checked against the log, and every run against its
//! grant. A lease and a second after the last fault, no work of a dead replica may be left. At the end every task must have
//! ended. One seed is one history, to the byte.

mod checks;
mod faults;
mod kind;
mod machines;
mod network;
mod plan;
mod planted;
mod report;
mod run;
mod world;

pub use kind::Kind;
pub use plan::{Plan, PlanStep};
pub use planted::Bug;
pub use report::gist;
pub use report::shrink::shrink;
pub use report::summary::{Summary, explain};
pub use run::{History, Wanted, run};

/// For how long a run or a replica without a heartbeat counts as alive.
pub const LEASE_MS: u64 = 2000;
/// How many conversations of each sort there are.
pub const SESSIONS: u64 = 3;
/// When all histories begin.
pub(crate) const EPOCH_MS: u64 = 1_000_000_000;
