//! Every change that cargo-mutants knows to make to the core, one at a time: some test must turn red.
//!
//! What is changed says `.cargo/mutants.toml`; `crates/switches` makes the changes. One that no test notices is either
//! listed in `survivors.txt` with the reason why that is right, or it fails the command.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mutants::copy_tree;
use crate::{root, run};

/// Makes every change, or those that need a build of their own: `[--jobs N] [WORD]` says how many at a time, and of which name.
pub(crate) fn make(which: &str, words: &[&str]) -> Result<(), String> {
    let (jobs, word) = match *words {
        [] => (None, ""),
        ["--jobs", jobs] => (Some(jobs), ""),
        // What looks like an option is a mistake, and no part of a name.
        ["--jobs", jobs, word] if !word.starts_with("--") => (Some(jobs), word),
        [word] if !word.starts_with("--") => (None, word),
        _ => return Err("mutants --all|--apart [--jobs N] [WORD]".to_owned()),
    };
    let program = installed()?;
    let (root, copy) = (root(), root().join("target/switches/tree"));
    copy_tree(&root, &copy)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let [root, copy, program] = [&root, &copy, &program].map(|path| path.to_string_lossy().into_owned());
    let words = [&root, &copy, &program, jobs.unwrap_or(&cores), which, word];
    run("cargo", &[&["run", "--quiet", "--package", "laneway-switches", "--"], &words[..]].concat(), &[])
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
