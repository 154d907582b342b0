//! Runs seeds and says what they showed: `laneway-sim [--seeds N] [--seed S] [--threads N] [--planted]`.

use std::process::ExitCode;

use laneway_sim::{Bug, Summary, Wanted, explain};

struct Asked {
    seeds: Option<u64>,
    seed: Option<u64>,
    threads: Option<usize>,
    is_planted: bool,
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked { seeds: None, seed: None, threads: None, is_planted: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().unwrap_or_default();
            value.parse::<u64>().map_err(|_| format!("{word} wants a whole number, not {value:?}"))
        };
        match word.as_str() {
            "--seeds" => asked.seeds = Some(number()?.max(1)),
            "--seed" => asked.seed = Some(number()?),
            "--threads" => asked.threads = Some(number()?.max(1) as usize),
            "--planted" => asked.is_planted = true,
            _ => return Err(format!("{word} is not known: --seeds N, --seed S, --threads N or --planted")),
        }
    }
    if asked.is_planted && (asked.seed.is_some() || asked.threads.is_some()) {
        // Each bug is looked for from the first seed on.
        return Err("--planted goes with --seeds N alone: it begins at seed 0, in one thread".to_owned());
    }
    Ok(asked)
}

fn main() -> ExitCode {
    let asked = match asked() {
        Ok(asked) => asked,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    if asked.is_planted {
        return planted(&asked);
    }
    // One seed alone is looked at closely.
    let count = asked.seeds.unwrap_or(if asked.seed.is_some() { 1 } else { 1000 });
    let threads =
        asked.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let summary = Summary::of_seeds(asked.seed.unwrap_or(0), count, threads, Wanted::default());
    println!("{summary}");
    if let Some((seed, _)) = summary.failed {
        println!("{}", explain(seed, Wanted::default()));
        println!("cargo xtask sim --seed {seed} repeats it");
        return ExitCode::FAILURE;
    }
    let never = summary.never();
    if count >= 1000 && !never.is_empty() {
        println!("never happened: {never:?}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Plants each bug in turn and says which seed shows it.
fn planted(asked: &Asked) -> ExitCode {
    let seeds = asked.seeds.unwrap_or(1000);
    let mut is_missed = false;
    for bug in Bug::ALL {
        let name = format!("{bug:?}");
        match bug.found(seeds) {
            Ok((seed, violation)) => println!("{name:<20} seed {seed:>4}: {violation}"),
            Err(problem) => {
                is_missed = true;
                println!("{name:<20} {problem}");
            }
        }
    }
    if is_missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
