//! The SDKs: their tests and their bench, against the real program.

use std::env;
use std::path::PathBuf;

use crate::{build_program, ensure, root, run};

/// Runs the tests of both SDKs against the debug build.
pub(crate) fn test() -> Result<(), String> {
    build_program()?;
    let program = built("debug");
    let python = python()?;
    // One of the two that check Python's types is a program of Node.
    packages_of_node()?;
    run(&python, &["-m", "pytest", "sdk/python/tests"], &[("LANEWAY_BINARY", &program)])?;
    // The SDK is tried in a real browser too.
    ensure("chromium", "chromium")?;
    run("npm", &["--prefix", "sdk/typescript", "test"], &[("LANEWAY_BINARY", &program)])
}

/// What a slot costs in both SDKs, beside a plain request, with its bound.
pub(crate) fn bench() -> Result<(), String> {
    run("cargo", &["build", "--release", "--package", "laneway-cli"], &[])?;
    let program = built("release");
    let python = python()?;
    packages_of_node()?;
    run("npm", &["--prefix", "sdk/typescript", "run", "build"], &[])?;
    let variables = [("LANEWAY_BINARY", program.as_str())];
    let of_python = run(&python, &["sdk/python/scripts/bench.py"], &variables);
    let of_node = run("node", &["sdk/typescript/scripts/bench.mjs"], &variables);
    of_python.and(of_node)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let elsewhere = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(elsewhere.unwrap_or_else(|| "target".into()))
}

pub(crate) fn built(profile: &str) -> String {
    target().join(profile).join("laneway").display().to_string()
}

/// A Python of our own with the SDK installed as its users install it, and what its tests need.
fn python() -> Result<String, String> {
    ensure("python3", "python3-venv")?;
    let home = target().join("sdk-python");
    let python = home.join("bin/python").display().to_string();
    if !home.join("bin/pip").exists() {
        run("python3", &["-m", "venv", &home.display().to_string()], &[])?;
    }
    // A module that is gone must not be installed from what an earlier build has left behind.
    let left_behind = root().join("sdk/python/build");
    if left_behind.exists() {
        std::fs::remove_dir_all(&left_behind)
            .map_err(|error| format!("cannot remove old builds: {error}"))?;
    }
    run(&python, &["-m", "pip", "install", "--quiet", "./sdk/python[dev]"], &[])?;
    Ok(python)
}

fn packages_of_node() -> Result<(), String> {
    ensure("npm", "npm")?;
    run("npm", &["--prefix", "sdk/typescript", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], &[])
}
