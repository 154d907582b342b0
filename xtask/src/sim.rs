//! Simulated histories, by their seeds.

use crate::run;

/// Builds the simulator and passes on what is asked of it.
pub(crate) fn run_seeds(words: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--release", "--package", "laneway-sim"];
    if words.contains(&"--planted") {
        arguments.extend(["--features", "planted"]);
    }
    arguments.push("--");
    arguments.extend(words);
    run("cargo", &arguments, &[])
}
