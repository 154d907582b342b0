//! Replicas under load and faults, for a short while; `cargo xtask chaos --minutes N` for longer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::time::Duration;

use laneway_chaos::{BackendKind, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway-chaos-replica");

/// A number from the environment.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |number| number.parse().unwrap())
}

fn survives(backend: BackendKind) {
    let seconds = number("LANEWAY_CHAOS_SECONDS", 15);
    let (replicas, seed) = (number("LANEWAY_CHAOS_REPLICAS", 3), number("LANEWAY_CHAOS_SEED", 1));
    let summary = run(PROGRAM, backend, replicas as usize, Duration::from_secs(seconds), seed);
    println!("{summary}");
    let findings = &summary.findings;
    assert!(findings.violations.is_empty(), "{summary}");
    // It was not idle, and the faults were felt.
    assert!(findings.completed as u64 > seconds && findings.lapsed > 0, "{summary}");
}

#[test]
fn replicas_on_redis() {
    survives(BackendKind::Redis);
}

#[test]
fn replicas_on_postgres() {
    survives(BackendKind::Postgres);
}
