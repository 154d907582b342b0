//! Real MCP clients against the real program: the official ones in Python and TypeScript.

use crate::sdk::{built, target};
use crate::{build_program, ensure, run};

/// Where the tests are.
const TESTS: &str = "tests/mcp";

/// Runs both clients against the debug build.
pub(crate) fn test() -> Result<(), String> {
    build_program()?;
    let program = built("debug");
    let variables = [("LANEWAY_BINARY", program.as_str()), ("PYTHONDONTWRITEBYTECODE", "1")];
    let python = python()?;
    run(&python, &["-m", "pytest", "-p", "no:cacheprovider", TESTS], &variables)?;
    ensure("node", "nodejs")?;
    ensure("npm", "npm")?;
    run("npm", &["--prefix", TESTS, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], &[])?;
    run("npm", &["--prefix", TESTS, "test", "--silent"], &variables)
}

/// A Python of our own with the client installed.
fn python() -> Result<String, String> {
    ensure("python3", "python3-venv")?;
    let home = target().join("mcp-python");
    let python = home.join("bin/python").display().to_string();
    if !home.join("bin/pip").exists() {
        run("python3", &["-m", "venv", &home.display().to_string()], &[])?;
    }
    let needed = format!("{TESTS}/requirements.txt");
    run(&python, &["-m", "pip", "install", "--quiet", "--requirement", &needed], &[])?;
    Ok(python)
}
