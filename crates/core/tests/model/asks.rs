//! What is asked of both schedulers: small numbers that become commands by looking at what is live.
//!
//! Few lanes, few slots, few ids and short times that coincide, so that rules meet.

use std::num::NonZeroU128;

use laneway_core::{
    BlobId, CancelReason, Command, Fence, Idempotency, LaneName, Millis, Name, Outcome, Parent, Pattern,
    Selector, Source, TaskId, TaskSpec, Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{Naive, Phase};
use crate::tweaks::{RETRIES, Tweak, block, block_of};

const LANES: [&str; 6] = ["a", "b", "c", "x", "session:s", "main"];
const KINDS: [&str; 2] = ["chat", "code"];

/// Six lanes, `global`, and behind them as many conversations as there are numbers.
pub(crate) fn lane(number: u8) -> LaneName {
    match LANES.get(number as usize) {
        Some(name) => LaneName::new(*name).unwrap(),
        None if number == 6 => LaneName::global(),
        None => LaneName::session(&number.to_string()).unwrap(),
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// When the next command comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Now,
    In(u64),
    /// This number of milliseconds after the next due moment.
    Due(i64),
    Back,
}

pub(crate) fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        40 => Just(When::Now),
        10 => prop_oneof![Just(10), Just(50), Just(100)].prop_map(When::In),
        4 => (1u64..400).prop_map(When::In),
        10 => Just(When::Due(0)),
        4 => prop_oneof![Just(-1), Just(1)].prop_map(When::Due),
        1 => prop_oneof![Just(6_000), Just(31_000), Just(90_000_000)].prop_map(When::In),
        1 => Just(When::Back),
    ]
}

impl When {
    pub(crate) fn at(self, now: Timestamp, wakeup: Option<Timestamp>) -> Timestamp {
        let wakeup = wakeup.unwrap_or(now).0;
        Timestamp(match self {
            When::Now => now.0,
            When::In(millis) => now.0 + millis,
            When::Due(offset) => wakeup.saturating_add_signed(offset).max(now.0),
            When::Back => now.0.saturating_sub(1),
        })
    }
}

/// One wish about a task.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    Priority(u8),
    Source(u8),
    FairKey(u8),
    WaitTimeout(u64),
    Timeout(u64),
    Deadline(u64),
    RunAfter(u64),
    Retry(u8),
    Child(u8, bool),
    NewestChild,
    After(u8),
    Group,
    Payload,
    Key(u8, u64),
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        2 => (0u8..=9).prop_map(Wish::Priority),
        2 => (0u8..4).prop_map(Wish::Source),
        4 => (0u8..3).prop_map(Wish::FairKey),
        2 => prop_oneof![Just(0), Just(50), Just(100), Just(300)].prop_map(Wish::WaitTimeout),
        2 => prop_oneof![Just(10), Just(50), Just(100)].prop_map(Wish::Timeout),
        3 => prop_oneof![Just(0), Just(100), Just(200), Just(1_000)].prop_map(Wish::Deadline),
        2 => prop_oneof![Just(0), Just(10), Just(100)].prop_map(Wish::RunAfter),
        5 => (0u8..4).prop_map(Wish::Retry),
        3 => (any::<u8>(), prop::bool::weighted(0.2)).prop_map(|(nth, detached)| Wish::Child(nth, detached)),
        3 => Just(Wish::NewestChild),
        2 => any::<u8>().prop_map(Wish::After),
        1 => Just(Wish::Group),
        1 => Just(Wish::Payload),
        2 => (0u8..2, prop_oneof![4 => Just(7u64), 1 => Just(8)]).prop_map(|(key, print)| Wish::Key(key, print)),
    ]
}

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Submit(u8, Vec<u8>, Vec<Wish>),
    SubmitTaken(u8),
    Finish(u8, u8),
    FinishStale(u8, u64),
    Heartbeat(u8),
    Lapse(u8),
    Claim(u8, bool, u32, Option<u64>),
    Cancel(u8),
    Leave(u8),
    Clear(u8, bool, bool),
    Reprioritise(u8, u8),
    Configure(Vec<(u8, Option<Vec<Tweak>>)>),
    Gate(u8, u8),
    Release(u8),
    Redrive(u8),
    Discard(u8),
    Tick,
}

