//! The dashboard in a real browser.

use crate::chore::{build_program, ensure, node_packages, program, run};

/// Where its tests are.
const TESTS: &str = "dashboard/tests";

/// Runs the tests of the dashboard against the debug program.
pub(crate) fn test() -> Result<(), String> {
    prepare()?;
    let program = program("debug").to_string_lossy().into_owned();
    run("npm", &["--prefix", TESTS, "test", "--silent"], &[("LANEWAY_PROGRAM", &program)])
}

/// Takes the pictures of the documentation again.
pub(crate) fn screenshots() -> Result<(), String> {
    build_program()?;
    prepare()?;
    let program = program("debug").to_string_lossy().into_owned();
    let script = format!("{TESTS}/screenshots.js");
    run("node", &[&script, "docs/images"], &[("LANEWAY_PROGRAM", &program)])
}

/// Measures the first page of a server with many waiting tasks.
pub(crate) fn bench() -> Result<(), String> {
    run("cargo", &["build", "--release", "--package", "laneway-cli"], &[])?;
    prepare()?;
    let program = program("release").to_string_lossy().into_owned();
    run("node", &[&format!("{TESTS}/paint.js")], &[("LANEWAY_PROGRAM", &program)])
}

fn prepare() -> Result<(), String> {
    ensure("chromium", "chromium")?;
    node_packages(TESTS)
}
