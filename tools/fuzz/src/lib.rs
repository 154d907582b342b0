//! Checks for every reader of input: whatever the bytes are, they are read or refused.
//!
//! A target reads one input. It panics when a promise is broken: an answer of 500, a refusal that cannot be printed, a
//! server that is stuck. `libfuzzer/` drives the targets with `cargo fuzz`; `tests/corpus.rs` replays the inputs in
//! `corpus/`.
// A panic is how a target reports what it found.
#![allow(clippy::panic, clippy::expect_used)]

mod targets;

pub use targets::{TARGETS, read};

/// What became of an input that kept every promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FuzzOutcome {
    /// The reader understood it.
    Understood,
    /// The reader refused it in words.
    Refused,
}
