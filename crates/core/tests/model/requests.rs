//! Random requests to both schedulers: small numbers that become commands about live tasks.
//!
//! There are few lanes, few slots, few ids, and short times that coincide, so that rules meet.

use std::num::NonZeroU128;

use laneway_core::{
    BlobId, CancelReason, Command, Fence, Idempotency, LaneName, Millis, Name, Outcome, Parent, Pattern,
    Selector, Source, TaskId, TaskSpec, Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::naive::{Naive, Phase};
use crate::settings::{RETRIES, Setting, block, block_of};

const LANES: [&str; 6] = ["a", "b", "c", "x", "session:s", "main"];
const KINDS: [&str; 2] = ["chat", "code"];

/// Numbers below six are `LANES`, six is `global`, and every other number is a session.
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

/// One attribute of a task.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
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

fn attribute() -> impl Strategy<Value = Attribute> {
    prop_oneof![
        2 => (0u8..=9).prop_map(Attribute::Priority),
        2 => (0u8..4).prop_map(Attribute::Source),
        4 => (0u8..3).prop_map(Attribute::FairKey),
        2 => prop_oneof![Just(0), Just(50), Just(100), Just(300)].prop_map(Attribute::WaitTimeout),
        2 => prop_oneof![Just(10), Just(50), Just(100)].prop_map(Attribute::Timeout),
        3 => prop_oneof![Just(0), Just(100), Just(200), Just(1_000)].prop_map(Attribute::Deadline),
        2 => prop_oneof![Just(0), Just(10), Just(100)].prop_map(Attribute::RunAfter),
        5 => (0u8..4).prop_map(Attribute::Retry),
        3 => (any::<u8>(), prop::bool::weighted(0.2)).prop_map(|(nth, detached)| Attribute::Child(nth, detached)),
        3 => Just(Attribute::NewestChild),
        2 => any::<u8>().prop_map(Attribute::After),
        1 => Just(Attribute::Group),
        1 => Just(Attribute::Payload),
        2 => (0u8..2, prop_oneof![4 => Just(7u64), 1 => Just(8)]).prop_map(|(key, print)| Attribute::Key(key, print)),
    ]
}

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Submit(u8, Vec<u8>, Vec<Attribute>),
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
    Configure(Vec<(u8, Option<Vec<Setting>>)>),
    Gate(u8, u8),
    Release(u8),
    Redrive(u8),
    Discard(u8),
    Tick,
}

fn submit() -> impl Strategy<Value = Request> {
    let lanes =
        prop_oneof![6 => vec(0u8..6, 1), 4 => vec(0u8..6, 2), 2 => vec(0u8..7, 3), 1 => vec(0u8..7, 0)];
    (0u8..2, lanes, vec(attribute(), 0..4))
        .prop_map(|(kind, lanes, attributes)| Request::Submit(kind, lanes, attributes))
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        50 => submit(),
        1 => any::<u8>().prop_map(Request::SubmitTaken),
        20 => (any::<u8>(), 0u8..8).prop_map(|(nth, how)| Request::Finish(nth, how)),
        1 => (any::<u8>(), 0u64..40).prop_map(|(nth, fence)| Request::FinishStale(nth, fence)),
        3 => any::<u8>().prop_map(Request::Heartbeat),
        2 => any::<u8>().prop_map(Request::Lapse),
        9 => (0u8..3, prop::bool::weighted(0.2), 0u32..4, prop::option::weighted(0.3, 20u64..60))
            .prop_map(|(lanes, code, max, lease)| Request::Claim(lanes, code, max, lease)),
        3 => any::<u8>().prop_map(Request::Cancel),
        2 => any::<u8>().prop_map(Request::Leave),
        1 => (0u8..8, any::<bool>(), any::<bool>()).prop_map(|(lane, kind, group)| Request::Clear(lane, kind, group)),
        2 => (any::<u8>(), 0u8..=9).prop_map(|(nth, priority)| Request::Reprioritise(nth, priority)),
        5 => vec(block(), 1..3).prop_map(Request::Configure),
        6 => (0u8..7, 0u8..6).prop_map(|(lane, gate)| Request::Gate(lane, gate)),
        1 => (0u8..7).prop_map(Request::Release),
        2 => any::<u8>().prop_map(Request::Redrive),
        1 => any::<u8>().prop_map(Request::Discard),
        4 => Just(Request::Tick),
    ]
}

