//! Makes inputs and tries them.

use std::collections::BTreeSet;

use crate::Target;
use crate::chance::Chance;
use crate::mutate::mutate;
use crate::outcome::shape;
use crate::trial::try_input;

/// No more inputs are kept to be changed; then a new one takes the place of another.
const POOL_MAX: usize = 4096;

/// An input that was not read as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// The input.
    pub input: Vec<u8>,
    /// What is wrong.
    pub problem: String,
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many inputs were tried.
    pub inputs: u64,
    /// How many different outcomes they had.
    pub outcomes: usize,
}

/// A target with the inputs that are known, and the outcomes that were seen.
pub struct Fuzzer<'a> {
    target: &'a mut dyn Target,
    words: Vec<String>,
    pool: Vec<Vec<u8>>,
    seen: BTreeSet<String>,
    tried: u64,
    chance: Chance,
}

impl<'a> Fuzzer<'a> {
    /// Begins with these inputs, which are not tried by themselves.
    pub fn new(target: &'a mut dyn Target, pool: Vec<Vec<u8>>, seed: u64) -> Fuzzer<'a> {
        let words = target.words();
        Fuzzer { target, words, pool, seen: BTreeSet::new(), tried: 0, chance: Chance::new(seed) }
    }

    /// The next input to try.
    pub fn next_input(&mut self) -> Vec<u8> {
        let chance = &mut self.chance;
        if chance.once_in(4)
            && let Some(made) = self.target.make(chance)
        {
            return made;
        }
        let input = chance.one(&self.pool).cloned().unwrap_or_default();
        mutate(&input, &self.words, &self.pool, chance)
    }

    /// Tries an input, and keeps it in mind if its outcome is new.
    pub fn attempt(&mut self, input: Vec<u8>) -> Result<(), Find> {
        self.tried += 1;
        match try_input(self.target, &input) {
            Err(problem) => Err(Find { input, problem }),
            Ok(outcome) => {
                if self.seen.insert(shape(&outcome)) {
                    self.remember(input);
                }
                Ok(())
            }
        }
    }

    fn remember(&mut self, input: Vec<u8>) {
        if self.pool.len() < POOL_MAX {
            self.pool.push(input);
        } else {
            let at = self.chance.below(POOL_MAX);
            self.pool[at] = input;
        }
    }

    /// The same find with as much of its input gone as can go.
    pub fn shrink(&mut self, mut find: Find) -> Find {
        let mut size = find.input.len() / 2;
        let mut trials = 2000;
        while size > 0 && trials > 0 {
            let mut at = 0;
            while at < find.input.len() && trials > 0 {
                trials -= 1;
                let to = (at + size).min(find.input.len());
                let less = [&find.input[..at], &find.input[to..]].concat();
                match try_input(self.target, &less) {
                    Err(problem) if shape(&problem) == shape(&find.problem) => {
                        find = Find { input: less, problem }
                    }
                    _ => at += size,
                }
            }
            size /= 2;
        }
        find
    }

    /// What was tried so far.
    pub fn figures(&self) -> Figures {
        Figures { inputs: self.tried, outcomes: self.seen.len() }
    }

    /// The outcomes that were seen.
    pub fn outcomes(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().map(String::as_str)
    }
}
