//! What one cycle (submit, grant, finish) costs, as ratios within one run.
//!
//! Two schedulers, one with a thousand tasks waiting and one with a million, and a `BTreeMap` of the size of
//! each take turns. Each figure is the median over the rounds of the ratio within a round. The cost compared with the
//! map is measured by the clock, which includes cache effects, and by callgrind in instructions. Other load on the
//! machine does not change the latter.

// A bench reads the clock, and what cannot fail in it ends it when it does.
#![allow(
    clippy::expect_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros
)]

mod measure;

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

use laneway_core::{
    Block, CancelReason, Command, Event, Fence, LaneName, LaneSettings, Name, Outcome, Pattern, Scheduler,
    TaskId, TaskSpec, Timestamp,
};
use laneway_seeded::Random;
use measure::{BATCH, CYCLES, median, nanoseconds, report, time};

const ROUNDS: usize = 9;
/// How many conversations work arrives for, at random.
const SESSIONS: usize = 100_000;

const FIRST_ID: u128 = 0x0190_0000_0000_7000_8000_0000_0000_0000;
const ID_STEP: u128 = 0x1_0000_0001;

/// A scheduler with a given number of tasks waiting, all through their conversation and `main`.
struct Subject {
    lanes: Scheduler,
    specs: Vec<TaskSpec>,
    running: VecDeque<(TaskId, Fence)>,
    events: Vec<Event>,
    next: u128,
    random: Random,
    steps: u64,
}

fn block(lanes: &str, settings: &[(&str, &str)]) -> Block {
    let mut asked = LaneSettings::default();
    for (key, text) in settings {
        asked.set(key, text).expect("a setting of this bench");
    }
    Block { lanes: Pattern::new(lanes).expect("a name of this bench"), settings: Some(asked) }
}

/// What tasks name, and so what the line looks like.
#[derive(Clone, Copy)]
enum Shape {
    /// Their conversation and `main`.
    Conversation,
    /// `main` and their conversation: one home lane for all.
    MainFirst,
    /// Their conversation and `main`, all under one fair key.
    OneKey,
    /// Their conversation and `main`, whose order is `fifo`.
    Fifo,
    /// A lane of their own and a provider's lane.
    Provider,
    /// One lane for all.
    OneLane,
}

impl Shape {
    fn spec(self, number: usize) -> TaskSpec {
        let lane = |text: &str| LaneName::new(text).expect("a name");
        let session = LaneName::session(&format!("user-{number:06}")).expect("a name");
        let lanes = match self {
            Shape::Conversation | Shape::OneKey | Shape::Fifo => vec![session, LaneName::main()],
            Shape::MainFirst => vec![LaneName::main(), session],
            Shape::OneLane => vec![LaneName::main()],
            Shape::Provider => vec![lane(&format!("chat:{number:06}")), lane("provider:llm")],
        };
        let mut spec = TaskSpec::new(Name::new("turn").expect("a name"), lanes);
        spec.fair_key = matches!(self, Shape::OneKey).then(|| lane("tenant"));
        spec
    }
}

impl Subject {
    fn new(shape: Shape, waiting: usize) -> Subject {
        let mut lanes = Scheduler::new(7);
        let all = ("max_queued", "10000000");
        let order = ("order", if matches!(shape, Shape::Fifo) { "fifo" } else { "fair" });
        let blocks = vec![
            block("main", &[("max_concurrency", "4"), order, all]),
            block("provider:*", &[("max_concurrency", "4"), all]),
            block("global", &[("max_concurrency", "10"), all]),
            block("session:*", &[all]),
            block("chat:*", &[all]),
        ];
        let mut events = Vec::new();
        lanes.step(Timestamp(0), Command::Configure(blocks), &mut events).expect("a good configuration");
        let specs = (0..SESSIONS).map(|number| shape.spec(number)).collect();
        let mut subject = Subject {
            lanes,
            specs,
            running: VecDeque::new(),
            events,
            next: FIRST_ID,
            random: Random::new(1),
            steps: 0,
        };
        for number in 0..waiting + 4 {
            let (_, submit) = subject.submission_in(number % SESSIONS);
            subject.step(submit);
            subject.events.clear();
        }
        subject
    }

    fn step(&mut self, command: Command) {
        self.steps += 1;
        let now = Timestamp(self.steps / 4096);
        let seen = self.events.len();
        self.lanes.step(now, command, &mut self.events).expect("a command of this bench");
        for event in &self.events[seen..] {
            if let Event::Granted { task, fence, .. } = event {
                self.running.push_back((*task, *fence));
            }
        }
    }

