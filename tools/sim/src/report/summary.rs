//! Many seeds, and what they showed together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::kind::Kind;
use crate::plan::Plan;
use crate::report::shrink::shrink;
use crate::run::{History, Wanted, run};

/// What many seeds showed.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many were run.
    pub seeds: u64,
    /// How often each kind of thing happened.
    pub counts: BTreeMap<Kind, u64>,
    /// How many batches all logs had.
    pub batches: u64,
    /// How long the histories took in their own time.
    pub millis: u64,
    /// For how long work of a dead replica was left, in milliseconds; also where another machine had a fault.
    pub left_ms: (u64, u64),
    /// How often the append turn was passed to a replica, and how often to one that had died.
    pub append_turns: (u64, u64),
    /// How long that took.
    pub took: Duration,
    /// The smallest seed that failed, and why.
    pub failed: Option<(u64, Vec<String>)>,
}

impl Summary {
    /// Runs seeds on this many threads, one history per thread at a time, until one fails.
    pub fn of_seeds(first: u64, count: u64, threads: usize, wanted: Wanted) -> Summary {
        let start = Instant::now();
        let (next, has_failed) = (AtomicU64::new(first), AtomicBool::new(false));
        let summary = Mutex::new(Summary::default());
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    while !has_failed.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= first.saturating_add(count) {
                            return;
                        }
                        let outcome = run(&Plan::of_seed(seed), wanted);
                        has_failed.fetch_or(!outcome.violations.is_empty(), Ordering::Relaxed);
                        summary.lock().unwrap_or_else(PoisonError::into_inner).add(seed, outcome);
                    }
                });
            }
        });
        let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
        summary.took = start.elapsed();
        summary
    }

    fn add(&mut self, seed: u64, outcome: History) {
        self.seeds += 1;
        self.batches += outcome.batches;
        self.millis += outcome.millis;
        self.left_ms.0 = self.left_ms.0.max(outcome.left_ms.0);
        self.left_ms.1 = self.left_ms.1.max(outcome.left_ms.1);
        self.append_turns.0 += outcome.append_turns.0;
        self.append_turns.1 += outcome.append_turns.1;
        for (kind, count) in outcome.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        let is_first = self.failed.as_ref().is_none_or(|(failed, _)| seed < *failed);
        if !outcome.violations.is_empty() && is_first {
            self.failed = Some((seed, outcome.violations));
        }
    }

    /// The faults that never happened, though they should have.
    pub fn never(&self) -> Vec<Kind> {
        let all = Kind::ALL.iter().copied();
        all.filter(|kind| !self.counts.contains_key(kind)).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |kind: &Kind| self.counts.get(kind).copied().unwrap_or(0);
        writeln!(f, "{} kinds of fault", Kind::FAULTS)?;
        for kind in Kind::faults() {
            writeln!(f, "  {:>9}  {}", count(kind), kind.name())?;
        }
        writeln!(f, "asked")?;
        for kind in Kind::asks() {
            writeln!(f, "  {:>9}  {}", count(kind), kind.name())?;
        }
        let each = self.took.as_secs_f64() * 1000.0 / self.seeds.max(1) as f64;
        let hours = self.millis as f64 / 3_600_000.0;
        writeln!(
            f,
            "{} seeds, {} batches, {hours:.1} hours of their time in {:.1} s ({each:.1} ms a seed)",
            self.seeds,
            self.batches,
            self.took.as_secs_f64()
        )?;
        let (alone, others) = self.left_ms;
        writeln!(
            f,
            "of a dead replica something was left for {alone} ms at most, {others} ms with others in trouble (leases of \
             {} ms)",
            crate::LEASE_MS
        )?;
        let (passed, lost) = self.append_turns;
        writeln!(f, "the append turn was passed {passed} times, {lost} of them to a replica that had died")?;
        match &self.failed {
            None => write!(f, "no violation"),
            Some((seed, violations)) => write!(f, "seed {seed} fails: {}", violations.join("; ")),
        }
    }
}

/// A seed that fails, made short, with its timeline.
pub fn explain(seed: u64, wanted: Wanted) -> String {
    let plan = Plan::of_seed(seed);
    let shorter = shrink(&plan, wanted);
    let outcome = run(&shorter, Wanted { has_timeline: true, ..wanted });
    let mut text = format!(
        "seed {seed}: {} of {} steps are needed ({} replicas, {})\n",
        shorter.steps.len(),
        plan.steps.len(),
        plan.replicas,
        if plan.has_clock { "the store's clock" } else { "clocks of their own" }
    );
    for step in &shorter.steps {
        text.push_str(&format!(
            "  {:>6}  {} (who {:x}, much {:x})\n",
            step.at,
            step.kind.name(),
            step.who,
            step.much
        ));
    }
    text.push_str("timeline\n");
    outcome.timeline.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    outcome.violations.iter().for_each(|violation| text.push_str(&format!("VIOLATION {violation}\n")));
    text
}