fn submit() -> impl Strategy<Value = Ask> {
    let lanes =
        prop_oneof![6 => vec(0u8..6, 1), 4 => vec(0u8..6, 2), 2 => vec(0u8..7, 3), 1 => vec(0u8..7, 0)];
    (0u8..2, lanes, vec(wish(), 0..4)).prop_map(|(kind, lanes, wishes)| Ask::Submit(kind, lanes, wishes))
}

pub(crate) fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        50 => submit(),
        1 => any::<u8>().prop_map(Ask::SubmitTaken),
        20 => (any::<u8>(), 0u8..8).prop_map(|(nth, how)| Ask::Finish(nth, how)),
        1 => (any::<u8>(), 0u64..40).prop_map(|(nth, fence)| Ask::FinishStale(nth, fence)),
        3 => any::<u8>().prop_map(Ask::Heartbeat),
        2 => any::<u8>().prop_map(Ask::Lapse),
        9 => (0u8..3, prop::bool::weighted(0.2), 0u32..4, prop::option::weighted(0.3, 20u64..60))
            .prop_map(|(lanes, code, max, lease)| Ask::Claim(lanes, code, max, lease)),
        3 => any::<u8>().prop_map(Ask::Cancel),
        2 => any::<u8>().prop_map(Ask::Leave),
        1 => (0u8..8, any::<bool>(), any::<bool>()).prop_map(|(lane, kind, group)| Ask::Clear(lane, kind, group)),
        2 => (any::<u8>(), 0u8..=9).prop_map(|(nth, priority)| Ask::Reprioritise(nth, priority)),
        5 => vec(block(), 1..3).prop_map(Ask::Configure),
        6 => (0u8..7, 0u8..6).prop_map(|(lane, gate)| Ask::Gate(lane, gate)),
        1 => (0u8..7).prop_map(Ask::Release),
        2 => any::<u8>().prop_map(Ask::Redrive),
        1 => any::<u8>().prop_map(Ask::Discard),
        4 => Just(Ask::Tick),
    ]
}

/// What is asked where two lanes are never free at once, and a few tasks need both.
pub(crate) fn contended_ask() -> impl Strategy<Value = Ask> {
    let submit = prop_oneof![30 => vec(0u8..2, 1), 1 => Just(vec![0, 1]), 1 => Just(vec![0, 1, 2])];
    prop_oneof![
        80 => submit.prop_map(|lanes| Ask::Submit(0, lanes, vec![Wish::FairKey(0)])),
        60 => any::<u8>().prop_map(|nth| Ask::Finish(nth, 0)),
        1 => (0u8..3, 1u8..24).prop_map(|(lane, gate)| Ask::Gate(lane, gate)),
    ]
}

/// What is asked where many conversations wait for a few slots.
pub(crate) fn crowded_ask() -> impl Strategy<Value = Ask> {
    let lanes = prop_oneof![
        4 => (10u8..40).prop_map(|session| vec![5, session]),
        1 => (10u8..40).prop_map(|session| vec![session]),
        1 => (10u8..40, 0u8..3).prop_map(|(session, lane)| vec![session, lane, 5]),
        1 => vec(0u8..6, 1),
    ];
    let wishes = prop_oneof![
        2 => Just(vec![]),
        1 => (0u8..4).prop_map(|source| vec![Wish::Source(source)]),
        1 => vec(wish(), 1),
    ];
    let submit = (lanes, wishes).prop_map(|(lanes, wishes)| Ask::Submit(0, lanes, wishes));
    prop_oneof![
        70 => submit,
        30 => (any::<u8>(), 0u8..8).prop_map(|(nth, how)| Ask::Finish(nth, how)),
        3 => (0u8..3, Just(false), 0u32..4).prop_map(|(lanes, code, max)| Ask::Claim(lanes, code, max, None)),
        2 => any::<u8>().prop_map(Ask::Cancel),
        2 => (any::<u8>(), 0u8..=9).prop_map(|(nth, priority)| Ask::Reprioritise(nth, priority)),
        1 => vec(block(), 1).prop_map(Ask::Configure),
        2 => (0u8..7, 1u8..6).prop_map(|(lane, gate)| Ask::Gate(lane, gate)),
    ]
}

