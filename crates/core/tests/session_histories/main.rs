//! Long random histories of messages, turns, steering, failures, changes of settings and restarts.
//!
//! The checks use only the events and the replies:
//!
//! - every accepted message is in one state and has one end (`ledger.rs`);
//! - the scheduler respects order, waiting times and caps (`rules.rs`);
//! - every reply is as expected and matches the events (`expected_replies.rs`).
//!
//! A failure names its seed and the number of the command.
// The bans of the core do not hold for its tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

mod edits;
mod expected_replies;
mod generator;
mod ledger;
mod rules;

use std::collections::BTreeMap;

use laneway_core::{
    Command, Event, Fence, Outcome, Scheduler, SessionCommand, SessionDelta, TaskId, Timestamp,
};

use generator::{Action, Generator};
use ledger::Ledger;

const HISTORIES: u64 = 40;
const COMMANDS: u64 = 400;
/// How often the whole state is compared.
const COMPARE_EVERY: u64 = 7;
/// A step that emits more events loops.
const EVENTS_MAX: usize = 2_000;

struct History {
    seed: u64,
    generator: Generator,
    live: Scheduler,
    replica: Scheduler,
    ledger: Ledger,
}

impl History {
    fn new(seed: u64) -> History {
        History {
            seed,
            generator: Generator::new(seed),
            live: Scheduler::new(seed),
            replica: Scheduler::new(seed ^ 1),
            ledger: Ledger::default(),
        }
    }

    fn run(mut self) -> BTreeMap<String, u64> {
        self.step(0, Timestamp(0), generator::lanes());
        for number in 0..COMMANDS {
            let now = self.generator.later(self.live.now(), self.live.next_wakeup());
            while let Some(due) = self.live.next_wakeup().filter(|due| *due < now) {
                self.step(number, due, Command::Tick);
            }
            match self.generator.next(&self.ledger, &self.live) {
                Action::Restart => {
                    self.live = Scheduler::restore(self.seed ^ number, &self.live.snapshot());
                    self.ledger.count("restart");
                }
                Action::Command(command) => self.step(number, now, command),
            }
        }
        self.finish_everything();
        self.ledger.counts
    }

    /// Lets time pass first, because the expected reply is that at the time of the command.
    fn step(&mut self, number: u64, now: Timestamp, command: Command) {
        if command != Command::Tick {
            self.check_step(number, now, Command::Tick);
        }
        self.check_step(number, now, command);
    }

    fn check_step(&mut self, number: u64, now: Timestamp, command: Command) {
        let mut events: Vec<Event> = vec![];
        let asked = command.clone();
        // A comparison of the whole state is slow, so each seed compares at other steps.
        let is_compared = (number + self.seed).is_multiple_of(COMPARE_EVERY);
        let before = is_compared.then(|| self.live.snapshot());
        let session = match &asked {
            Command::Session(command) => Some(&**command),
            _ => None,
        };
        let expected = match session {
            Some(SessionCommand::Send(incoming)) => Some(self.ledger.expected_reply(&self.live, incoming)),
            _ => None,
        };
        let edited = session.and_then(|command| self.ledger.before(&self.live, command));
        let reply = self.live.step(now, command, &mut events);
        let context = || format!("seed {}, command {number} at {now}: {asked:?}", self.seed);
        assert!(events.len() < EVENTS_MAX, "{}: {} events", context(), events.len());
        if let Err(rejection) = &reply {
            self.ledger.count(rejection.code());
            // Due changes happened anyway; the command itself changed nothing.
            if let Some(before) = before {
                let mut twin = Scheduler::restore(7, &before);
                let ticked = twin.step(now, Command::Tick, &mut vec![]);
                assert!(
                    ticked.is_ok() && twin.snapshot() == self.live.snapshot(),
                    "{}: {rejection}",
                    context()
                );
            }
        }
        for event in &events {
            self.replica.apply(now, event);
            let is_due = match event {
                Event::Session(event) if matches!(event.change, SessionDelta::TurnBegan { .. }) => {
                    self.ledger.check_due(now, &asked, event.session.as_str())
                }
                _ => Ok(()),
            };
            if let Err(problem) = is_due.and_then(|()| self.ledger.read(now, event)) {
                panic!("{}: {problem} at {event:?}", context());
            }
        }
        let mut checks =
            vec![self.ledger.compare(&self.live, is_compared), self.ledger.check_emptied(&self.live, &asked)];
        if let (Some(expected), Some(SessionCommand::Send(incoming))) = (&expected, session) {
            checks.push(self.ledger.check_sent(&self.live, expected, incoming, &reply, &events));
        }
        if let (Some(before), Some(command)) = (&edited, session) {
            checks.push(self.ledger.check_edited(&self.live, before, command, &reply));
        }
        if let Some(command) = session {
            checks.push(edits::check_taken(command, &reply, &events));
        }
        if let Some(problem) = checks.into_iter().find_map(Result::err) {
            panic!("{}: {problem}", context());
        }
        if is_compared {
            assert_eq!(self.live.violation(), None, "{}", context());
            let ticked = self.replica.step(now, Command::Tick, &mut vec![]);
            assert!(ticked.is_ok());
            assert!(
                self.replica.snapshot() == self.live.snapshot(),
                "{}: replaying gives another state",
                context()
            );
        }
    }

