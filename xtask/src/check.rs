//! Everything that must pass before a change lands.

use crate::chore::{ensure_backends, program_is_built, root, run};
use crate::{api, crash, dashboard, mcp, packaging, sdk, tidy};

/// Every test, the samples in the documentation included.
pub(crate) fn test() -> Result<(), String> {
    ensure_backends()?;
    run("cargo", &["test", "--workspace", "--all-features"], &[])?;
    program_is_built();
    crash::crash(&["serve", "--rounds", "5", "--points", "10"])?;
    crash::crash(&["power", "--points", "10"])?;
    dashboard::test()?;
    sdk::test()?;
    packaging::test()?;
    mcp::test("0")
}

/// The cheap checks first, then the tests, then the documentation.
pub(crate) fn check() -> Result<(), String> {
    tidy::tidy(&root())?;
    run("cargo", &["fmt", "--all", "--check"], &[])?;
    let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    run("cargo", &lints, &[])?;
    test()?;
    api::check()?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    run("cargo", &docs, &[("RUSTDOCFLAGS", "-D warnings")])
}
