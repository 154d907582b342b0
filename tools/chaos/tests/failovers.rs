//! Replicas on a store of several servers under load and faults; only `cargo xtask chaos --minutes N` runs it.

use laneway_chaos::{BackendKind, survives};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway-chaos-replica");

#[test]
fn replicas_on_a_cluster() {
    survives(PROGRAM, BackendKind::Cluster);
}

#[test]
fn replicas_behind_sentinels() {
    survives(PROGRAM, BackendKind::Sentinel);
}

#[test]
fn replicas_behind_pgbouncer() {
    survives(PROGRAM, BackendKind::PgBouncer);
}
