//! Planted bugs: each must turn some test red.
//!
//! A copy of the repository is kept in `target/mutants`; one bug after another is written into it, the core's
//! tests are run until one fails, and the bug is taken out again.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIST: &str = "xtask/mutants.txt";
/// A bug that makes a test run for ever is caught by patience.
const PATIENCE: Duration = Duration::from_secs(180);

struct Mutant {
    title: String,
    file: PathBuf,
    find: String,
    replace: String,
}

/// Plants every bug whose title contains `word`.
pub(crate) fn run(root: &Path, word: &str) -> Result<(), String> {
    let mutants = parse(&read(&root.join(LIST))?)?;
    let chosen: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.title.contains(word)).collect();
    if chosen.is_empty() {
        return Err(format!("no planted bug has {word:?} in its title"));
    }
    if let Some(problem) = lost_places(root)?.pop() {
        return Err(problem);
    }
    let copy = root.join("target/mutants/tree");
    copy_tree(root, &copy)?;
    build(&copy)?;
    if let Some(test) = failing_test(&copy)? {
        return Err(format!("without any bug planted, {test} fails already"));
    }
    let mut survivors = 0;
    for (number, mutant) in chosen.iter().enumerate() {
        let file = copy.join(&mutant.file);
        let sound = read(&file)?;
        write(&file, &sound.replacen(&mutant.find, &mutant.replace, 1))?;
        let caught = failing_test(&copy);
        write(&file, &sound)?;
        let verdict = match caught {
            Ok(Some(test)) => format!("caught by {test}"),
            Ok(None) => {
                survivors += 1;
                "SURVIVED".to_owned()
            }
            Err(error) => {
                survivors += 1;
                error
            }
        };
        println!("{:>3}/{} {:<58} {verdict}", number + 1, chosen.len(), mutant.title);
    }
    println!("{} passed, {survivors} failed", chosen.len() - survivors);
    if survivors == 0 { Ok(()) } else { Err(format!("{survivors} planted bugs survived")) }
}

/// The planted bugs that no longer have one place in the code.
pub(crate) fn lost_places(root: &Path) -> Result<Vec<String>, String> {
    let mut lost = Vec::new();
    for Mutant { title, file, find, .. } in parse(&read(&root.join(LIST))?)? {
        let places = read(&root.join(&file))?.matches(&find).count();
        if places != 1 {
            lost.push(format!(
                "{LIST}: '{title}' must have one place in {} and has {places}",
                file.display()
            ));
        }
    }
    Ok(lost)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads entries of the form `# title`, `file: …`, `find:` and lines, `replace:` and lines, up to `===`.
fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants = Vec::new();
    for entry in text.split("\n===").map(str::trim).filter(|entry| !entry.is_empty()) {
        let (head, body) = entry.split_once("\nfind:\n").ok_or(format!("no 'find:' in {entry:?}"))?;
        let (find, replace) = match body.split_once("\nreplace:\n") {
            Some(both) => both,
            None => (body.strip_suffix("\nreplace:").ok_or(format!("no 'replace:' in {entry:?}"))?, ""),
        };
        let line = |start: &str| head.lines().find_map(|line| line.strip_prefix(start));
        let title = line("# ").ok_or(format!("no title in {entry:?}"))?;
        let file = line("file: ").ok_or(format!("no 'file:' in {entry:?}"))?;
        mutants.push(Mutant {
            title: title.trim().to_owned(),
            file: file.trim().into(),
            find: find.to_owned(),
            replace: replace.to_owned(),
        });
    }
    Ok(mutants)
}

/// Copies what git knows of, and what is new, but nothing that is built.
pub(crate) fn copy_tree(root: &Path, copy: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git did not start: {error}"))?;
    let names = String::from_utf8_lossy(&listed.stdout);
    for name in names.split('\0').filter(|name| !name.is_empty() && root.join(name).is_file()) {
        let target = copy.join(name);
        let folder = target.parent().unwrap_or(copy);
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let bytes = fs::read(root.join(name)).map_err(|error| format!("{name}: {error}"))?;
        if fs::read(&target).ok().as_ref() != Some(&bytes) {
            fs::write(&target, bytes).map_err(|error| format!("{}: {error}", target.display()))?;
        }
    }
    Ok(())
}

/// Builds everything once, which may take its time.
fn build(copy: &Path) -> Result<(), String> {
    let status = Command::new("cargo")
        .args(["test", "--quiet", "--no-run", "--package", "laneway-core", "--lib", "--tests"])
        .env("CARGO_TARGET_DIR", copy.join("../build"))
        .current_dir(copy)
        .status()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("the core's tests do not build".to_owned()) }
}

/// The core's tests, those first that catch most for the least time.
const TARGETS: &[&[&str]] = &[
    &["--lib"],
    &["--test", "bad_input"],
    &["--test", "shutdown"],
    &["--test", "bad_messages"],
    &["--test", "model"],
    &["--test", "session_texts"],
    &["--test", "scenarios"],
    &["--test", "session_histories"],
    &["--test", "task_histories"],
    &["--tests"],
];

/// Runs the core's tests in the copy until one fails, and says which.
fn failing_test(copy: &Path) -> Result<Option<String>, String> {
    for target in TARGETS {
        if let Some(test) = failing_test_of(copy, target)? {
            return Ok(Some(test));
        }
    }
    Ok(None)
}

fn failing_test_of(copy: &Path, target: &[&str]) -> Result<Option<String>, String> {
    let mut child = Command::new("cargo")
        .args(["test", "--quiet", "--package", "laneway-core"])
        .args(target)
        .env("CARGO_TARGET_DIR", copy.join("../build"))
        .current_dir(copy)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    let readers = [
        child.stdout.take().map(|pipe| read_in_background(Box::new(pipe))),
        child.stderr.take().map(|pipe| read_in_background(Box::new(pipe))),
    ];
    let finished = wait_patiently(&mut child)?;
    let output: Vec<String> =
        readers.into_iter().flatten().map(|reader| reader.join().unwrap_or_default()).collect();
    let output = output.join("\n");
    match finished {
        None => Ok(Some("patience: it ran for ever".to_owned())),
        Some(true) => Ok(None),
        Some(false) if output.contains("could not compile") => {
            Err(format!("a planted bug does not compile:\n{output}"))
        }
        Some(false) => Ok(Some(name_of_failure(&output))),
    }
}

/// Whether the tests passed; `None` if they would not come to an end.
fn wait_patiently(child: &mut Child) -> Result<Option<bool>, String> {
    let patience_ends = Instant::now() + PATIENCE;
    while Instant::now() < patience_ends {
        if let Some(status) = child.try_wait().map_err(|error| format!("cargo was lost: {error}"))? {
            return Ok(Some(status.success()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Cargo's own child, the test, would outlive it: the whole group is ended.
    let group = format!("-{}", child.id());
    let ended = Command::new("kill").args(["-KILL", "--", &group]).status();
    ended.map_err(|error| format!("cargo would not stop: {error}"))?;
    child.wait().map_err(|error| format!("cargo was lost: {error}"))?;
    Ok(None)
}

fn read_in_background(mut pipe: Box<dyn Read + Send>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        match pipe.read_to_end(&mut bytes) {
            Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("unreadable: {error}"),
        }
    })
}

/// The first test that libtest lists below `failures:`.
fn name_of_failure(output: &str) -> String {
    let named = output.lines().find_map(|line| line.strip_prefix("---- ")?.strip_suffix(" stdout ----"));
    named.unwrap_or("a crash").to_owned()
}
