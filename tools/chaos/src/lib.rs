//! Replicas as real processes under load, the faults that can happen to them, and a check of the log that they leave.
//!
//! ```text
//! replica 1 ── proxy ──┐
//! replica 2 ── proxy ──┼── Redis or Postgres        kill -9, stop and continue, cut, lose replies, refuse, freeze
//! replica 3 ── proxy ──┘
//!
//! replica 1 ──┐
//! replica 2 ──┼── Redis Cluster or Sentinels        kill or stop the master, take over in order, cut
//! replica 3 ──┘
//! ```
//!
//! The check knows no scheduler: it counts what the events say, at every moment of the log.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "it is a test, which stops at anything unexpected"
)]

mod backend;
mod check;
mod replica;
mod run;

pub use backend::{BackendKind, be_replica};
pub use check::{Findings, check};
pub use run::{ChaosSummary, freeze, number, run, survives};

/// For how long a run without a heartbeat counts as alive.
pub const LEASE_MS: u64 = 2000;
/// For how long a silent replica counts as alive.
pub const REPLICA_LEASE_MS: u64 = 2000;
/// How many may run at once.
pub const WORK_MAX: u32 = 3;
/// How many conversations there are.
pub const SESSIONS: u64 = 5;

/// The guide, whose sample must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/replicas.md")]
pub struct Guide;
