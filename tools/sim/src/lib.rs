//! Whole histories of Laneway in one thread, on time that passes when nothing else is to be done.
//!
//! ```text
//!   clients ──┐ calls: slow, lost,   ┌── replica 0: the real engine ──┐ wire: slow, lost, late,
//!   workers ──┤ answers lost         ├── replica 1                    ├ refused, cut off          one log
//!             └──────────────────────┴── replica 2                    ┘
//!   each is a machine that can stand still or die at any await
//! ```
//!
//! A seed gives a [`Plan`]: what is asked and what goes wrong, and when. [`run()`] lets it happen: the engine, the scheduler and
//! the encoding are the real ones, and the store is a log in memory behind wires with faults. Every batch is checked
//! when it is written, everything that somebody was told is checked against the log, and what really runs against what was
//! granted. A lease and a second after the last fault nothing may be left of the dead, and in the end everything must have
//! ended. One seed is one history, to the byte.
//!
//! | question | file |
//! |---|---|
//! | what can happen, and when? | `kind.rs`, `plan.rs` |
//! | who takes part? | `host.rs`, `replica.rs`, `worker.rs`, `client.rs` |
//! | what lies between them? | `net.rs`, `link.rs`, `wire.rs`, `shared.rs` |
//! | what goes wrong? | `faults.rs`; on purpose: `planted.rs` |
//! | what must hold? | `check.rs`, `talks.rs`, `judge.rs`, `ledger.rs`, `run.rs` |
//! | how is a failure made short, and many seeds told of? | `shrink.rs`, `report.rs`, `summary.rs` |

mod check;
mod client;
mod faults;
mod host;
mod judge;
mod kind;
mod ledger;
mod link;
mod net;
mod plan;
mod planted;
mod replica;
mod report;
mod run;
mod shared;
mod shrink;
mod summary;
mod talks;
mod wire;
mod worker;
mod world;

pub use kind::Kind;
pub use plan::{Plan, Step};
pub use planted::Bug;
pub use report::gist;
pub use run::{Outcome, Wanted, run};
pub use shrink::shrink;
pub use summary::{Summary, explain};

/// For how long a run or a replica without a sign of life counts as alive.
pub const LEASE_MS: u64 = 2000;
/// How many conversations of each sort there are.
pub const SESSIONS: u64 = 3;
/// When all histories begin.
pub(crate) const EPOCH_MS: u64 = 1_000_000_000;
