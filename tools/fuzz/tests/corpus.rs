//! Every target reads its corpus as it must, and some more; `cargo xtask fuzz` goes on from there.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use laneway_fuzz::{Chance, Fuzzer, Target, inputs, shape, targets, try_input, watch_for_hangs};

/// How many inputs beyond the corpus each target is tried with here; those that need a socket have fewer.
fn burst(name: &str) -> u32 {
    match name {
        "http" | "socket" | "mcp" => 40,
        _ => 1000,
    }
}

fn check(name: &str, outcomes_min: usize) {
    let mut all = targets::all().unwrap();
    let target: &mut Box<dyn Target> = all.iter_mut().find(|target| target.name() == name).unwrap();
    let kept = inputs(name).unwrap();
    assert!(kept.len() >= 3, "{name} has a corpus");
    for (file, input) in &kept {
        if let Err(problem) = try_input(target.as_mut(), input) {
            panic!("{name}/{file}: {problem}");
        }
    }
    let mut fuzzer = Fuzzer::new(target.as_mut(), kept.into_iter().map(|(_, input)| input).collect(), 7);
    for _ in 0..burst(name) {
        let input = fuzzer.next_input();
        if let Err(find) = fuzzer.attempt(input) {
            panic!("{name}: {}\n{}", find.problem, find.input.escape_ascii());
        }
    }
    // Inputs that all end the same way would show nothing.
    let outcomes = fuzzer.figures().outcomes;
    assert!(outcomes >= outcomes_min, "{name} had only {outcomes} outcomes");
}

/// One test: panics are listened for in the whole process.
#[test]
fn whatever_is_read_is_understood_or_refused() {
    watch_for_hangs(Duration::from_secs(60), None);
    for (name, outcomes_min) in [
        ("configuration", 30),
        ("directives", 10),
        ("records", 10),
        ("http", 12),
        ("socket", 4),
        ("cron", 3),
        ("names", 8),
        ("mcp", 3),
    ] {
        check(name, outcomes_min);
    }
    a_find_is_made_small();
}

/// Panics at a word in the middle of anything.
struct Planted;

impl Target for Planted {
    fn name(&self) -> &'static str {
        "planted"
    }

    fn words(&self) -> Vec<String> {
        vec!["boom".to_owned()]
    }

    fn make(&self, chance: &mut Chance) -> Option<Vec<u8>> {
        Some(vec![chance.below(256) as u8; 40])
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        assert!(!input.windows(4).any(|part| part == b"boom"), "found at {}", input.len());
        Ok(input.len().to_string())
    }
}

fn a_find_is_made_small() {
    let mut planted = Planted;
    let mut fuzzer = Fuzzer::new(&mut planted, vec![b"some text to begin with".to_vec()], 1);
    let find = (0..10_000).find_map(|_| {
        let input = fuzzer.next_input();
        fuzzer.attempt(input).err()
    });
    let find = fuzzer.shrink(find.unwrap());
    assert_eq!(find.input, b"boom", "{}", find.problem);
    assert!(shape(&find.problem).contains("found at #"), "{}", find.problem);
}
