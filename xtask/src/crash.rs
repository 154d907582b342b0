//! Kills real processes, as often as one likes.

use crate::run;

/// Runs the crash test with so many kills.
pub(crate) fn rounds(rounds: &str) -> Result<(), String> {
    if !rounds.parse::<u64>().is_ok_and(|rounds| rounds > 0) {
        return Err("--rounds is a whole number of at least 1".to_owned());
    }
    let test = ["test", "--package", "laneway", "--test", "crash"];
    run("cargo", &test, &[("LANEWAY_CRASH_ROUNDS", rounds)])
}
