//! Replicas under load and faults, for a short while; `cargo xtask chaos --minutes N` for longer.

use laneway_chaos::{BackendKind, survives};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway-chaos-replica");

#[test]
fn replicas_on_redis() {
    survives(PROGRAM, BackendKind::Redis);
}

#[test]
fn replicas_on_postgres() {
    survives(PROGRAM, BackendKind::Postgres);
}
