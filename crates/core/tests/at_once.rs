//! The short way is a way to the same place: whatever else happens, a task that started or ended at once leaves the state
//! that its command would have left, and its command would have brought those events and no others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use laneway_core::{
    BlobId, Block, Command, Event, Fence, LaneName, LaneSettings, Millis, Name, Outcome, Pattern, Retry,
    Scheduler, Selector, SessionCommand, Switch, TaskId, TaskSpec, Timestamp,
};

/// The lanes of the tasks: one that is wide, ones that are soon full, paused, drained, rated, external, a conversation.
const LANES: [&str; 8] = ["wide", "two", "one", "rated", "ext", "session:a", "late", "fresh"];
const SETTINGS: [(&str, &str, &str); 9] = [
    ("wide", "max_concurrency", "1000"),
    ("two", "max_concurrency", "2"),
    ("two", "priority", "7"),
    ("one", "timeout", "40"),
    ("rated", "rate_limit.max", "2"),
    ("ext", "handler", "external"),
    ("late", "wait_timeout", "30"),
    ("late", "lease", "25"),
    ("global", "max_concurrency", "6"),
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The same queue twice: one has everything decided by commands, the other takes the short way where there is one.
struct Twins {
    long: Scheduler,
    short: Scheduler,
    now: Timestamp,
    running: Vec<(TaskId, Fence)>,
    started: usize,
    ended: usize,
    declined: usize,
}

/// Names that programs keep and ask with again and again: all that share one are found by where it lies.
fn kept_name(index: usize) -> LaneName {
    thread_local!(static KEPT: Vec<LaneName> = LANES.iter().map(|name| lane(name)).collect());
    KEPT.with(|kept| kept[index].clone())
}

fn kind() -> Name {
    thread_local!(static KIND: Name = Name::new("slot").unwrap());
    KIND.with(Name::clone)
}

impl Twins {
    fn new() -> Twins {
        let new = |seed| {
            let mut scheduler = Scheduler::new(seed);
            scheduler.keep_departed();
            scheduler.unwatched(Some(kind()));
            scheduler
        };
        let (long, short) = (new(1), new(2));
        let running = Vec::new();
        Twins { long, short, now: Timestamp(1000), running, started: 0, ended: 0, declined: 0 }
    }

    fn step(&mut self, command: &Command) -> Vec<Event> {
        let (mut events, mut others) = (Vec::new(), Vec::new());
        let reply = self.long.step(self.now, command.clone(), &mut events);
        assert_eq!(self.short.step(self.now, command.clone(), &mut others), reply);
        assert_eq!(events, others, "{command:?}");
        self.note(&events);
        events
    }

    fn note(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Granted { task, fence, .. } => self.running.push((*task, *fence)),
                Event::Ended { task, .. } | Event::Retrying { task, .. } => {
                    self.running.retain(|(other, _)| other != task);
                }
                _ => {}
            }
        }
    }

    fn submit(&mut self, task: TaskId, lanes: Vec<LaneName>) {
        let mut spec = TaskSpec::new(kind(), lanes);
        spec.retry = Some(Retry::NONE);
        let Some(start) = self.short.start_at_once(self.now, task, &spec.kind, &spec.lanes) else {
            self.declined += 1;
            self.step(&Command::Submit { task, spec: Box::new(spec) });
            return;
        };
        let mut events = Vec::new();
        self.long.step(self.now, Command::Submit { task, spec: Box::new(spec) }, &mut events).unwrap();
        match &*events {
            [
                Event::Submitted { task: submitted, .. },
                Event::Granted { task: granted, fence, lease, timeout_at, worker: None, borrowed, .. },
            ] => {
                assert_eq!((*submitted, *granted, borrowed.len()), (task, task, 0));
                assert_eq!((*fence, *lease, *timeout_at), (start.fence, start.lease, start.timeout_at));
            }
            other => panic!("the command brought {other:?}"),
        }
        self.note(&events);
        self.started += 1;
    }

    fn finish(&mut self, task: TaskId, fence: Fence) {
        let finish = Command::Finish { task, fence, outcome: Outcome::Success };
        if !self.short.end_at_once(self.now, task, fence) {
            self.declined += 1;
            self.step(&finish);
            return;
        }
        let mut events = Vec::new();
        self.long.step(self.now, finish, &mut events).unwrap();
        assert!(matches!(&*events, [Event::Ended { task: ended, .. }] if *ended == task), "{events:?}");
        self.note(&events);
        self.ended += 1;
    }

    fn agree(&self) {
        assert_eq!(self.long.state(), self.short.state());
        assert_eq!(self.long.next_wakeup(), self.short.next_wakeup());
        assert_eq!(self.short.violation(), None);
    }
}

