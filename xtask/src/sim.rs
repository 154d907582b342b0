//! Simulated histories.

use crate::chore::run;

/// Builds the simulator and passes the arguments on.
pub(crate) fn run_seeds(words: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--release", "--package", "laneway-sim", "--"];
    arguments.extend(words);
    run("cargo", &arguments, &[])
}