    /// Without new messages, and when every turn succeeds, every message soon ends.
    fn finish_everything(&mut self) {
        for lane in ["agent:bot", "agent:cat", "session:s"] {
            let lane = laneway_core::LaneName::new(lane).unwrap();
            self.step(COMMANDS, self.live.now(), Command::Resume { lane });
        }
        for round in 0..3_000 {
            let running: Vec<(TaskId, Fence)> = self
                .live
                .tasks()
                .filter_map(|task| task.running.map(|running| (task.id, running.fence)))
                .collect();
            let now = self.live.now();
            if let Some((task, fence)) = running.first() {
                let finish =
                    Command::Finish { task: *task, fence: *fence, taken: vec![], outcome: Outcome::Success };
                self.step(COMMANDS + round, now, finish);
            } else if self.ledger.live() == 0 {
                break;
            } else {
                let due = self.live.next_wakeup().expect("messages wait, and nothing is due");
                self.step(COMMANDS + round, due, Command::Tick);
            }
        }
        assert_eq!(self.ledger.live(), 0, "seed {}: messages wait for ever", self.seed);
        for session in generator::SESSIONS {
            let queue = laneway_core::QueueOverrides::default();
            let command = SessionCommand::Configure { session: session.into(), queue };
            self.step(COMMANDS, self.live.now(), Command::Session(Box::new(command)));
        }
        let later = Timestamp(self.live.now().0 + 400_000);
        while let Some(due) = self.live.next_wakeup().filter(|due| *due <= later) {
            self.step(COMMANDS, due, Command::Tick);
        }
        self.step(COMMANDS, later, Command::Tick);
        let left: Vec<_> = self.live.sessions().into_iter().filter(|session| session.dropped == 0).collect();
        assert!(left.iter().all(|session| session.busy || session.turns.is_empty()), "{left:?}");
    }
}

#[test]
fn every_message_has_one_end_in_order() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..HISTORIES {
        for (what, times) in History::new(seed).run() {
            *counts.entry(what).or_default() += times;
        }
    }
    println!("{counts:?}");
    // Histories in which something never happens would not test it.
    let must_happen = [
        ("delivered", 600),
        ("steered", 50),
        ("dropped old", 20),
        ("dropped new", 20),
        ("dropped summarize", 20),
        ("dropped latest", 20),
        ("dropped heartbeat", 20),
        ("dropped late", 5),
        ("cancelled", 400),
        ("parked", 5),
        ("started", 300),
        ("queued", 500),
        ("steered_and_queued", 5),
        ("interrupted", 50),
        ("duplicate", 50),
        ("directive", 50),
        ("turn of several", 40),
        ("turn with a summary", 20),
        ("taken", 15),
        ("returned", 20),
        ("retrying", 200),
        ("redelivered", 50),
        ("moved", 20),
        ("hastened", 10),
        ("promoted", 5),
        ("restart", 200),
        ("directive again", 10),
        ("stopped", 10),
        ("renewed", 10),
        ("fresh turn", 10),
        ("fresh start passed on", 3),
        ("sent again", 5),
        ("discarded", 3),
        ("SESSION_BUSY", 20),
        ("AT_CAPACITY", 20),
    ];
    for (what, least) in must_happen {
        let times = counts.get(what).copied().unwrap_or_default();
        assert!(times >= least, "{what} happened {times} times, not {least}: {counts:?}");
    }
}
