//! Benches that compare with a bound. `compare.rs` measures whole queues against each other.

use crate::chore::{ensure, ensure_backends, run};
use crate::{compare, dashboard, sdk};

pub(crate) fn bench(words: &[&str]) -> Result<(), String> {
    match words {
        ["core"] => core(),
        ["sessions"] => cargo_bench("laneway-core", "sessions", &[]),
        ["server", rows @ ..] => cargo_bench("laneway-server", "server", rows),
        ["engine", rows @ ..] => engine(rows),
        ["replicas", parts @ ..] => replicas(parts),
        ["latency"] => latency(),
        ["sdk"] => sdk::bench(),
        ["dashboard"] => dashboard::bench(),
        _ => {
            Err("bench knows core, sessions, server, engine, replicas, latency, sdk and dashboard".to_owned())
        }
    }
}

fn cargo_bench(package: &str, bench: &str, rows: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["bench", "--package", package, "--bench", bench];
    if !rows.is_empty() {
        arguments.push("--");
        arguments.extend(rows);
    }
    run("cargo", &arguments, &[])
}

fn core() -> Result<(), String> {
    ensure("valgrind", "valgrind")?;
    let cycle = cargo_bench("laneway-core", "cycle", &[]);
    let memory = cargo_bench("laneway-core", "memory", &[]);
    cycle.and(memory)
}

/// A workspace of its own, because the normal build has no use for the queues that it compares with.
fn engine(rows: &[&str]) -> Result<(), String> {
    ensure("valgrind", "valgrind")?;
    let bench = ["run", "--release", "--manifest-path", "bench/Cargo.toml", "--"];
    run("cargo", &[&bench[..], rows].concat(), &[])
}

/// How fast running turns hear of messages and interrupts.
fn latency() -> Result<(), String> {
    ensure_backends()?;
    let (binary, python) = sdk::release_setup()?;
    let bench = ["bench", "--package", "laneway-chaos", "--bench", "latency"];
    run("cargo", &bench, &[("LANEWAY_BINARY", &binary.to_string_lossy()), ("LANEWAY_PYTHON", &python)])
}

fn replicas(parts: &[&str]) -> Result<(), String> {
    ensure_backends()?;
    let peers = compare::install_peers()?;
    let bench = ["bench", "--package", "laneway-chaos", "--bench", "replicas", "--"];
    run("cargo", &[&bench[..], parts].concat(), &[("LANEWAY_BULLMQ", &peers.to_string_lossy())])
}