/// What is asked where tasks ask for tasks that ask for tasks.
pub(crate) fn family_ask() -> impl Strategy<Value = Ask> {
    let lanes = prop_oneof![vec(0u8..4, 1), vec(0u8..6, 2)];
    let child =
        (lanes, prop_oneof![3 => Just(vec![]), 1 => vec(wish(), 1)]).prop_map(|(lanes, mut wishes)| {
            wishes.push(Wish::NewestChild);
            Ask::Submit(0, lanes, wishes)
        });
    prop_oneof![
        70 => child,
        8 => submit(),
        14 => (any::<u8>(), 0u8..8).prop_map(|(nth, how)| Ask::Finish(nth, how)),
        2 => any::<u8>().prop_map(Ask::Cancel),
        3 => vec(block(), 1).prop_map(Ask::Configure),
        2 => (0u8..7, 1u8..6).prop_map(|(lane, gate)| Ask::Gate(lane, gate)),
        1 => (0u8..7).prop_map(Ask::Release),
    ]
}

/// The settings in which tasks contend.
pub(crate) fn contended_lanes() -> Ask {
    let block = |number: u8| (number, Some(vec![Tweak::Slots(1), Tweak::Queued(8)]));
    Ask::Configure((0..3).map(block).collect())
}

/// Turns asks into commands about what is live in the naive scheduler.
pub(crate) struct Asker<'a>(pub(crate) &'a Naive, pub(crate) TaskId);

