//! The SDKs: their tests, the examples of moves from other queues, and a bench, against the real program.

use std::fs;
use std::path::PathBuf;

use crate::chore::{build_program, ensure, node_packages, program, python, root, run};

const TYPESCRIPT: &str = "sdk/typescript";
const MOVING: &str = "examples/moving";

/// Runs the tests of both SDKs against the debug program.
pub(crate) fn test() -> Result<(), String> {
    build_program()?;
    let program = program("debug");
    let variables = [("LANEWAY_BINARY", &*program.to_string_lossy())];
    let python = python_with_sdk()?;
    // One checker of Python's types is a Node program.
    node_packages(TYPESCRIPT)?;
    run(&python, &["-m", "pytest", "sdk/python/tests"], &variables)?;
    // The TypeScript SDK is also tested in a browser.
    ensure("chromium", "chromium")?;
    run("npm", &["--prefix", TYPESCRIPT, "test"], &variables)?;
    run(&python, &["-m", "pytest", "-q", "-p", "no:cacheprovider", MOVING], &variables)?;
    // One example has several replicas.
    ensure("redis-server", "redis-server")?;
    node_packages(MOVING)?;
    run("npm", &["--prefix", MOVING, "test"], &variables)
}

/// Compares a slot in both SDKs with a plain request, with a bound.
pub(crate) fn bench() -> Result<(), String> {
    let (program, python) = release_setup()?;
    let variables = [("LANEWAY_BINARY", &*program.to_string_lossy())];
    let of_python = run(&python, &["sdk/python/scripts/bench.py"], &variables);
    let of_node = run("node", &["sdk/typescript/scripts/bench.mjs"], &variables);
    of_python.and(of_node)
}

/// The release program, a Python with the SDK, and the built TypeScript SDK.
pub(crate) fn release_setup() -> Result<(PathBuf, String), String> {
    run("cargo", &["build", "--release", "--package", "laneway-cli"], &[])?;
    let python = python_with_sdk()?;
    node_packages(TYPESCRIPT)?;
    run("npm", &["--prefix", TYPESCRIPT, "run", "build"], &[])?;
    Ok((program("release"), python))
}

/// A Python with the SDK installed as users install it, and the packages of its tests.
fn python_with_sdk() -> Result<String, String> {
    let python = python("sdk-python")?;
    // An earlier build would install modules that are gone.
    let earlier = root().join("sdk/python/build");
    if earlier.exists() {
        fs::remove_dir_all(&earlier).map_err(|error| format!("{}: {error}", earlier.display()))?;
    }
    run(&python, &["-m", "pip", "install", "--quiet", "./sdk/python[dev]"], &[])?;
    Ok(python)
}
