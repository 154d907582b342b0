//! The same work through Laneway and through other queues.

use std::path::PathBuf;
use std::process::Command;

use crate::chore::{ensure, root, run};

/// The oldest Node that p-queue supports.
const NODE_MIN: u32 = 20;

/// Installs the other queues and measures; `--write` updates the page of the documentation.
pub(crate) fn compare(words: &[&str]) -> Result<(), String> {
    let (rounds, is_written) = match words {
        [] => ("7", false),
        ["--write"] => ("7", true),
        ["--rounds", rounds] => (*rounds, false),
        ["--rounds", rounds, "--write"] | ["--write", "--rounds", rounds] => (*rounds, true),
        _ => return Err("compare knows --rounds N and --write".to_owned()),
    };
    ensure("redis-server", "redis-server")?;
    let peers = install_peers()?;
    let docs = root().join("docs");
    let docs = docs.to_string_lossy();
    let mut bench = vec!["run", "--release", "--manifest-path", "bench/Cargo.toml", "--", "compare", rounds];
    if is_written {
        bench.push(&docs);
    }
    run("cargo", &bench, &[("LANEWAY_PEERS", &peers.to_string_lossy())])
}

/// Installs the queues for Node into `target/peers`.
pub(crate) fn install_peers() -> Result<PathBuf, String> {
    ensure("node", "nodejs")?;
    ensure("npm", "npm")?;
    let version = Command::new("node").arg("--version").output().map_err(|error| format!("node: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_MIN) {
        return Err(format!("the queues of Node need Node {NODE_MIN} or newer, and this is {version}"));
    }
    let home = root().join("target").join("peers");
    std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let place = home.to_string_lossy();
    // The fifth generation of BullMQ is faster than the sixth.
    let packages = ["bullmq@5", "p-queue@9"];
    let install = ["install", "--prefix", &place, "--no-save", "--no-audit", "--no-fund"];
    run("npm", &[&install[..], &packages].concat(), &[])?;
    Ok(home)
}
