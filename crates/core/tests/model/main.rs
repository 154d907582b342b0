//! The scheduler against a naive one: the same commands at the same times must give the same replies and events.
//!
//! The comparison omits what rests on measured times: `retry_after`, and refusals of tasks that would *probably* start
//! too late. It also omits the order in which one step reports several lanes, because no rule fixes it.
// The bans of the core do not hold for its tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

mod commands;
mod dead_letters;
mod dispatch;
mod lending;
mod naive;
mod requests;
mod settings;
mod time;

use std::cell::RefCell;
use std::collections::BTreeMap;

use laneway_core::{Command, End, Event, Rejection, Reply, Scheduler, TaskId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use naive::{Naive, Phase};
use requests::{CommandBuilder, Request, When};

type Counts = BTreeMap<&'static str, u64>;

/// The real scheduler and the naive one.
struct Pair {
    real: Scheduler,
    naive: Naive,
    next_task: u128,
    most_waiting: u64,
}

impl Pair {
    fn new() -> Pair {
        Pair { real: Scheduler::new(1), naive: Naive::default(), next_task: 1, most_waiting: 0 }
    }

    fn step(&mut self, when: When, request: &Request, counts: &mut Counts) -> Result<(), TestCaseError> {
        let now = when.at(self.real.now(), self.real.next_wakeup());
        // The builder looks up an id before the time passes. By then its task may have ended, and no id is used twice.
        let is_taken = matches!(request, Request::SubmitTaken(_)) && now != self.real.now();
        let command = CommandBuilder(&self.naive, TaskId(self.next_task)).command(if is_taken {
            &Request::Tick
        } else {
            request
        });
        self.next_task += 1;
        let mut events = vec![];
        let reply = self.real.step(now, command.clone(), &mut events);
        prop_assert_eq!(self.real.violation(), None, "{:?} at {}", command, now);
        count(&reply, &events, counts);
        if let (Err(Rejection::DeadlineUnmeetable { .. }), Command::Submit { spec, .. }) = (&reply, &command)
            && self.probably_too_late(now, spec)
        {
            let tick = self.naive.step(now, Command::Tick);
            prop_assert_eq!(tick, Ok(Reply::Done));
        } else {
            let expected = self.naive.step(now, command.clone());
            prop_assert_eq!(comparable(reply), comparable(expected), "{:?} at {}", command, now);
        }
        let waiting = self.naive.tasks.iter().filter(|task| task.phase == Phase::InLine).count();
        self.most_waiting = self.most_waiting.max(waiting as u64);
        let expected = std::mem::take(&mut self.naive.events);
        let (expected, depths_expected) = split(expected);
        let (events, depths) = split(events);
        prop_assert_eq!(&events, &expected, "{:?} at {}", command, now);
        prop_assert_eq!(depths, depths_expected, "{:?} at {}", command, now);
        Ok(())
    }

    /// Whether an estimate may have refused this task: it has a deadline that has not passed, and must wait.
    fn probably_too_late(&mut self, now: laneway_core::Timestamp, spec: &laneway_core::TaskSpec) -> bool {
        self.naive.now = now;
        self.naive.expire();
        let is_certain = spec.deadline.is_some_and(|length| length <= spec.run_after.unwrap_or_default());
        !is_certain && self.naive.must_wait(spec) && spec.run_after.is_none()
    }
}

/// Splits the sorted reports of depths from the other events.
fn split(events: Vec<Event>) -> (Vec<Event>, Vec<String>) {
    let is_depth = |event: &Event| {
        matches!(
            event,
            Event::Pressure { .. }
                | Event::Idle { .. }
                | Event::Alert { .. }
                | Event::AlertOver { .. }
                | Event::Drained { .. }
        )
    };
    let (depths, others): (Vec<Event>, Vec<Event>) = events.into_iter().partition(is_depth);
    let mut depths: Vec<String> = depths.iter().map(|event| format!("{event:?}")).collect();
    depths.sort();
    (others, depths)
}

/// A reply without what rests on measured times.
fn comparable(reply: Result<Reply, Rejection>) -> Result<Reply, Rejection> {
    reply.map_err(|rejection| match rejection {
        Rejection::LaneFull(mut full) => {
            (full.retry_after, full.every) = (laneway_core::Millis(0), laneway_core::Millis(0));
            full.label = None;
            Rejection::LaneFull(full)
        }
        Rejection::LaneDraining { lane, .. } => Rejection::LaneDraining { lane, label: "".into() },
        Rejection::WouldDeadlock { lane, holder, .. } => {
            Rejection::WouldDeadlock { lane, label: "".into(), holder }
        }
        other => other,
    })
}

fn count(reply: &Result<Reply, Rejection>, events: &[Event], counts: &mut Counts) {
    let mut one = |what: &'static str| *counts.entry(what).or_default() += 1;
    match reply {
        Err(Rejection::LaneFull(_)) => one("refused as full"),
        Err(Rejection::LaneDraining { .. }) => one("refused as draining"),
        Err(Rejection::StaleLease { .. }) => one("stale"),
        Err(Rejection::WouldDeadlock { .. }) => one("would deadlock"),
        Err(Rejection::ChainTooDeep) => one("too deep"),
        Err(Rejection::KeyConflict { .. }) => one("key conflict"),
        Err(Rejection::ClockWentBack { .. }) => one("clock went back"),
        Err(Rejection::NotLive { .. }) => one("not live"),
        Err(Rejection::ParentNotRunning { .. }) => one("parent not running"),
        Err(Rejection::BadSetting(_)) => one("bad setting"),
        Err(_) => one("refused otherwise"),
        Ok(Reply::Claimed(tasks)) if !tasks.is_empty() => one("claimed"),
        Ok(Reply::Released(tasks)) if !tasks.is_empty() => one("released"),
        Ok(Reply::Cancelled(tasks)) if *tasks > 0 => one("cleared"),
        Ok(_) => {}
    }
    for event in events {
        one(match event {
            Event::Granted { borrowed, .. } if !borrowed.is_empty() => "lent",
            Event::Granted { .. } => "granted",
            Event::Retrying { .. } => "retried",
            Event::Redelivered { .. } => "redelivered",
            Event::Aged { .. } => "aged",
            Event::Boosted { .. } => "boosted",
            Event::Reserved { .. } => "reserved",
            Event::Ready { .. } => "ready",
            Event::Noticed { .. } => "noticed",
            Event::Stopping { .. } => "stopping",
            Event::Joined { .. } => "joined",
            Event::DeadLettered { .. } => "dead letters",
            Event::DeadLetterRemoved { .. } => "dead letters gone",
            Event::Ended { end: End::Expired, .. } => "expired",
            Event::Ended { end: End::WaitTimeout, .. } => "wait timeouts",
            Event::Ended { end: End::TimedOut, .. } => "timed out",
            Event::Ended { end: End::Lost, .. } => "lost",
            Event::Ended { end: End::Cancelled { .. }, .. } => "cancelled",
            _ => "other",
        });
    }
}

fn check(cases: u32, requests: impl Strategy<Value = Vec<(When, Request)>>, least: &[(&str, u64)]) {
    let counts = RefCell::new(Counts::new());
    // Always the same cases: a failure here is a failure everywhere. PROPTEST_CASES asks for more of them.
    let more = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or_default();
    let cases = cases.max(more);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&requests, |requests| {
        let mut pair = Pair::new();
        for (when, request) in &requests {
            pair.step(*when, request, &mut counts.borrow_mut())?;
        }
        let mut counts = counts.borrow_mut();
        *counts.entry("passed over").or_default() += pair.naive.passed_over;
        let most = counts.entry("most waiting at once").or_default();
        *most = pair.most_waiting.max(*most);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let counts = counts.into_inner();
    for (what, least) in least {
        let seen = counts.get(what).copied().unwrap_or_default();
        assert!(seen >= *least, "{what} happened {seen} times, not {least}: {counts:?}");
    }
}

/// How often each thing must happen at least. Histories without it would not test it.
const LEAST: [(&str, u64); 30] = [
    ("granted", 5_000),
    ("lent", 250),
    ("retried", 500),
    ("redelivered", 20),
    ("claimed", 70),
    ("aged", 250),
    ("boosted", 300),
    ("ready", 900),
    ("noticed", 1_000),
    ("passed over", 1_000),
    ("stopping", 1_000),
    ("joined", 50),
    ("dead letters", 1_500),
    ("dead letters gone", 350),
    ("expired", 200),
    ("wait timeouts", 250),
    ("timed out", 250),
    ("lost", 700),
    ("cancelled", 1_200),
    ("released", 70),
    ("cleared", 20),
    ("refused as full", 400),
    ("refused as draining", 500),
    ("stale", 150),
    ("would deadlock", 80),
    ("key conflict", 60),
    ("clock went back", 100),
    ("not live", 100),
    ("parent not running", 10),
    ("bad setting", 10),
];

#[test]
fn random_commands_agree_with_the_naive_scheduler() {
    let first = vec(settings::block(), 0..8).prop_map(|blocks| vec![(When::Now, Request::Configure(blocks))]);
    let rest = vec((requests::when(), requests::request()), 1..90);
    let requests = (first, rest).prop_map(|(first, rest)| first.into_iter().chain(rest).collect());
    check(1_000, requests, &LEAST);
}

#[test]
fn tasks_of_two_contended_lanes_agree_with_the_naive_scheduler() {
    let requests = vec((Just(When::Now), requests::contended_request()), 400..450);
    let requests = requests.prop_map(|requests| {
        [(When::Now, requests::contended_lanes())].into_iter().chain(requests).collect()
    });
    check(
        20,
        requests,
        &[("granted", 1_500), ("passed over", 1_200), ("reserved", 4), ("refused as full", 600)],
    );
}

#[test]
fn many_sessions_agree_with_the_naive_scheduler() {
    let requests = vec((requests::when(), requests::crowded_request()), 120..160);
    check(
        30,
        requests,
        &[("granted", 800), ("passed over", 400), ("aged", 100), ("most waiting at once", 30)],
    );
}

#[test]
fn parents_and_children_agree_with_the_naive_scheduler() {
    let first = vec(settings::block(), 0..4).prop_map(|blocks| vec![(When::Now, Request::Configure(blocks))]);
    let rest = vec((requests::when(), requests::family_request()), 1..50);
    let requests = (first, rest).prop_map(|(first, rest)| first.into_iter().chain(rest).collect());
    let least = [("lent", 400), ("too deep", 30), ("would deadlock", 60), ("stopping", 500), ("retried", 30)];
    check(300, requests, &least);
}
