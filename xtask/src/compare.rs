//! The same work through Laneway and through what one would take instead.

use std::path::PathBuf;

use crate::{engines, ensure, root, run};

/// Installs the peers, measures, and writes the page of the documentation if asked to.
pub(crate) fn compare(is_written: bool) -> Result<(), String> {
    engines()?;
    let peers = install_peers()?;
    let docs = root().join("docs");
    let docs = docs.to_string_lossy();
    let mut bench = vec!["run", "--release", "--manifest-path", "bench/Cargo.toml", "--", "compare"];
    if is_written {
        bench.push(&docs);
    }
    run("cargo", &bench, &[("LANEWAY_PEERS", &peers.to_string_lossy())])
}

/// Puts the queues of Node into a directory of their own; where that is.
pub(crate) fn install_peers() -> Result<PathBuf, String> {
    ensure("node", "nodejs")?;
    ensure("npm", "npm")?;
    let home = root().join("target").join("peers");
    std::fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let place = home.to_string_lossy();
    // The fifth generation of BullMQ is faster than the sixth.
    let packages = ["bullmq@5", "p-queue@9"];
    let install = ["install", "--prefix", &place, "--no-save", "--no-audit", "--no-fund"];
    run("npm", &[&install[..], &packages].concat(), &[])?;
    Ok(home)
}
