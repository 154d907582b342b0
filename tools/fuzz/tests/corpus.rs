//! Replays the corpus: every kept input is read or refused, and no thread panics over it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::panic;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use laneway_fuzz::{FuzzOutcome, TARGETS, read};

/// An input that takes longer than this hangs its reader.
const HANG: Duration = Duration::from_secs(60);

/// Panics of any thread: those of a server's tasks do not reach the thread that asks the server.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// One test, because the panic hook belongs to the whole process.
#[test]
fn every_kept_input_is_understood_or_refused() {
    panic::set_hook(Box::new(|panic| {
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }));
    let replayed = replay();
    // From here on a panic is the test's own.
    drop(panic::take_hook());
    let seen = replayed.unwrap_or_else(|problem| panic!("{problem}"));
    // A corpus whose inputs all end the same way shows little.
    for (target, _) in TARGETS {
        for outcome in [FuzzOutcome::Understood, FuzzOutcome::Refused] {
            assert!(seen.contains(&(target, outcome)), "{target}: no input is {outcome:?}");
        }
    }
}

/// Every target with the outcomes of its inputs, or the first input that breaks a promise.
fn replay() -> Result<BTreeSet<(&'static str, FuzzOutcome)>, String> {
    let (sender, inputs) = channel();
    thread::spawn(move || {
        for (target, _) in TARGETS {
            for (file, input) in corpus(target) {
                sender.send((target, file.clone(), None)).unwrap();
                let outcome = panic::catch_unwind(|| read(target, &input)).ok();
                sender.send((target, file, outcome)).unwrap();
            }
        }
    });
    let mut seen = BTreeSet::new();
    let mut last = String::new();
    loop {
        match inputs.recv_timeout(HANG) {
            Ok((target, file, outcome)) => {
                last = format!("{target}/{file}");
                seen.extend(outcome.map(|outcome| (target, outcome)));
            }
            Err(RecvTimeoutError::Timeout) => return Err(format!("{last} hangs its reader")),
            Err(RecvTimeoutError::Disconnected) => return Ok(seen),
        }
        if let Some(panic) = PANICS.lock().unwrap_or_else(PoisonError::into_inner).first() {
            return Err(format!("{last}: {panic}"));
        }
    }
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut inputs: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    inputs.sort();
    inputs
}