/// Requests where two lanes are never free at once, and a few tasks need both.
pub(crate) fn contended_request() -> impl Strategy<Value = Request> {
    let submit = prop_oneof![30 => vec(0u8..2, 1), 1 => Just(vec![0, 1]), 1 => Just(vec![0, 1, 2])];
    prop_oneof![
        80 => submit.prop_map(|lanes| Request::Submit(0, lanes, vec![Attribute::FairKey(0)])),
        60 => any::<u8>().prop_map(|nth| Request::Finish(nth, 0)),
        1 => (0u8..3, 1u8..24).prop_map(|(lane, gate)| Request::Gate(lane, gate)),
    ]
}

/// Requests where many sessions wait for a few slots.
pub(crate) fn crowded_request() -> impl Strategy<Value = Request> {
    let lanes = prop_oneof![
        4 => (10u8..40).prop_map(|session| vec![5, session]),
        1 => (10u8..40).prop_map(|session| vec![session]),
        1 => (10u8..40, 0u8..3).prop_map(|(session, lane)| vec![session, lane, 5]),
        1 => vec(0u8..6, 1),
    ];
    let attributes = prop_oneof![
        2 => Just(vec![]),
        1 => (0u8..4).prop_map(|source| vec![Attribute::Source(source)]),
        1 => vec(attribute(), 1),
    ];
    let submit = (lanes, attributes).prop_map(|(lanes, attributes)| Request::Submit(0, lanes, attributes));
    prop_oneof![
        70 => submit,
        30 => (any::<u8>(), 0u8..8).prop_map(|(nth, how)| Request::Finish(nth, how)),
        3 => (0u8..3, Just(false), 0u32..4).prop_map(|(lanes, code, max)| Request::Claim(lanes, code, max, None)),
        2 => any::<u8>().prop_map(Request::Cancel),
        2 => (any::<u8>(), 0u8..=9).prop_map(|(nth, priority)| Request::Reprioritise(nth, priority)),
        1 => vec(block(), 1).prop_map(Request::Configure),
        2 => (0u8..7, 1u8..6).prop_map(|(lane, gate)| Request::Gate(lane, gate)),
    ]
}

/// Requests where children have children.
pub(crate) fn family_request() -> impl Strategy<Value = Request> {
    let lanes = prop_oneof![vec(0u8..4, 1), vec(0u8..6, 2)];
    let child = (lanes, prop_oneof![3 => Just(vec![]), 1 => vec(attribute(), 1)]).prop_map(
        |(lanes, mut attributes)| {
            attributes.push(Attribute::NewestChild);
            Request::Submit(0, lanes, attributes)
        },
    );
    prop_oneof![
        70 => child,
        8 => submit(),
        14 => (any::<u8>(), 0u8..8).prop_map(|(nth, how)| Request::Finish(nth, how)),
        2 => any::<u8>().prop_map(Request::Cancel),
        3 => vec(block(), 1).prop_map(Request::Configure),
        2 => (0u8..7, 1u8..6).prop_map(|(lane, gate)| Request::Gate(lane, gate)),
        1 => (0u8..7).prop_map(Request::Release),
    ]
}

/// The settings in which tasks contend.
pub(crate) fn contended_lanes() -> Request {
    let block = |number: u8| (number, Some(vec![Setting::Slots(1), Setting::Queued(8)]));
    Request::Configure((0..3).map(block).collect())
}

/// Makes commands about live tasks of the naive scheduler from requests.
pub(crate) struct CommandBuilder<'a>(pub(crate) &'a Naive, pub(crate) TaskId);