    /// A new task in some conversation.
    fn submission(&mut self) -> (TaskId, Command) {
        let session = self.random.index(SESSIONS);
        self.submission_in(session)
    }

    fn submission_in(&mut self, session: usize) -> (TaskId, Command) {
        self.next += ID_STEP;
        let (task, spec) = (TaskId(self.next), Box::new(self.specs[session].clone()));
        (task, Command::Submit { task, spec })
    }

    /// What the clients do before and after is theirs: making commands and dropping events is not timed. A
    /// few are made at a time, so that they are as fresh in the caches as they are in a server.
    fn time(&mut self, cycle: impl Fn(&mut Subject, TaskId, Command)) -> f64 {
        let batches = (0..CYCLES / BATCH).map(|_| {
            self.events.clear();
            let prepared: Vec<(TaskId, Command)> = (0..BATCH).map(|_| self.submission()).collect();
            let start = Instant::now();
            for (task, submit) in prepared {
                cycle(self, task, submit);
            }
            start.elapsed()
        });
        nanoseconds(batches.collect())
    }

    /// Nanoseconds of one submit, grant, finish.
    fn cycle(&mut self) -> f64 {
        self.time(|subject, _, submit| {
            subject.step(submit);
            let (task, fence) = subject.running.pop_front().expect("four tasks run");
            subject.step(Command::Finish { task, fence, taken: vec![], outcome: Outcome::Success });
        })
    }

    /// Nanoseconds of one submit and cancel.
    fn cancel(&mut self) -> f64 {
        self.time(|subject, task, submit| {
            subject.step(submit);
            subject.step(Command::Cancel { task, reason: CancelReason::Caller });
        })
    }

    fn wakeup(&mut self) -> f64 {
        time(|| {
            black_box(self.lanes.next_wakeup());
        })
    }
}

/// A plain priority queue: a map from level, fair-share tag, arrival and id to a task's place.
struct Reference {
    map: BTreeMap<(u8, u64, u64, TaskId), u32>,
    tags: Vec<u64>,
    arrival: u64,
    next: u128,
    random: Random,
}

impl Reference {
    fn new(waiting: usize) -> Reference {
        let mut reference = Reference {
            map: BTreeMap::new(),
            tags: vec![0; SESSIONS],
            arrival: 0,
            next: FIRST_ID,
            random: Random::new(1),
        };
        for number in 0..waiting {
            reference.insert(number % SESSIONS);
        }
        reference
    }

    fn insert(&mut self, session: usize) {
        let first = self.map.first_key_value().map_or(0, |((_, tag, ..), _)| *tag);
        let tag = self.tags[session].max(first);
        self.tags[session] = tag + (1 << 20);
        self.arrival += 1;
        self.next += ID_STEP;
        self.map.insert((253, tag, self.arrival, TaskId(self.next)), self.arrival as u32);
    }

    fn cycle(&mut self) {
        let session = self.random.index(SESSIONS);
        self.insert(session);
        black_box(self.map.pop_first());
    }
}

/// How many cycles are counted under callgrind.
const COUNTED: usize = 10_000;

/// Cycles to be counted: callgrind collects while this function runs.
#[inline(never)]
fn counted_scheduler(subject: &mut Subject, prepared: Vec<(TaskId, Command)>) {
    for (_, submit) in prepared {
        subject.step(submit);
        let (task, fence) = subject.running.pop_front().expect("four tasks run");
        subject.step(Command::Finish { task, fence, taken: vec![], outcome: Outcome::Success });
    }
}

/// The same in one lane.
#[inline(never)]
fn counted_lane(subject: &mut Subject, prepared: Vec<(TaskId, Command)>) {
    for (_, submit) in prepared {
        subject.step(submit);
        let (task, fence) = subject.running.pop_front().expect("four tasks run");
        subject.step(Command::Finish { task, fence, taken: vec![], outcome: Outcome::Success });
    }
}

/// The same in one lane in which nothing waits, so that each task starts at once.
#[inline(never)]
fn counted_idle(subject: &mut Subject, prepared: Vec<(TaskId, Command)>) {
    for (_, submit) in prepared {
        subject.step(submit);
        let (task, fence) = subject.running.pop_front().expect("it runs");
        subject.step(Command::Finish { task, fence, taken: vec![], outcome: Outcome::Success });
    }
}

/// The same for the map.
#[inline(never)]
fn counted_map(reference: &mut Reference) {
    for _ in 0..COUNTED {
        reference.cycle();
    }
}

