//! Every change that cargo-mutants knows to make to the core, one at a time: some test must turn red.
//!
//! What is changed and with which tests says `.cargo/mutants.toml`. A change that no test notices is either listed in
//! `survivors.txt` with the reason why that is right, or it fails the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{root, run};

/// The tests that every change meets first, and those that take long, which only those meet that the first have missed.
const FAST: &[&str] = &[
    "--lib",
    "--test=bad_input",
    "--test=bad_messages",
    "--test=claims",
    "--test=model",
    "--test=replaying",
    "--test=scenarios",
    "--test=session_guide",
    "--test=session_texts",
    "--test=stopping",
];
const SLOW: &[&str] = &["--test=conversations", "--test=histories"];

/// Makes every change, or the `k`th of `n` parts of them (`k/n`, from 0).
pub(crate) fn all(shard: Option<&str>) -> Result<(), String> {
    let program = installed()?;
    let which = shard.map(|shard| vec!["--shard".to_owned(), shard.to_owned()]).unwrap_or_default();
    let first = mutate(&program, "fast", FAST, &which)?;
    let missed: Vec<String> =
        first.missed.iter().flat_map(|line| ["--re".to_owned(), format!("^{}$", escaped(line))]).collect();
    let second = match missed[..] {
        [] => Outcome::default(),
        _ => mutate(&program, "slow", SLOW, &missed)?,
    };
    let known = known(&read(&root().join("xtask/survivors.txt"))?)?;
    let (explained, unexplained): (Vec<String>, Vec<String>) =
        second.missed.into_iter().partition(|line| known.contains(&without_place(line)));
    println!(
        "mutants: {} caught, {} of them by the slow tests only, {} ran for ever, {} do not compile, {} survived with a \
         reason, {} without",
        first.caught + second.caught,
        second.caught,
        first.endless + second.endless,
        first.unviable,
        explained.len(),
        unexplained.len()
    );
    match unexplained[..] {
        [] => Ok(()),
        _ => Err(format!(
            "no test notices, and xtask/survivors.txt does not say why that is right:\n  {}",
            unexplained.join("\n  ")
        )),
    }
}

/// What became of some changes.
#[derive(Default)]
struct Outcome {
    caught: usize,
    endless: usize,
    unviable: usize,
    missed: Vec<String>,
}

/// Makes the changes that `which` asks for, each met by these tests.
fn mutate(program: &Path, name: &str, tests: &[&str], which: &[String]) -> Result<Outcome, String> {
    let output = root().join("target").join("mutants-all").join(name);
    fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let mut command = Command::new(program);
    command.args(["mutants", "--package", "laneway-core", "--jobs", "1", "--colors", "never", "--no-times"]);
    command.args(["--caught", "--output"]).arg(&output).args(which).current_dir(root());
    command.args(tests.iter().map(|test| format!("--cargo-test-arg={test}")));
    // It builds in a copy of the repository, which must not share anything with this one.
    command.env_remove("CARGO_TARGET_DIR");
    let status = command.status().map_err(|error| format!("cargo-mutants did not start: {error}"))?;
    // 2: some were missed; 3: some ran for ever, which is noticed.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo-mutants failed: {status}"));
    }
    let lines = |name: &str| read(&output.join("mutants.out").join(name));
    Ok(Outcome {
        caught: lines("caught.txt")?.lines().count(),
        endless: lines("timeout.txt")?.lines().count(),
        unviable: lines("unviable.txt")?.lines().count(),
        missed: lines("missed.txt")?.lines().map(str::to_owned).collect(),
    })
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

/// cargo-mutants, from here or from wherever it is installed.
fn installed() -> Result<PathBuf, String> {
    let tools = root().join("target").join("tools");
    let ours = tools.join("bin").join("cargo-mutants");
    let works = |program: &Path| Command::new(program).args(["mutants", "--version"]).output().is_ok();
    if let Some(found) = [PathBuf::from("cargo-mutants"), ours.clone()].into_iter().find(|path| works(path)) {
        return Ok(found);
    }
    let tools = tools.to_string_lossy();
    run("cargo", &["install", "cargo-mutants", "--locked", "--root", &tools], &[])?;
    Ok(ours)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The changes that are listed. Above each stand the lines of its reason, which begin with `#`.
fn known(text: &str) -> Result<Vec<String>, String> {
    let mut known = Vec::new();
    let mut has_reason = false;
    for line in text.lines() {
        match line.trim() {
            "" => has_reason = false,
            line if line.starts_with('#') => has_reason = true,
            line if has_reason => known.push(line.to_owned()),
            line => return Err(format!("xtask/survivors.txt: {line:?} has no reason above it")),
        }
    }
    Ok(known)
}

/// `file.rs:12:3: what` without its line and column, which move with every edit.
fn without_place(line: &str) -> String {
    let (file, rest) = line.split_once(".rs:").unwrap_or((line, ""));
    let what = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ':');
    format!("{file}.rs:{what}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_survivor_is_known_by_its_file_and_what_is_changed_and_has_a_reason() {
        let text = "# it is only faster\n# that way\na/b.rs: replace x -> u8 with 0\n";
        let known = super::known(text).unwrap_or_default();
        assert_eq!(known, [super::without_place("a/b.rs:17:22: replace x -> u8 with 0")]);
        assert!(super::known("a/b.rs: replace x\n").is_err());
        assert!(super::known("# one\na.rs: x\n\nb.rs: y\n").is_err());
    }
}
