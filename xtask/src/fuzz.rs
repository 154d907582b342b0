//! Input that nobody would send.

use crate::run;

/// Builds the fuzzer and passes on what is asked of it.
pub(crate) fn target(words: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--release", "--package", "laneway-fuzz", "--"];
    arguments.extend(words);
    run("cargo", &arguments, &[])
}
