//! Replicas under load and faults, for as long as one likes.

use crate::{engines, run};

/// Runs the chaos test for so many minutes on each engine, and prints what happened.
pub(crate) fn minutes(minutes: &str) -> Result<(), String> {
    let seconds = match minutes.parse::<u64>() {
        Ok(minutes) if minutes > 0 => (minutes * 60).to_string(),
        _ => return Err("--minutes is a whole number of at least 1".to_owned()),
    };
    engines()?;
    let test = ["test", "--release", "--package", "laneway-chaos", "--test", "short", "--", "--nocapture"];
    run("cargo", &test, &[("LANEWAY_CHAOS_SECONDS", &seconds)])
}
