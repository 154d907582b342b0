//! `laneway-switches ROOT COPY CARGO-MUTANTS JOBS all|apart [WORD]`: makes every change to the core that cargo-mutants lists (or
//! those with this word in their name), one at a time, and shows that some test notices each.
//!
//! All of them are compiled at once into a copy of the repository, each behind a switch that an environment variable
//! turns on: so a change costs the tests that come by it, and no build. The few that cannot be there with the others
//! (constants, values of a hidden type) are made by cargo-mutants itself; `apart` makes only those.

mod apart;
mod build;
mod change;
mod reasons;
mod sites;
mod trial;
mod written;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use build::Build;
use change::Change;
use trial::{Test, Verdict};

const USAGE: &str = "laneway-switches ROOT COPY CARGO-MUTANTS JOBS all|apart [WORD]";
const PACKAGE: &str = "laneway-core";
const FOLDER: &str = "crates/core";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("mutants: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (root, copy, program, jobs, which, word) = match words[..] {
        [root, copy, program, jobs, which] => (root, copy, program, jobs, which, ""),
        [root, copy, program, jobs, which, word] => (root, copy, program, jobs, which, word),
        _ => return Err(USAGE.to_owned()),
    };
    let [root, copy, program] = [root, copy, program].map(Path::new);
    let jobs: usize = jobs.parse().map_err(|_| format!("JOBS is no number: {jobs:?}"))?;
    let mut changes = chosen(change::all(program, root, PACKAGE)?, word)?;
    println!("mutants: {} changes", changes.len());
    let mut tally = match which {
        "all" => switched(copy, PACKAGE, FOLDER, &changes, jobs)?,
        "apart" => {
            changes = only_apart(copy, PACKAGE, FOLDER, &changes)?;
            if changes.is_empty() && !word.is_empty() {
                return Err(format!("no change that has {word:?} in its name needs a build of its own"));
            }
            let apart = (1..).zip(&changes).map(|(switch, _)| switch).collect();
            Tally { apart, ..Tally::default() }
        }
        _ => return Err(USAGE.to_owned()),
    };
    let is_apart = which == "apart";
    // A run of those that need their own build must not take the place of what a run of all has told.
    let outcomes = copy.with_file_name(if is_apart { "outcomes-apart.txt" } else { "outcomes.txt" });
    keep(&outcomes, &changes, &tally)?;
    make_apart(root, program, &changes, &mut tally, jobs)?;
    keep(&outcomes, &changes, &tally)?;
    judge(root, &changes, !is_apart && word.is_empty(), &tally)
}

/// The changes with a word in their name. A word that none has is a mistake: nothing would be shown.
fn chosen(mut changes: Vec<Change>, word: &str) -> Result<Vec<Change>, String> {
    changes.retain(|change| change.name.contains(word));
    if changes.is_empty() { Err(format!("no change has {word:?} in its name")) } else { Ok(changes) }
}

/// Makes the changes that need a build of their own.
fn make_apart(
    root: &Path,
    program: &Path,
    changes: &[Change],
    tally: &mut Tally,
    jobs: usize,
) -> Result<(), String> {
    let alone: Vec<&Change> = tally.apart.iter().map(|switch| &changes[*switch as usize - 1]).collect();
    println!("mutants: {} changes are made by cargo-mutants", alone.len());
    let made = apart::make(program, root, PACKAGE, &alone, jobs)?;
    for (switch, change) in (1..).zip(changes) {
        if let Some(verdict) = made.verdicts.get(&change.name) {
            tally.verdicts.insert(switch, verdict.clone());
        }
    }
    tally.unviable += made.unviable;
    tally.apart.clear();
    Ok(())
}

