//! Replicas under load and faults, for any time.

use crate::chore::{build_program, ensure_backends, program, run};

/// Runs the chaos test on each backend with three and with five replicas, and prints what happened.
pub(crate) fn minutes(minutes: &str) -> Result<(), String> {
    let seconds = match minutes.parse::<u64>() {
        Ok(minutes) if minutes > 0 => (minutes * 60).to_string(),
        _ => return Err("--minutes is a whole number of at least 1".to_owned()),
    };
    for replicas in ["3", "5"] {
        let settings = [("LANEWAY_CHAOS_SECONDS", seconds.as_str()), ("LANEWAY_CHAOS_REPLICAS", replicas)];
        chaos(&["replicas_"], &settings)?;
    }
    Ok(())
}

/// Replaces the master of a Redis Cluster and of a Redis behind Sentinels this often, and shows how soon a server is ready.
pub(crate) fn failovers(rounds: &str) -> Result<(), String> {
    if !rounds.parse::<u32>().is_ok_and(|rounds| rounds > 0) {
        return Err("--failovers is a whole number of at least 1".to_owned());
    }
    ensure_backends()?;
    build_program()?;
    let program = program("debug");
    let settings = [("LANEWAY_CHAOS_FAILOVERS", rounds), ("LANEWAY_PROGRAM", &program.to_string_lossy())];
    // One after the other, so that the one does not slow down the other.
    let test =
        ["test", "--package", "laneway-chaos", "--test", "ready", "--", "--nocapture", "--test-threads", "1"];
    run("cargo", &test, &settings)
}

/// Lets Redis stand still `times` times.
pub(crate) fn freezes(times: &str) -> Result<(), String> {
    match times.parse::<u32>() {
        Ok(1..) => chaos(&["stands_still"], &[("LANEWAY_CHAOS_FREEZES", times)]),
        _ => Err("--freezes is a whole number of at least 1".to_owned()),
    }
}

fn chaos(tests: &[&str], settings: &[(&str, &str)]) -> Result<(), String> {
    ensure_backends()?;
    let test = [
        "test",
        "--release",
        "--package",
        "laneway-chaos",
        "--test",
        "short",
        "--test",
        "failovers",
        "--test",
        "freezes",
        "--",
        "--nocapture",
    ];
    run("cargo", &[&test[..], tests].concat(), settings)
}
