//! The changes that cannot be in one build with the others: cargo-mutants makes them, one build each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::change::Change;
use crate::trial::Verdict;

/// What became of changes, by their names.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) verdicts: BTreeMap<String, Verdict>,
    pub(crate) unviable: usize,
}

/// Makes changes in a build each, some at the same time, each met by all tests.
pub(crate) fn make(
    program: &Path,
    root: &Path,
    package: &str,
    changes: &[&Change],
    jobs: usize,
) -> Result<Made, String> {
    let mut made = Made::default();
    if changes.is_empty() {
        return Ok(made);
    }
    let output = root.join("target/mutants-all");
    fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let mut command = Command::new(program);
    command.args([
        "mutants",
        "--package",
        package,
        "--jobs",
        &jobs.max(1).to_string(),
        "--colors",
        "never",
        "--no-times",
    ]);
    command
        .args(["--cargo-test-arg=--lib", "--cargo-test-arg=--tests", "--output"])
        .arg(&output)
        .current_dir(root);
    command
        .args(changes.iter().flat_map(|change| ["--re".to_owned(), format!("^{}$", escaped(&change.name))]));
    // It builds in a copy of the repository, which must not share anything with this one.
    let status = command.env_remove("CARGO_TARGET_DIR").status();
    let status = status.map_err(|error| format!("cargo-mutants did not start: {error}"))?;
    // 2: some were missed; 3: some ran for ever, which is noticed.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo-mutants failed: {status}"));
    }
    let asked: BTreeSet<&str> = changes.iter().map(|change| &*change.name).collect();
    let lines = |name: &str| -> Result<Vec<String>, String> {
        let path = output.join("mutants.out").join(name);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.lines().filter(|line| asked.contains(line)).map(str::to_owned).collect())
    };
    let by = "cargo-mutants".to_owned();
    for (file, verdict) in [
        ("caught.txt", Verdict::Caught(by.clone())),
        ("timeout.txt", Verdict::Endless(by)),
        ("missed.txt", Verdict::Missed(0)),
    ] {
        made.verdicts.extend(lines(file)?.into_iter().map(|line| (line, verdict.clone())));
    }
    let unviable = lines("unviable.txt")?;
    made.unviable = unviable.len();
    let told = made.verdicts.keys().chain(&unviable).map(String::as_str).collect();
    all_made(&asked, &told)?;
    Ok(made)
}

/// Of each change that was asked for, something must be told: one that was not made has shown nothing.
pub(crate) fn all_made(asked: &BTreeSet<&str>, told: &BTreeSet<&str>) -> Result<(), String> {
    let forgotten: Vec<&str> = asked.difference(told).copied().collect();
    if forgotten.is_empty() {
        return Ok(());
    }
    Err(format!("cargo-mutants did not make:\n  {}", forgotten.join("\n  ")))
}

/// A text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
