//! Kills a real process with SIGKILL at random moments and looks at what is left.
//!
//! The parent starts this program again as a child that submits tasks and runs them, and tells of everything
//! through a pipe, which outlives it. After each kill the parent opens the store itself and compares. In the end a
//! last child finishes all work undisturbed.
//!
//! `LANEWAY_CRASH_ROUNDS` says how many kills (default 200), `LANEWAY_CRASH_SEED` which moments.

mod check;
mod child;

use std::env;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use check::Ledger;

/// Where the child finds the store.
pub(crate) const DIR: &str = "LANEWAY_CRASH_DIR";
/// The number of the child's first task.
pub(crate) const FIRST: &str = "LANEWAY_CRASH_FIRST";
/// Set for the child that finishes everything and is not killed.
pub(crate) const FINISH: &str = "LANEWAY_CRASH_FINISH";

fn main() -> ExitCode {
    let outcome = match env::var(DIR) {
        Ok(dir) => child::main(Path::new(&dir)),
        Err(_) => parent(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("crash: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn parent() -> Result<(), String> {
    let rounds = number("LANEWAY_CRASH_ROUNDS").unwrap_or(200);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = number("LANEWAY_CRASH_SEED").unwrap_or(now.as_nanos() as u64);
    println!("crash: {rounds} kills, seed {seed}");
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = place.path().join("data");
    let mut ledger = Ledger::default();
    let mut chance = seed | 1;
    let began = Instant::now();
    for round in 0..rounds {
        // From before the store is open to well into the work; at first mostly early.
        let longest = if round < 20 { 15_000 } else { 150_000 };
        let patience = Duration::from_micros(next(&mut chance) % longest);
        let told = run_child(&dir, &ledger, Some(patience))?;
        ledger
            .read(&told)
            .and_then(|()| ledger.compare(&dir))
            .map_err(|problem| format!("round {round}, killed after {patience:?}: {problem}; seed {seed}"))?;
    }
    let told = run_child(&dir, &ledger, None)?;
    ledger.read(&told).and_then(|()| ledger.compare(&dir)).and_then(|()| ledger.close())?;
    println!("crash: {} in {:.1} s", ledger.figures(), began.elapsed().as_secs_f64());
    ledger.is_telling(rounds)
}

/// Runs a child, kills it when its time is over, and returns what it told.
fn run_child(dir: &Path, ledger: &Ledger, patience: Option<Duration>) -> Result<String, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.env(DIR, dir).env(FIRST, ledger.next().to_string()).stdout(Stdio::piped());
    if patience.is_none() {
        command.env(FINISH, "1");
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut pipe = child.stdout.take().ok_or("the child has no pipe")?;
    let reader = std::thread::spawn(move || {
        let mut told = String::new();
        pipe.read_to_string(&mut told).map(|_| told)
    });
    if let Some(patience) = patience {
        sleep(patience);
        child.kill().map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if patience.is_none() && !status.success() {
        return Err(format!("the last child failed: {status}"));
    }
    let told = reader.join().map_err(|_| "the reader panicked")?;
    told.map_err(|error| error.to_string())
}

fn next(chance: &mut u64) -> u64 {
    *chance ^= *chance << 13;
    *chance ^= *chance >> 7;
    *chance ^= *chance << 17;
    *chance
}
