//! Long random histories of tasks: every command at any time, checked after each step.
//!
//! A failure names its seed and the number of the command; the same seed gives the same history.
// The bans of the core do not hold for its tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

mod checker;
mod generator;
mod lane_settings;

use std::collections::BTreeMap;

use laneway_core::{Command, Event, Rejection, Scheduler, Snapshot, Timestamp};

use checker::Checker;
use generator::Generator;

const COMMANDS: u64 = 10_000;
/// How often a twin is restored from a snapshot, and for how many commands it must behave the same.
const TWIN_EVERY: u64 = 1_000;
const TWIN_LASTS: u64 = 200;
/// How often the state of the replica is compared.
const REPLICA_EVERY: u64 = 50;

/// Prints the current command when an assertion inside the scheduler fails.
struct FailureContext<'a>(u64, u64, Timestamp, &'a Command);

impl Drop for FailureContext<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}, command {} at {}: {:?}", self.0, self.1, self.2, self.3);
        }
    }
}

/// A scheduler and everything that checks it.
struct History {
    seed: u64,
    generator: Generator,
    live: Scheduler,
    checker: Checker,
    /// Applies every event and sees no command.
    replica: Scheduler,
    twin: Option<Scheduler>,
    counts: BTreeMap<&'static str, u64>,
}

impl History {
    fn new(seed: u64) -> History {
        History {
            seed,
            generator: Generator::new(seed),
            live: Scheduler::new(seed),
            checker: Checker::default(),
            replica: Scheduler::new(seed.wrapping_add(1)),
            twin: None,
            counts: BTreeMap::new(),
        }
    }

    fn run(mut self) -> History {
        for number in 0..COMMANDS {
            if number % TWIN_EVERY == TWIN_EVERY - TWIN_LASTS {
                self.twin = Some(Scheduler::restore(self.seed ^ number, &self.live.snapshot()));
            }
            let now = self.generator.later(self.live.now(), self.live.next_wakeup());
            let command =
                if number == 0 { self.generator.configure() } else { self.generator.next(&self.checker) };
            self.step(number, now, command);
            if number % REPLICA_EVERY == REPLICA_EVERY - 1 {
                self.check_replica();
            }
            if number % TWIN_EVERY == TWIN_EVERY - 1
                && let Some(twin) = self.twin.take()
            {
                *self.counts.entry("twins").or_default() += 1;
                assert_eq!(twin.snapshot(), self.live.snapshot(), "twin of seed {} at {number}", self.seed);
            }
        }
        self
    }

    fn step(&mut self, number: u64, now: Timestamp, command: Command) {
        let _context = FailureContext(self.seed, number, now, &command);
        let before = self.generator.random.percent(10).then(|| self.live.snapshot());
        let mut events = vec![];
        let reply = self.live.step(now, command.clone(), &mut events);
        // In debug builds, each step checks the invariants itself while few tasks are live.
        if !cfg!(debug_assertions) || self.live.live_tasks() > 64 {
            assert_eq!(self.live.violation(), None);
        }
        if let Some(twin) = &mut self.twin {
            let mut twin_events = vec![];
            let twin_reply = twin.step(now, command.clone(), &mut twin_events);
            assert_eq!((&twin_reply, &twin_events), (&reply, &events), "the twin differs");
        }
        if let Err(rejection) = &reply {
            *self.counts.entry(name_of(rejection)).or_default() += 1;
            if let Some(before) = before {
                *self.counts.entry("checked refusals").or_default() += 1;
                self.check_nothing_changed(&before, now, rejection, &events);
            }
        }
        for event in events {
            self.checker.check(&event);
            self.replica.apply(now, &event);
        }
        assert_eq!(self.checker.live(), self.live.live_tasks());
    }

    /// Checks that a refused command changed nothing but what was due anyway.
    fn check_nothing_changed(
        &self,
        before: &Snapshot,
        now: Timestamp,
        rejection: &Rejection,
        events: &[Event],
    ) {
        let mut clock = Scheduler::restore(7, before);
        let mut due = vec![];
        if !matches!(rejection, Rejection::ClockWentBack { .. }) {
            clock.step(now, Command::Tick, &mut due).expect("the clock goes on");
        }
        assert_eq!(due, events);
        assert_eq!(clock.snapshot(), self.live.snapshot());
    }