fn lane(name: &str) -> LaneName {
    LaneName::new(name).unwrap()
}

fn configure() -> Command {
    let mut blocks: Vec<Block> = Vec::new();
    for (name, key, value) in SETTINGS {
        let pattern = Pattern::new(name).unwrap();
        if blocks.last().is_none_or(|block| block.lanes != pattern) {
            blocks.push(Block { lanes: pattern, settings: Some(LaneSettings::default()) });
        }
        blocks.last_mut().unwrap().settings.as_mut().unwrap().set(key, value).unwrap();
    }
    Command::Configure(blocks)
}

/// Something beside tasks that come and go.
fn disturbance(dice: &mut Dice, task: TaskId) -> Command {
    let name = LANES[dice.roll(LANES.len() as u64) as usize];
    match dice.roll(7) {
        0 => Command::Pause { lane: lane(name) },
        1 | 2 => Command::Resume { lane: lane(name) },
        3 => Command::Drain { lane: lane(name) },
        4 => Command::Tick,
        5 => Command::Leave { task: TaskId(task.0.saturating_sub(u128::from(dice.roll(20)))) },
        _ => {
            let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![lane(name)]);
            spec.run_after = (dice.roll(2) == 0).then_some(Millis(15));
            spec.deadline = (dice.roll(4) == 0).then_some(Millis(60));
            Command::Submit { task: TaskId(task.0 + (1 << 64)), spec: Box::new(spec) }
        }
    }
}

#[test]
fn who_starts_or_ends_at_once_leaves_the_same_state_as_by_command() {
    let (mut started, mut ended, mut declined) = (0, 0, 0);
    for seed in 1..=6 {
        let (mut dice, mut twins) = (Dice(seed), Twins::new());
        twins.step(&configure());
        for number in 1..=400u128 {
            twins.now = twins.now + Millis(dice.roll(4));
            let task = TaskId(number);
            match dice.roll(16) {
                0 if number % 80 < 20 => drop(twins.step(&disturbance(&mut dice, task))),
                0..6 => {
                    // Most often in the wide one.
                    let lanes = (0..=dice.roll(2)).map(|_| dice.roll(16).saturating_sub(8) as usize);
                    let lanes: Vec<usize> = lanes.collect();
                    let is_kept = dice.roll(2) == 0;
                    let name = |index: &usize| if is_kept { kept_name(*index) } else { lane(LANES[*index]) };
                    twins.submit(task, lanes.iter().map(name).collect());
                }
                6 => drop(twins.step(&Command::Tick)),
                _ => {
                    let index = dice.roll(twins.running.len().max(1) as u64) as usize;
                    if let Some((task, fence)) = twins.running.get(index).copied() {
                        twins.finish(task, fence);
                    }
                }
            }
            if number % 40 == 20 {
                // What piled up goes, so that there is a short way again.
                for name in LANES {
                    twins.step(&Command::Resume { lane: lane(name) });
                    let which = Selector { lane: Some(lane(name)), ..Selector::default() };
                    let reason = laneway_core::CancelReason::Caller;
                    twins.step(&Command::CancelWaiting { which, reason });
                }
            }
            twins.agree();
        }
        started += twins.started;
        ended += twins.ended;
        declined += twins.declined;
    }
    assert!(started > 100 && ended > 100 && declined > 300, "{started} {ended} {declined}");
}

/// Routes are kept for a while when nobody takes them, and let go when they are many.
#[test]
fn however_many_lanes_come_and_go_both_ways_know_the_same() {
    let mut twins = Twins::new();
    let names: Vec<LaneName> = (0..200).map(|number| lane(&format!("lane {number}"))).collect();
    let mut dice = Dice(7);
    for number in 1..=1500u128 {
        twins.now = twins.now + Millis(dice.roll(2));
        // Mostly one of a few, so that it is found again, and now and then any.
        let few = if dice.roll(8) == 0 { 200 } else { 20 };
        twins.submit(TaskId(number), vec![names[dice.roll(few) as usize].clone()]);
        while twins.running.len() > dice.roll(4) as usize {
            let (task, fence) = twins.running[dice.roll(twins.running.len() as u64) as usize];
            twins.finish(task, fence);
        }
        if number % 5 == 0 {
            twins.agree();
        }
    }
    assert!(twins.started > 1000 && twins.ended > 1000, "{} {}", twins.started, twins.ended);
    assert!(twins.declined > 60, "{}", twins.declined);
}

