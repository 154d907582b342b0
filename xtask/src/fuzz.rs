//! Runs the libFuzzer targets of `tools/fuzz/libfuzzer` with cargo-fuzz.

use std::fs;
use std::process::Command;

use crate::chore::{root, run};

const LIBFUZZER: &str = "tools/fuzz/libfuzzer";
/// An input that takes longer than this hangs its reader.
const HANG_SECONDS: &str = "-timeout=30";
/// The server targets keep a whole server in memory.
const MEMORY_MB: &str = "-rss_limit_mb=4096";

/// `fuzz TARGET --seconds N`; the target `all` runs each in turn.
pub(crate) fn fuzz(words: &[&str]) -> Result<(), String> {
    let &[target, "--seconds", seconds] = words else {
        return Err("fuzz TARGET --seconds N".to_owned());
    };
    if !seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0) {
        return Err("--seconds is a whole number of at least 1".to_owned());
    }
    let targets = targets()?;
    let chosen: Vec<&String> = targets.iter().filter(|name| target == "all" || *name == target).collect();
    if chosen.is_empty() {
        return Err(format!("{target:?} is not a target; there are {} and all", targets.join(", ")));
    }
    ensure_cargo_fuzz()?;
    chosen.into_iter().try_for_each(|target| run_target(target, seconds))
}

/// The targets are the folders of the corpus.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("tools/fuzz/corpus");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn ensure_cargo_fuzz() -> Result<(), String> {
    let version = Command::new("cargo").args(["fuzz", "--version"]).output();
    if version.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    run("cargo", &["install", "--locked", "cargo-fuzz"], &[]).map_err(|error| {
        format!("{error}; cargo-fuzz is missing: install it by `cargo install cargo-fuzz`, with network access and a C++ compiler")
    })
}

/// New inputs stay in `target/`; an input that finds something is written into the kept corpus.
fn run_target(target: &str, seconds: &str) -> Result<(), String> {
    let fresh = root().join("target/fuzz/corpus").join(target);
    fs::create_dir_all(&fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
    let kept = format!("tools/fuzz/corpus/{target}");
    let finds = format!("-artifact_prefix={kept}/");
    let dictionary = format!("-dict=tools/fuzz/dictionaries/{target}.dict");
    let time = format!("-max_total_time={seconds}");
    // The coverage flags are stable; the sanitizers are not.
    let arguments = [
        "fuzz",
        "run",
        "--fuzz-dir",
        LIBFUZZER,
        "--sanitizer",
        "none",
        "--target-dir",
        "target/fuzz",
        target,
        &fresh.to_string_lossy(),
        &kept,
        "--",
        &finds,
        &dictionary,
        &time,
        HANG_SECONDS,
        MEMORY_MB,
        "-max_len=65536",
        "-print_final_stats=1",
    ];
    run("cargo", &arguments, &[]).map_err(|error| {
        format!("{error}; an input that found something is in {kept}, where the tests replay it")
    })
}
