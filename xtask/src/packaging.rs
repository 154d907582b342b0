//! The manifests for Kubernetes and the Compose file.

use crate::chore::{build_program, program, python, run};

const TESTS: &str = "tests/packaging";

/// Renders the manifests and checks them against the schemas of Kubernetes.
pub(crate) fn test() -> Result<(), String> {
    build_program()?;
    let program = program("debug");
    let variables = [("LANEWAY_BINARY", &*program.to_string_lossy()), ("PYTHONDONTWRITEBYTECODE", "1")];
    let python = python("packaging-python")?;
    let requirements = format!("{TESTS}/requirements.txt");
    run(&python, &["-m", "pip", "install", "--quiet", "--requirement", &requirements], &[])?;
    run(&python, &["-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS], &variables)
}
