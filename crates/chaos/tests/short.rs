//! Replicas under load and faults, for a short while; `cargo xtask chaos --minutes N` for longer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::time::Duration;

use laneway_chaos::{Kind, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway-chaos-replica");

fn survives(kind: Kind, replicas: usize, seed: u64) {
    let seconds = std::env::var("LANEWAY_CHAOS_SECONDS").ok();
    let seconds = seconds.map_or(15, |seconds| seconds.parse().unwrap());
    let summary = run(PROGRAM, kind, replicas, Duration::from_secs(seconds), seed);
    println!("{summary}");
    let findings = &summary.findings;
    assert!(findings.violations.is_empty(), "{summary}");
    // It was not idle, and the faults were felt.
    assert!(findings.completed as u64 > 10 * seconds && findings.lapsed > 0, "{summary}");
}

#[test]
fn three_replicas_on_redis() {
    survives(Kind::Redis, 3, 1);
}

#[test]
fn three_replicas_on_postgres() {
    survives(Kind::Postgres, 3, 1);
}
