//! What sessions with waiting messages cost: bytes, counted by the allocator, and the time to accept one more.
//!
//! Each session has three messages that wait. The two schedulers, one with a hundred sessions and
//! one with a hundred thousand, take turns. The figure is the ratio of their fastest rounds, which other load on the
//! machine disturbs least.

// A bench reads the clock, and what cannot fail in it ends it when it does.
#![allow(
    clippy::expect_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros
)]

use std::alloc::System;
use std::time::{Duration, Instant};

use laneway_core::{
    Agent, Block, Command, Event, Incoming, LaneSettings, MessageId, Name, Outcome, Pattern, Place,
    Scheduler, SessionCommand, Timestamp,
};
use laneway_seeded::Random;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MANY: u64 = 100_000;
const FEW: u64 = 100;
const WAITING: u64 = 3;
const BYTES_MAX: usize = 150_000_000;
const RATIO_MAX: f64 = 2.0;
const ROUNDS: usize = 60;
const MESSAGES: u64 = 1_000;

/// Bytes in use now.
fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

struct Subject {
    lanes: Scheduler,
    sessions: u64,
    sent: u128,
    random: Random,
    events: Vec<Event>,
}

impl Subject {
    fn new(sessions: u64, slots: &str) -> Subject {
        let mut lanes = Scheduler::new(7);
        let block = |name: &str| {
            let mut settings = LaneSettings::default();
            settings.set("max_queued", "10000000").expect("a setting of this bench");
            settings.set("max_concurrency", slots).expect("a setting of this bench");
            Block { lanes: Pattern::new(name).expect("a name of this bench"), settings: Some(settings) }
        };
        let blocks = ["agent:*", "main", "global"].map(block);
        let configured = lanes.step(Timestamp(0), Command::Configure(blocks.into()), &mut vec![]);
        configured.expect("a good configuration");
        let mut this = Subject { lanes, sessions, sent: 0, random: Random::new(1), events: vec![] };
        for _ in 0..=WAITING {
            for session in 0..sessions {
                this.send(session);
            }
        }
        this
    }

    fn send(&mut self, session: u64) {
        let (_, command) = self.message(session);
        self.step(command);
    }

    /// A message that allocates its names, as when they come over a wire.
    fn message(&mut self, session: u64) -> (MessageId, SessionCommand) {
        self.sent += 1;
        let id = MessageId(self.sent << 64 | 7);
        let agent = Agent::new(Name::new("coder").expect("a name"));
        let text = format!("please look at {session} again, will you?");
        let mut message = Incoming::new(id, format!("user-{session:06}"), agent, text);
        message.place = Place {
            channel: Some("discord".into()),
            to: Some(format!("channel-{session:06}").into()),
            ..Place::default()
        };
        message.sender_name = Some(format!("Ann {session}").into());
        (id, SessionCommand::Send(Box::new(message)))
    }

    fn step(&mut self, command: SessionCommand) {
        let command = Command::Session(Box::new(command));
        self.lanes.step(Timestamp(0), command, &mut self.events).expect("nothing to refuse");
        self.events.clear();
    }

    /// Ends every turn: the messages wait until it has been quiet for long enough.
    fn finish_turns(&mut self) {
        for task in self.lanes.tasks().collect::<Vec<_>>() {
            let fence = task.running.expect("there is a slot for each").fence;
            let finish = Command::Finish { task: task.id, fence, taken: vec![], outcome: Outcome::Success };
            self.lanes.step(Timestamp(0), finish, &mut self.events).expect("nothing to refuse");
            self.events.clear();
        }
        self.events = vec![];
    }

    /// Lets every session have had one message more than it has, as those have that live for a while.
    fn warm_up(&mut self) {
        for session in 0..self.sessions {
            let (message, command) = self.message(session);
            self.step(command);
            self.step(SessionCommand::Withdraw { message });
        }
    }

    /// How long it takes to make messages of texts and have them accepted, to sessions at random. Each is
    /// withdrawn again.
    fn accept(&mut self) -> Duration {
        let mut taken = Duration::ZERO;
        for _ in 0..MESSAGES {
            let session = self.random.below(self.sessions);
            let began = Instant::now();
            let (message, command) = self.message(session);
            self.step(command);
            taken += began.elapsed();
            self.step(SessionCommand::Withdraw { message });
        }
        taken
    }
}

fn main() {
    let before = in_use();
    let mut quiet = Subject::new(MANY, "1000000");
    quiet.finish_turns();
    let bytes = in_use() - before;
    drop(quiet);
    let before = in_use();
    let mut many = Subject::new(MANY, "1");
    many.events = vec![];
    let with_turns = in_use() - before;
    println!("{MANY} sessions with {WAITING} messages each that wait");
    let holds = |holds: bool| if holds { "holds" } else { "BROKEN" };
    let size_holds = bytes <= BYTES_MAX;
    println!(
        "{:<50} {:>8.1} MB   at most {} MB   {}",
        "all of them, while it is not quiet yet",
        bytes as f64 / 1e6,
        BYTES_MAX / 1_000_000,
        holds(size_holds)
    );
    println!("{:<50} {:>8.1} MB", "with a turn in line before them in each", with_turns as f64 / 1e6);
    let mut few = Subject::new(FEW, "1");
    few.warm_up();
    many.warm_up();
    let (mut small, mut large) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        small = small.min(few.accept());
        large = large.min(many.accept());
    }
    let ratio = large.as_secs_f64() / small.as_secs_f64();
    let cost = large.as_nanos() / u128::from(MESSAGES);
    let ratio_holds = ratio <= RATIO_MAX;
    println!("{:<50} {:>8} ns", "accepting a message", cost);
    println!(
        "{:<50} {ratio:>8.2}      at most {RATIO_MAX:.2}     {}",
        format!("the same, compared with {FEW} sessions"),
        holds(ratio_holds)
    );
    if !(size_holds && ratio_holds) {
        std::process::exit(1);
    }
}