/// Runs this program under callgrind and returns the instructions per cycle within `function`.
fn instructions(function: &str) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let output = std::process::Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=cycle::{function}"))
        .arg(program)
        .arg(function)
        .output()
        .expect("valgrind counts instructions; install it, or run `cargo xtask bench core`");
    let text = String::from_utf8_lossy(&output.stderr);
    let line =
        text.lines().find(|line| line.contains("Collected :")).expect("callgrind tells what it counted");
    let digits: String =
        line.rsplit(':').next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse::<f64>().expect("a number of instructions") / COUNTED as f64
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("counted_scheduler") => {
            let mut subject = Subject::new(Shape::Conversation, 1_000_000);
            let prepared = (0..COUNTED).map(|_| subject.submission()).collect();
            subject.events.reserve(8 * COUNTED);
            counted_scheduler(&mut subject, prepared);
        }
        Some("counted_lane") => {
            let mut subject = Subject::new(Shape::OneLane, 100_000);
            let prepared = (0..COUNTED).map(|_| subject.submission()).collect();
            subject.events.reserve(8 * COUNTED);
            counted_lane(&mut subject, prepared);
        }
        Some("counted_idle") => {
            let mut subject = Subject::new(Shape::OneLane, 0);
            while let Some((task, fence)) = subject.running.pop_front() {
                subject.step(Command::Finish { task, fence, taken: vec![], outcome: Outcome::Success });
            }
            let prepared = (0..COUNTED).map(|_| subject.submission()).collect();
            subject.events.reserve(8 * COUNTED);
            counted_idle(&mut subject, prepared);
        }
        Some("counted_map") => counted_map(&mut Reference::new(1_000_000)),
        _ => compare(),
    }
}

fn compare() {
    let (mut small, mut large) =
        (Subject::new(Shape::Conversation, 1000), Subject::new(Shape::Conversation, 1_000_000));
    let (mut small_map, mut large_map) = (Reference::new(1000), Reference::new(1_000_000));
    let mut times: Vec<[f64; 8]> = Vec::new();
    for _ in 0..ROUNDS {
        times.push([
            small.cycle(),
            large.cycle(),
            time(|| small_map.cycle()),
            time(|| large_map.cycle()),
            small.cancel(),
            large.cancel(),
            small.wakeup(),
            large.wakeup(),
        ]);
    }
    let column = |index: usize| median(&mut times.iter().map(|round| round[index]).collect::<Vec<_>>());
    let ratio = |a: usize, b: usize| times.iter().map(|round| round[a] / round[b]).collect::<Vec<_>>();
    println!("median nanoseconds, {ROUNDS} rounds of {CYCLES}:");
    for (index, what) in [
        "cycle, 1 000 waiting",
        "cycle, 1 000 000 waiting",
        "BTreeMap insert + pop, 1 000",
        "BTreeMap insert + pop, 1 000 000",
        "submit + cancel, 1 000 waiting",
        "submit + cancel, 1 000 000 waiting",
        "next_wakeup, 1 000 waiting",
        "next_wakeup, 1 000 000 waiting",
    ]
    .iter()
    .enumerate()
    {
        println!("  {what:<40} {:>8.0}", column(index));
    }
    let (ours, map) = (instructions("counted_scheduler"), instructions("counted_map"));
    println!("  {:<40} {ours:>8.0}", "instructions of a cycle, 1 000 000");
    println!("  {:<40} {map:>8.0}", "instructions of the map's, 1 000 000");
    println!();
    let holds = [
        report("cycle / BTreeMap insert + pop, 1 000 000 waiting, instructions", vec![ours / map], 10.0),
        report("cycle / BTreeMap insert + pop, 1 000 000 waiting, by the clock", ratio(1, 3), 8.0),
        report("cycle with 1 000 000 waiting / with 1 000", ratio(1, 0), 2.0),
        report("submit + cancel with 1 000 000 waiting / with 1 000", ratio(5, 4), 2.0),
        report("next_wakeup with 1 000 000 waiting / with 1 000", ratio(7, 6), 2.0),
    ];
    let shapes = [
        ("cycle with 100 000 / with 1 000, home lane main", Shape::MainFirst),
        ("cycle with 100 000 / with 1 000, one fair key for all", Shape::OneKey),
        ("cycle with 100 000 / with 1 000, main in fifo order", Shape::Fifo),
        ("cycle with 100 000 / with 1 000, a lane each and one provider", Shape::Provider),
    ];
    let shapes_hold = shapes.map(|(what, shape)| {
        let (mut small, mut large) = (Subject::new(shape, 1000), Subject::new(shape, 100_000));
        report(what, (0..ROUNDS).map(|_| large.cycle() / small.cycle()).collect(), 4.0)
    });
    if !holds.iter().chain(&shapes_hold).all(|holds| *holds) {
        std::process::exit(1);
    }
}
