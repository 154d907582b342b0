//! Replicas under load and faults, for a short while; `cargo xtask chaos --minutes N` for longer.

use laneway_chaos::{BackendKind, freeze, number, survives};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway-chaos-replica");

#[test]
fn replicas_on_redis() {
    survives(PROGRAM, BackendKind::Redis);
}

#[test]
fn replicas_on_postgres() {
    survives(PROGRAM, BackendKind::Postgres);
}

#[test]
fn no_lease_lapses_while_the_store_stands_still() {
    let summary = freeze(PROGRAM, number("LANEWAY_CHAOS_FREEZES", 1) as u32);
    println!("{summary}");
    let findings = &summary.findings;
    assert!(findings.violations.is_empty() && findings.lapsed == 0, "{summary}");
    assert!(findings.completed > 0, "{summary}");
}