#[test]
fn an_id_that_is_taken_and_a_stale_fence_are_left_to_the_commands() {
    let mut twins = Twins::new();
    let main = [lane("main")];
    // The first task makes its lane; those after it find it.
    twins.submit(TaskId(1), main.to_vec());
    twins.submit(TaskId(2), main.to_vec());
    assert_eq!((twins.started, twins.declined), (1, 1));
    assert_eq!(twins.short.start_at_once(twins.now, TaskId(2), &kind(), &main), None);
    let (task, fence) = twins.running[1];
    assert!(!twins.short.end_at_once(twins.now, task, Fence(fence.0 + 1)));
    assert!(!twins.short.end_at_once(Timestamp(1), task, fence));
    twins.agree();
    twins.finish(task, fence);
    assert!(!twins.short.end_at_once(twins.now, task, fence));
    assert_eq!(twins.ended, 1);
    twins.agree();
}

/// What has something to tell, or somebody who wants to know, is left to the commands; all else is not.
#[test]
fn who_concerns_somebody_else_neither_starts_nor_ends_at_once() {
    let conversation = |key: &str| {
        let queue = laneway_core::QueueOverrides { cap: Some(3), ..Default::default() };
        Command::Session(Box::new(SessionCommand::Configure { session: key.into(), queue }))
    };
    let drain = |name: &str| Command::Drain { lane: lane(name) };
    let plain = |_: &mut TaskSpec| {};
    type Change = fn(&mut TaskSpec);
    // The lane, what is done before, what else is asked of a task, whether one ends at once and another starts at once.
    let cases: [(&str, Option<Command>, Change, bool, bool); 8] = [
        ("main", None, plain, true, true),
        ("session:a", None, plain, true, true),
        ("main", Some(conversation("a")), plain, true, true),
        ("session:a", Some(conversation("a")), plain, false, false),
        ("main", Some(drain("main")), plain, false, false),
        ("main", None, |spec| spec.payload = std::num::NonZeroU128::new(7).map(BlobId), false, true),
        ("main", None, |spec| spec.timeout = Some(Millis(50)), false, true),
        ("main", None, |spec| spec.kind = Name::new("watched").unwrap(), false, true),
    ];
    for (number, (name, before, change, ends, starts)) in cases.into_iter().enumerate() {
        let mut twins = Twins::new();
        let slots = Block {
            lanes: Pattern::new(name).unwrap(),
            settings: Some(LaneSettings { max_concurrency: Some(Switch::On(4)), ..LaneSettings::default() }),
        };
        twins.step(&Command::Configure(vec![slots]));
        let mut spec = TaskSpec::new(kind(), vec![lane(name)]);
        spec.retry = Some(Retry::NONE);
        change(&mut spec);
        twins.step(&Command::Submit { task: TaskId(1), spec: Box::new(spec) });
        if let Some(before) = before {
            twins.step(&before);
        }
        let started = twins.short.start_at_once(twins.now, TaskId(2), &kind(), &[lane(name)]);
        assert_eq!(started.is_some(), starts, "start of {number}");
        let (task, fence) = twins.running[0];
        assert_eq!(twins.short.end_at_once(twins.now, task, fence), ends, "end of {number}");
        assert_eq!(twins.short.violation(), None);
    }
}

/// Who starts at once passes over whoever waits for more lanes, as who stood in line would: his turn comes all the same.
#[test]
fn slots_are_kept_for_who_is_passed_over_by_those_who_start_at_once() {
    let mut twins = Twins::new();
    let (left, right) = (lane("left"), lane("right"));
    let mut busy = [TaskId(1), TaskId(2)];
    twins.submit(busy[0], vec![left.clone()]);
    twins.submit(busy[1], vec![right.clone()]);
    let mut both = TaskSpec::new(kind(), vec![lane("home"), left.clone(), right.clone()]);
    both.fair_key = Some(lane("ann"));
    // Behind it waits one that a pause holds up, too: that is not the one who is passed over.
    let mut paused = both.clone();
    paused.lanes.push(lane("z-paused"));
    twins.step(&Command::Pause { lane: lane("z-paused") });
    twins.step(&Command::Submit { task: TaskId(3), spec: Box::new(both) });
    twins.step(&Command::Submit { task: TaskId(4), spec: Box::new(paused) });
    for number in 0..200 {
        // One of the two is always busy.
        let side = number % 2;
        let (_, fence) = *twins.running.iter().find(|(task, _)| *task == busy[side]).unwrap();
        twins.finish(busy[side], fence);
        if twins.running.iter().any(|(task, _)| *task == TaskId(3)) {
            assert!((60..70).contains(&number), "{number}");
            return;
        }
        busy[side] = TaskId(10 + number as u128);
        twins.submit(busy[side], vec![[left.clone(), right.clone()][side].clone()]);
        if !twins.running.iter().any(|(task, _)| *task == busy[side]) {
            busy[side] = busy[1 - side];
        }
    }
    panic!("it starves");
}
