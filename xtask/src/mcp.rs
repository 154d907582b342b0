//! The official MCP clients in Python and TypeScript against the real program.

use crate::chore::{build_program, ensure, node_packages, program, python, run};

const TESTS: &str = "tests/mcp";

/// Runs both clients against the debug program. Where there are replicas, each restarts that often meanwhile.
pub(crate) fn test(restarts: &str) -> Result<(), String> {
    build_program()?;
    let program = program("debug");
    let variables = [
        ("LANEWAY_BINARY", &*program.to_string_lossy()),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("LANEWAY_RESTARTS", restarts),
    ];
    let python = python("mcp-python")?;
    let requirements = format!("{TESTS}/requirements.txt");
    run(&python, &["-m", "pip", "install", "--quiet", "--requirement", &requirements], &[])?;
    ensure("redis-server", "redis-server")?;
    ensure("redis-cli", "redis-tools")?;
    ensure("nginx", "nginx")?;
    node_packages(TESTS)?;
    run(&python, &["-m", "pytest", "-p", "no:cacheprovider", TESTS], &variables)?;
    run("npm", &["--prefix", TESTS, "test", "--silent"], &variables)
}