impl Asker<'_> {
    fn nth(&self, nth: u8) -> TaskId {
        let tasks = &self.0.tasks;
        tasks.get(nth as usize % tasks.len().max(1)).map_or(TaskId(9_999), |task| task.id)
    }

    fn nth_running(&self, nth: u8) -> (TaskId, Fence) {
        let running = self.0.running();
        let index = running.get(nth as usize % running.len().max(1));
        index.map_or((TaskId(9_999), Fence(1)), |index| (self.0.tasks[*index].id, self.0.tasks[*index].fence))
    }

    fn nth_letter(&self, nth: u8) -> TaskId {
        let letters = &self.0.letters;
        letters.get(nth as usize % letters.len().max(1)).map_or(TaskId(9_999), |letter| letter.task)
    }

    fn spec(&self, kind: u8, lanes: &[u8], wishes: &[Wish]) -> Box<TaskSpec> {
        let lanes = lanes.iter().map(|number| lane(*number)).collect();
        let mut spec = Box::new(TaskSpec::new(name(KINDS[kind as usize]), lanes));
        for wish in wishes {
            self.wish(&mut spec, wish);
        }
        spec
    }

    fn wish(&self, spec: &mut TaskSpec, wish: &Wish) {
        match *wish {
            Wish::Priority(priority) => spec.priority = Some(priority),
            Wish::Source(number) => {
                let sources = [Source::User, Source::Schedule, Source::Agent, Source::Background];
                spec.source = sources[number as usize];
            }
            Wish::FairKey(number) => spec.fair_key = Some(lane(number)),
            Wish::WaitTimeout(millis) => spec.wait_timeout = Some(Millis(millis)),
            Wish::Timeout(millis) => spec.timeout = Some(Millis(millis)),
            Wish::Deadline(millis) => spec.deadline = Some(Millis(millis)),
            Wish::RunAfter(millis) => spec.run_after = Some(Millis(millis)),
            Wish::Retry(number) => spec.retry = Some(RETRIES[number as usize]),
            Wish::Child(nth, detached) => {
                let task = if nth > 240 { self.nth(nth) } else { self.nth_running(nth).0 };
                spec.parent = Some(Parent { task, detached });
            }
            Wish::NewestChild => {
                let running = self.0.tasks.iter().rev().find(|task| task.phase == Phase::Running);
                spec.parent = running.map(|task| Parent { task: task.id, detached: false });
            }
            Wish::After(nth) => spec.after = Some(self.nth(nth)),
            Wish::Group => spec.group = Some(name("group")),
            Wish::Payload => spec.payload = Some(BlobId(NonZeroU128::MIN)),
            Wish::Key(number, fingerprint) => {
                let key = ["k0", "k1"][number as usize].into();
                let until_end = number == 1;
                spec.idempotency = Some(Idempotency { key, fingerprint, until_end });
            }
        }
    }

    pub(crate) fn command(&self, ask: &Ask) -> Command {
        match ask {
            Ask::Submit(kind, lanes, wishes) => {
                Command::Submit { task: self.1, spec: self.spec(*kind, lanes, wishes) }
            }
            Ask::SubmitTaken(nth) => Command::Submit { task: self.nth(*nth), spec: self.spec(0, &[0], &[]) },
            Ask::Finish(nth, how) => {
                let (task, fence) = self.nth_running(*nth);
                Command::Finish { task, fence, taken: vec![], outcome: outcome(*how) }
            }
            Ask::FinishStale(nth, fence) => Command::Finish {
                task: self.nth(*nth),
                fence: Fence(*fence),
                taken: vec![],
                outcome: Outcome::Success,
            },
            Ask::Lapse(nth) => {
                let (task, fence) = self.nth_running(*nth);
                Command::Lapse { task, fence }
            }
            Ask::Heartbeat(nth) => {
                let (task, fence) = self.nth_running(*nth);
                Command::Heartbeat { task, fence }
            }
            Ask::Claim(lanes, only_code, max, lease) => Command::Claim {
                worker: name("worker"),
                lanes: vec![Pattern::new(["x", "*", "session:*"][*lanes as usize]).unwrap()],
                kinds: only_code.then(|| name("code")).into_iter().collect(),
                max: *max,
                lease: lease.map(Millis),
            },
            Ask::Cancel(nth) => Command::Cancel { task: self.nth(*nth), reason: CancelReason::Caller },
            Ask::Leave(nth) => Command::Leave { task: self.nth(*nth) },
            Ask::Clear(number, only_code, only_group) => Command::CancelWaiting {
                which: Selector {
                    lane: (*number < 7).then(|| lane(*number)),
                    kind: only_code.then(|| name("code")),
                    group: only_group.then(|| name("group")),
                    parent: None,
                },
                reason: CancelReason::Cleared,
            },
            Ask::Reprioritise(nth, priority) => {
                Command::Reprioritise { task: self.nth(*nth), priority: *priority }
            }
            Ask::Configure(blocks) => Command::Configure(blocks.iter().map(block_of).collect()),
            Ask::Gate(number, 0) => Command::Drain { lane: lane(*number) },
            Ask::Gate(number, 1 | 2) => Command::Pause { lane: lane(*number) },
            Ask::Gate(number, _) => Command::Resume { lane: lane(*number) },
            Ask::Release(number) => Command::ForceRelease { lane: lane(*number) },
            Ask::Redrive(nth) => Command::Redrive { letter: self.nth_letter(*nth), task: self.1 },
            Ask::Discard(nth) => Command::Discard { letter: self.nth_letter(*nth) },
            Ask::Tick => Command::Tick,
        }
    }
}

fn outcome(how: u8) -> Outcome {
    match how {
        0..4 => Outcome::Success,
        4..6 => Outcome::Failure { error: "it broke".into(), retryable: true },
        6 => Outcome::Failure { error: "it is hopeless".into(), retryable: false },
        _ => Outcome::Stopped,
    }
}
