//! `laneway-fuzz TARGET --seconds N [--seed S]`: tries input until the time is over or something is found.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use laneway_fuzz::{Find, Fuzzer, Target, folder, inputs, keep, targets, watch_for_hangs};

const USAGE: &str = "laneway-fuzz TARGET --seconds N [--seed S]";
/// An input that is read for so long hangs. What takes shorter, and still long, is found without an end of the process.
const HANG: Duration = Duration::from_secs(30);
/// Where the process that tries inputs writes each before it does, so that one that kills it is known.
const CURRENT: &str = "LANEWAY_FUZZ_CURRENT";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [target, "--seconds", seconds] => run(target, seconds, &fresh_seed()),
        [target, "--seconds", seconds, "--seed", seed] => run(target, seconds, seed),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("fuzz: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn fresh_seed() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().to_string()
}

fn run(target: &str, seconds: &str, seed: &str) -> Result<(), String> {
    let number = |what: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("{what} is a whole number; {text:?} is not"))
    };
    let (time, number) = (Duration::from_secs(number("--seconds", seconds)?), number("--seed", seed)?);
    let mut all = targets::all()?;
    let names: Vec<&str> = all.iter().map(|target| target.name()).collect();
    let known = || format!("{target:?} is no target; there are {} and all", names.join(", "));
    match env::var(CURRENT) {
        Ok(current) => {
            let found = all.iter_mut().find(|known| known.name() == target).ok_or_else(known)?;
            fuzz(found.as_mut(), time, number, Path::new(&current))
        }
        Err(_) if target == "all" => names.iter().try_for_each(|name| watch(name, seconds, seed)),
        Err(_) if names.contains(&target) => watch(target, seconds, seed),
        Err(_) => Err(known()),
    }
}

/// Runs this program again to try inputs, and keeps the one that kills it.
fn watch(target: &str, seconds: &str, seed: &str) -> Result<(), String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let current: PathBuf = place.path().join("current");
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let arguments = [target, "--seconds", seconds, "--seed", seed];
    let status = Command::new(program).args(arguments).env(CURRENT, &current).status();
    let status = status.map_err(|error| error.to_string())?;
    match status.code() {
        Some(0) => Ok(()),
        Some(_) => Err(format!("{target} failed")),
        None => {
            let input = fs::read(&current).map_err(|error| error.to_string())?;
            let path = keep(target, &input).map_err(|error| error.to_string())?;
            Err(format!("{target}: {status}; the input is {}\n{}", path.display(), shown(&input)))
        }
    }
}

fn shown(input: &[u8]) -> String {
    input.escape_ascii().to_string().chars().take(2000).collect()
}

fn fuzz(target: &mut dyn Target, time: Duration, seed: u64, current: &Path) -> Result<(), String> {
    let name = target.name();
    let known = inputs(name).map_err(|error| format!("{}: {error}", folder(name).display()))?;
    let pool: Vec<Vec<u8>> = known.into_iter().map(|(_, input)| input).collect();
    let began = Instant::now();
    watch_for_hangs(HANG, Some(current.to_owned()));
    let mut fuzzer = Fuzzer::new(target, pool.clone(), seed);
    let mut waiting = pool;
    loop {
        let input = waiting.pop().unwrap_or_else(|| fuzzer.next_input());
        fs::write(current, &input).map_err(|error| format!("{}: {error}", current.display()))?;
        if let Err(find) = fuzzer.attempt(input) {
            let Find { input, problem } = fuzzer.shrink(find);
            let path = keep(name, &input).map_err(|error| error.to_string())?;
            return Err(format!(
                "{name}: {problem}\nseed {seed}, the input is {}\n{}",
                path.display(),
                shown(&input)
            ));
        }
        if waiting.is_empty() && began.elapsed() >= time {
            break;
        }
    }
    let figures = fuzzer.figures();
    println!(
        "fuzz: {name}: {} inputs, {} different outcomes, nothing found in {:.0} s; seed {seed}",
        figures.inputs,
        figures.outcomes,
        began.elapsed().as_secs_f64()
    );
    if env::var("LANEWAY_FUZZ_OUTCOMES").is_ok() {
        fuzzer.outcomes().for_each(|outcome| println!("  {outcome}"));
    }
    Ok(())
}