impl CommandBuilder<'_> {
    fn nth(&self, nth: u8) -> TaskId {
        let tasks = &self.0.tasks;
        tasks.get(nth as usize % tasks.len().max(1)).map_or(TaskId(9_999), |task| task.id)
    }

    fn nth_running(&self, nth: u8) -> (TaskId, Fence) {
        let running = self.0.running();
        let index = running.get(nth as usize % running.len().max(1));
        index.map_or((TaskId(9_999), Fence(1)), |index| (self.0.tasks[*index].id, self.0.tasks[*index].fence))
    }

    fn nth_dead_letter(&self, nth: u8) -> TaskId {
        let dead = &self.0.dead_letters;
        dead.get(nth as usize % dead.len().max(1)).map_or(TaskId(9_999), |letter| letter.task)
    }

    fn spec(&self, kind: u8, lanes: &[u8], attributes: &[Attribute]) -> Box<TaskSpec> {
        let lanes = lanes.iter().map(|number| lane(*number)).collect();
        let mut spec = Box::new(TaskSpec::new(name(KINDS[kind as usize]), lanes));
        for attribute in attributes {
            self.set(&mut spec, attribute);
        }
        spec
    }

    fn set(&self, spec: &mut TaskSpec, attribute: &Attribute) {
        match *attribute {
            Attribute::Priority(priority) => spec.priority = Some(priority),
            Attribute::Source(number) => {
                let sources = [Source::User, Source::Schedule, Source::Agent, Source::Background];
                spec.source = sources[number as usize];
            }
            Attribute::FairKey(number) => spec.fair_key = Some(lane(number)),
            Attribute::WaitTimeout(millis) => spec.wait_timeout = Some(Millis(millis)),
            Attribute::Timeout(millis) => spec.timeout = Some(Millis(millis)),
            Attribute::Deadline(millis) => spec.deadline = Some(Millis(millis)),
            Attribute::RunAfter(millis) => spec.run_after = Some(Millis(millis)),
            Attribute::Retry(number) => spec.retry = Some(RETRIES[number as usize]),
            Attribute::Child(nth, detached) => {
                let task = if nth > 240 { self.nth(nth) } else { self.nth_running(nth).0 };
                spec.parent = Some(Parent { task, detached });
            }
            Attribute::NewestChild => {
                let running = self.0.tasks.iter().rev().find(|task| task.phase == Phase::Running);
                spec.parent = running.map(|task| Parent { task: task.id, detached: false });
            }
            Attribute::After(nth) => spec.after = Some(self.nth(nth)),
            Attribute::Group => spec.group = Some(name("group")),
            Attribute::Payload => spec.payload = Some(BlobId(NonZeroU128::MIN)),
            Attribute::Key(number, fingerprint) => {
                let key = ["k0", "k1"][number as usize].into();
                let until_end = number == 1;
                spec.idempotency = Some(Idempotency { key, fingerprint, until_end });
            }
        }
    }

    pub(crate) fn command(&self, request: &Request) -> Command {
        match request {
            Request::Submit(kind, lanes, attributes) => {
                Command::Submit { task: self.1, spec: self.spec(*kind, lanes, attributes) }
            }
            Request::SubmitTaken(nth) => {
                Command::Submit { task: self.nth(*nth), spec: self.spec(0, &[0], &[]) }
            }
            Request::Finish(nth, how) => {
                let (task, fence) = self.nth_running(*nth);
                Command::Finish { task, fence, taken: vec![], outcome: outcome(*how) }
            }
            Request::FinishStale(nth, fence) => Command::Finish {
                task: self.nth(*nth),
                fence: Fence(*fence),
                taken: vec![],
                outcome: Outcome::Success,
            },
            Request::Lapse(nth) => {
                let (task, fence) = self.nth_running(*nth);
                Command::Lapse { task, fence }
            }
            Request::Heartbeat(nth) => {
                let (task, fence) = self.nth_running(*nth);
                Command::Heartbeat { task, fence }
            }
            Request::Claim(lanes, only_code, max, lease) => Command::Claim {
                worker: name("worker"),
                lanes: vec![Pattern::new(["x", "*", "session:*"][*lanes as usize]).unwrap()],
                kinds: only_code.then(|| name("code")).into_iter().collect(),
                max: *max,
                lease: lease.map(Millis),
            },
            Request::Cancel(nth) => Command::Cancel { task: self.nth(*nth), reason: CancelReason::Caller },
            Request::Leave(nth) => Command::Leave { task: self.nth(*nth) },
            Request::Clear(number, only_code, only_group) => Command::CancelWaiting {
                which: Selector {
                    lane: (*number < 7).then(|| lane(*number)),
                    kind: only_code.then(|| name("code")),
                    group: only_group.then(|| name("group")),
                    parent: None,
                },
                reason: CancelReason::Cleared,
            },
            Request::Reprioritise(nth, priority) => {
                Command::Reprioritise { task: self.nth(*nth), priority: *priority }
            }
            Request::Configure(blocks) => Command::Configure(blocks.iter().map(block_of).collect()),
            Request::Gate(number, 0) => Command::Drain { lane: lane(*number) },
            Request::Gate(number, 1 | 2) => Command::Pause { lane: lane(*number) },
            Request::Gate(number, _) => Command::Resume { lane: lane(*number) },
            Request::Release(number) => Command::ForceRelease { lane: lane(*number) },
            Request::Redrive(nth) => {
                Command::Redrive { dead_letter: self.nth_dead_letter(*nth), task: self.1 }
            }
            Request::Discard(nth) => Command::Discard { dead_letter: self.nth_dead_letter(*nth) },
            Request::Tick => Command::Tick,
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
