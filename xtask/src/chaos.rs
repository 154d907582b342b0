//! Replicas under load and faults, for any time.

use crate::chore::{ensure_backends, run};

/// Runs the chaos test on each backend with three and with five replicas, and prints what happened.
pub(crate) fn minutes(minutes: &str) -> Result<(), String> {
    let seconds = match minutes.parse::<u64>() {
        Ok(minutes) if minutes > 0 => (minutes * 60).to_string(),
        _ => return Err("--minutes is a whole number of at least 1".to_owned()),
    };
    ensure_backends()?;
    let test = ["test", "--release", "--package", "laneway-chaos", "--test", "short", "--", "--nocapture"];
    for replicas in ["3", "5"] {
        let settings = [("LANEWAY_CHAOS_SECONDS", seconds.as_str()), ("LANEWAY_CHAOS_REPLICAS", replicas)];
        run("cargo", &test, &settings)?;
    }
    Ok(())
}
