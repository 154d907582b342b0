//! Compares the engine with tokio alone, a3s-lane, apalis and plain SQLite, all in one run.
//!
//! `cargo xtask bench engine [WORD]` runs the rows whose name contains the word. Subject and references take turns,
//! round by round. A figure is the median over the rounds of the ratio within a round. The exit status says whether
//! all bounds hold.
//!
//! `cargo xtask compare [--write]` runs the same work through Laneway and its peers: see `compare/mod.rs`.

mod compare;
mod counts;
mod disk;
mod lanes;
mod memory;
mod noise;
mod noops;
mod open;
mod table;
mod timing;

use std::path::Path;
use std::process::ExitCode;

use table::Table;

pub type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == memory::CHILD) {
        return ended(memory::child(words.get(1).map_or("", String::as_str)).map(|()| true));
    }
    match words.first().map(String::as_str) {
        Some(compare::CHILD) => return ended(compare::child(&words[1..]).map(|()| true)),
        Some(compare::COMPARE) => {
            let rounds = words.get(1).map_or("7", String::as_str);
            return ended(compare::run(rounds, words.get(2).map(Path::new)).map(|()| true));
        }
        Some(counts::CHILD) => return ended(counts::child(&words[1..]).map(|()| true)),
        _ => {}
    }
    let word = words.into_iter().find(|word| !word.starts_with('-')).unwrap_or_default();
    ended(measure(&word))
}

fn ended(outcome: Result<bool, Failed>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(word: &str) -> Result<bool, Failed> {
    let mut table = Table::new(word);
    let noise = noise::Noise::start();
    for lanes in [1, 6] {
        noops::measure(&mut table, lanes)?;
    }
    noops::from_many_callers(&mut table)?;
    counts::measure(&mut table)?;
    timing::fan_out(&mut table)?;
    timing::idle(&mut table)?;
    memory::measure(&mut table)?;
    disk::throughput(&mut table)?;
    disk::submit(&mut table)?;
    open::measure(&mut table)?;
    noise.report();
    Ok(table.conclude())
}