    /// Checks that the replica, which only applies events, has the same state.
    fn check_replica(&self) {
        // Time also passes without events. The replica does not see that, but its copy here does.
        let mut copy = Scheduler::restore(self.seed, &self.replica.snapshot());
        let mut events = vec![];
        copy.step(self.live.now(), Command::Tick, &mut events).expect("the clock goes on");
        assert_eq!(events, [], "seed {}: something was left undone", self.seed);
        assert_eq!(copy.violation(), None, "seed {}", self.seed);
        assert_eq!(copy.snapshot(), self.live.snapshot(), "replica of seed {}", self.seed);
    }
}

fn name_of(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::LaneFull(_) => "lane full",
        Rejection::LaneDraining { .. } => "lane draining",
        Rejection::DeadlineUnmeetable { .. } => "deadline unmeetable",
        Rejection::NotLive { .. } => "not live",
        Rejection::NotWaiting { .. } => "not waiting",
        Rejection::IdTaken { .. } => "id taken",
        Rejection::StaleLease { .. } => "stale lease",
        Rejection::ParentNotRunning { .. } => "parent not running",
        Rejection::WouldDeadlock { .. } => "would deadlock",
        Rejection::ChainTooDeep => "chain too deep",
        Rejection::KeyConflict { .. } => "key conflict",
        Rejection::NoSuchDeadLetter { .. } => "no such letter",
        Rejection::ClockWentBack { .. } => "clock went back",
        Rejection::BadSetting(_) => "bad setting",
        Rejection::BadTask(_) => "bad task",
        Rejection::NoteChanged { .. } => "note changed",
        _ => "other",
    }
}

/// How often each thing must happen in five histories. Histories without it would not test it.
const LEAST: [(&str, u64); 46] = [
    ("configured", 500),
    ("submitted", 7_000),
    ("joined", 20),
    ("left", 8),
    ("ready", 1_000),
    ("aged", 1_000),
    ("boosted", 800),
    ("reprioritised", 150),
    ("noticed", 2_000),
    ("reserved", 8),
    ("granted", 7_000),
    ("lent", 500),
    ("renewed", 300),
    ("stopping", 1_500),
    ("retrying", 900),
    ("redelivered", 60),
    ("ended", 7_000),
    ("dead-lettered", 2_500),
    ("dead letter gone", 2_000),
    ("paused", 200),
    ("resumed", 300),
    ("draining", 90),
    ("drained", 35),
    ("pressure", 400),
    ("idle", 400),
    ("alert", 1_000),
    ("alert over", 1_000),
    ("lane full", 2_000),
    ("lane draining", 100),
    ("deadline unmeetable", 250),
    ("not live", 150),
    ("not waiting", 100),
    ("id taken", 150),
    ("stale lease", 200),
    ("parent not running", 1_000),
    ("would deadlock", 90),
    ("chain too deep", 50),
    ("key conflict", 120),
    ("no such letter", 25),
    ("clock went back", 100),
    ("bad setting", 4),
    ("bad task", 500),
    ("twins", 50),
    ("noted", 60),
    ("note changed", 40),
    ("checked refusals", 1_000),
];

/// Runs these histories and checks that enough happened in them.
fn check(seeds: std::ops::Range<u64>) {
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in seeds {
        let history = History::new(seed).run();
        for (what, count) in history.checker.counts.into_iter().chain(history.counts) {
            *counts.entry(what).or_default() += count;
        }
    }
    for (what, least) in LEAST {
        let seen = counts.get(what).copied().unwrap_or_default();
        assert!(seen >= least, "{what} happened {seen} times, not {least}: {counts:?}");
    }
    let unexpected: Vec<_> =
        counts.keys().filter(|what| LEAST.iter().all(|(known, _)| known != *what)).collect();
    assert!(unexpected.is_empty(), "`LEAST` has no count of these: {unexpected:?}");
}

#[test]
fn five_histories_of_all_commands() {
    check(1..6);
}

#[test]
fn five_more_histories_of_all_commands() {
    check(6..11);
}