/// Holds all survivors against their reasons. `are_all` says that there are no other changes.
fn judge(root: &Path, changes: &[Change], are_all: bool, tally: &Tally) -> Result<(), String> {
    let count = |is: fn(&Verdict) -> bool| tally.verdicts.values().filter(|verdict| is(verdict)).count();
    let missed: Vec<&Change> = tally.missed().map(|switch| &changes[switch as usize - 1]).collect();
    let list = root.join("xtask/survivors.txt");
    let list = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let compared = reasons::compare(&list, changes, are_all, &missed)?;
    println!(
        "mutants: {} caught, {} ran for ever, {} do not compile, {} survived with a reason, {} without",
        count(|verdict| matches!(verdict, Verdict::Caught(_))),
        count(|verdict| matches!(verdict, Verdict::Endless(_))),
        tally.unviable,
        missed.len() - compared.unexplained.len(),
        compared.unexplained.len()
    );
    compared.outcome()
}

/// What became of changes, by their switches.
#[derive(Default)]
struct Tally {
    verdicts: BTreeMap<u32, Verdict>,
    /// Those that cargo-mutants is still to make.
    apart: Vec<u32>,
    unviable: usize,
}

impl Tally {
    fn missed(&self) -> impl Iterator<Item = u32> {
        self.verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Missed(_)))
            .map(|(switch, _)| *switch)
    }
}

/// Builds all changes at once in a fresh copy, and meets each with the tests that come by it.
fn switched(
    copy: &Path,
    package: &str,
    folder: &str,
    changes: &[Change],
    jobs: usize,
) -> Result<Tally, String> {
    let mut build = Build::new(copy, package, changes)?;
    build.write_all(&Path::new(folder).join("src/lib.rs"))?;
    let programs = build.programs()?;
    let folder = copy.join(folder);
    let tests = trial::tests(&programs, &folder)?;
    let inside = |switch: &u32| !build.broken.contains(switch) && !build.apart.contains(switch);
    let switches: Vec<u32> = (1..).zip(changes).map(|(switch, _)| switch).filter(inside).collect();
    println!("mutants: {} of them in one build, met by {} tests", switches.len(), tests.len());
    let verdicts = verdicts(&tests, &folder, changes, &switches, jobs)?;
    Ok(Tally { verdicts, apart: build.apart.into_iter().collect(), unviable: build.broken.len() })
}

/// The changes that cannot be in one build with the others.
fn only_apart(copy: &Path, package: &str, folder: &str, changes: &[Change]) -> Result<Vec<Change>, String> {
    let mut build = Build::new(copy, package, changes)?;
    build.write_all(&Path::new(folder).join("src/lib.rs"))?;
    Ok(build.apart.iter().map(|switch| changes[*switch as usize - 1].clone()).collect())
}

/// Meets changes with tests, some at the same time.
fn verdicts(
    tests: &[Test],
    folder: &Path,
    changes: &[Change],
    switches: &[u32],
    jobs: usize,
) -> Result<BTreeMap<u32, Verdict>, String> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    let work = || -> Result<(), String> {
        while let Some(switch) = switches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = trial::verdict(tests, folder, *switch)?;
            if let Verdict::Missed(tests) = verdict {
                println!("missed by {tests:>3} tests: {}", changes[*switch as usize - 1].name);
            }
            let mut verdicts = verdicts.lock().map_err(|_| "another trial failed")?;
            verdicts.insert(*switch, verdict);
            if verdicts.len().is_multiple_of(250) {
                println!("mutants: {} of {}", verdicts.len(), switches.len());
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a trial failed".to_owned())?)
    })?;
    verdicts.into_inner().map_err(|_| "a trial failed".to_owned())
}

/// Keeps what became of each change, for whoever wants to know which test catches it.
fn keep(path: &PathBuf, changes: &[Change], tally: &Tally) -> Result<(), String> {
    fs::write(path, outcomes(changes, tally)).map_err(|error| format!("{}: {error}", path.display()))
}

fn outcomes(changes: &[Change], tally: &Tally) -> String {
    let lines = (1..).zip(changes).map(|(switch, change)| match tally.verdicts.get(&switch) {
        Some(verdict) => format!("{verdict:?}\t{}\n", change.name),
        None if tally.apart.contains(&switch) => format!("not made yet\t{}\n", change.name),
        None => format!("does not compile\t{}\n", change.name),
    });
    lines.collect()
}
