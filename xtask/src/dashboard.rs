//! The dashboard in a real browser.

use std::env;
use std::path::PathBuf;

use crate::{build_program, ensure, root, run};

/// Where its tests are.
const TESTS: &str = "dashboard/tests";

/// Runs the tests of the dashboard against the program that `cargo test` has just built.
pub(crate) fn test() -> Result<(), String> {
    prepare()?;
    let program = program();
    run("npm", &["--prefix", TESTS, "test", "--silent"], &[("LANEWAY_PROGRAM", &program)])
}

/// Makes the pictures of the documentation anew.
pub(crate) fn screenshots() -> Result<(), String> {
    build_program()?;
    prepare()?;
    let program = program();
    let script = format!("{TESTS}/screenshots.js");
    run("node", &[&script, "docs/images"], &[("LANEWAY_PROGRAM", &program)])
}

/// Measures the first look at a server with much work in it.
pub(crate) fn bench() -> Result<(), String> {
    run("cargo", &["build", "--release", "--package", "laneway-cli"], &[])?;
    prepare()?;
    let program = built("release");
    run("node", &[&format!("{TESTS}/paint.js")], &[("LANEWAY_PROGRAM", &program)])
}

fn prepare() -> Result<(), String> {
    ensure("node", "nodejs")?;
    ensure("npm", "npm")?;
    ensure("chromium", "chromium")?;
    run("npm", &["--prefix", TESTS, "ci", "--no-audit", "--no-fund", "--loglevel", "error"], &[])
}

/// The program as `cargo` leaves it.
fn program() -> String {
    built("debug")
}

fn built(profile: &str) -> String {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    root().join(target).join(profile).join("laneway").display().to_string()
}
