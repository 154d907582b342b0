//! Every change that cargo-mutants knows to make to the core, one at a time: some test must turn red.
//!
//! What is changed and with which tests says `.cargo/mutants.toml`. A change that no test notices is either listed in
//! `survivors.txt` with the reason why that is right, or it fails the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{root, run};

/// Makes every change, or the `k`th of `n` parts of them (`k/n`, from 0).
pub(crate) fn all(shard: Option<&str>) -> Result<(), String> {
    let program = installed()?;
    let output = root().join("target").join("mutants-all");
    fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let mut command = Command::new(program);
    command.args(["mutants", "--package", "laneway-core", "--jobs", "1", "--colors", "never", "--no-times"]);
    command.args(["--caught", "--output"]).arg(&output).current_dir(root());
    command.args(shard.map(|shard| ["--shard", shard]).into_iter().flatten());
    // It builds in a copy of the repository, which must not share anything with this one.
    command.env_remove("CARGO_TARGET_DIR");
    let status = command.status().map_err(|error| format!("cargo-mutants did not start: {error}"))?;
    // 2: some were missed; 3: some ran for ever, which is noticed.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo-mutants failed: {status}"));
    }
    let lines = |name: &str| read(&output.join("mutants.out").join(name));
    let missed = lines("missed.txt")?;
    let known = known(&read(&root().join("xtask/survivors.txt"))?)?;
    let (explained, unexplained): (Vec<&str>, Vec<&str>) =
        missed.lines().partition(|line| known.contains(&without_place(line)));
    println!(
        "mutants: {} caught, {} ran for ever, {} do not compile, {} survived with a reason, {} without",
        lines("caught.txt")?.lines().count(),
        lines("timeout.txt")?.lines().count(),
        lines("unviable.txt")?.lines().count(),
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
