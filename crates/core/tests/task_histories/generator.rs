//! Generates a history: the next command and its time. There are few lanes and small limits, so that tasks compete.

use std::num::NonZeroU128;
use std::sync::Arc;

use laneway_core::{
    BlobId, Block, CancelReason, Command, Fence, Idempotency, LaneName, LaneSettings, Millis, Name,
    NoteChange, Outcome, Parent, Pattern, Retry, Selector, Source, Switch, TaskId, TaskSpec, Timestamp,
    ToolBatch, ToolCall, ToolLane,
};

use crate::checker::Checker;
use crate::lane_settings;
use laneway_seeded::Random;

const LANES: [&str; 9] = ["a", "b", "c", "x", "main", "session:s", "session:t", "agent:k", "session:s/query"];
const KINDS: [&str; 2] = ["chat", "code"];
/// The most live tasks before submissions stop, so that scans of all tasks stay affordable.
const LIVE_MAX: usize = 90;

/// How often, and for how many commands, a history makes tasks starve.
const STARVING_EVERY: u64 = 2_500;
const STARVING_LASTS: u64 = 500;

pub(crate) struct Generator {
    pub(crate) random: Random,
    next_task: u128,
    commands: u64,
    /// The next commands, the last first.
    pending: Vec<Command>,
    /// The next step has the time of the last one.
    is_same_time: bool,
    /// For how many more commands each running task submits a child.
    chain_commands: u32,
}

/// Prepares starvation: two lanes have one slot each, and nothing else blocks their tasks.
fn prepare_starvation() -> Vec<Command> {
    let block = |lanes: &str, slots: Switch<u32>| Block {
        lanes: Pattern::new(lanes).unwrap(),
        settings: Some(LaneSettings {
            max_concurrency: Some(slots),
            max_queued: Some(50),
            retry: Some(Retry::NONE),
            lease: Some(Millis::from_secs(3600)),
            ..LaneSettings::default()
        }),
    };
    let blocks = [("a", Switch::On(1)), ("b", Switch::On(1)), ("global", Switch::Off)];
    let blocks = blocks.map(|(lanes, slots)| block(lanes, slots));
    let mut commands = ["a", "b", "global"].map(|name| Command::Resume { lane: lane(name) }).to_vec();
    commands.push(Command::Configure(blocks.to_vec()));
    commands
}

pub(crate) fn lane(text: &str) -> LaneName {
    LaneName::new(text).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator {
            random: Random::new(seed),
            next_task: 1,
            commands: 0,
            pending: vec![],
            is_same_time: false,
            chain_commands: 0,
        }
    }

    /// The time of the next step: often now, often when something is due, sometimes much later.
    pub(crate) fn later(&mut self, now: Timestamp, wakeup: Option<Timestamp>) -> Timestamp {
        let random = &mut self.random;
        let wakeup = wakeup.unwrap_or(now).0;
        let hour = 3_600_000;
        let at = match random.below(1000) {
            0..560 => now.0,
            560..760 => now.0 + random.below(60),
            760..880 => wakeup.max(now.0),
            880..900 => wakeup.saturating_sub(1).max(now.0),
            900..920 => wakeup.max(now.0) + 1,
            920..982 => now.0 + random.below(1_500),
            982..992 => now.0 + random.below(30_000),
            992..994 => now.0 + random.below(3 * hour),
            994..995 => now.0 + hour * (20 + random.below(10)),
            _ => now.0.saturating_sub(1 + random.below(5)),
        };
        self.is_same_time = at == now.0;
        Timestamp(at)
    }

    pub(crate) fn next(&mut self, seen: &Checker) -> Command {
        self.commands += 1;
        if self.commands % STARVING_EVERY == STARVING_EVERY - STARVING_LASTS {
            self.pending = prepare_starvation();
        }
        if let Some(command) = self.pending.pop() {
            return command;
        }
        if self.commands % STARVING_EVERY > STARVING_EVERY - STARVING_LASTS {
            return self.starve(seen);
        }
        self.chain_commands = if self.random.percent(1) { 12 } else { self.chain_commands.saturating_sub(1) };
        if self.chain_commands > 0 && !seen.running().is_empty() {
            return self.submit_grandchild(seen);
        }
        let is_full = seen.live() >= LIVE_MAX;
        let is_idle = seen.running().is_empty();
        match self.random.below(1000) {
            0..400 if !is_full => self.submit(seen),
            400..420 if !is_full => self.batch(seen),
            420..610 if !is_idle => self.finish(seen),
            610..630 if !is_idle => self.heartbeat(seen),
            630..640 if !is_idle => self.lapse(seen),
            640..760 => self.claim(),
            760..780 => self.cancel(seen),
            780..783 => self.clear(),
            783..808 => self.reprioritise(seen),
            808..838 => self.configure(),
            838..853 => Command::Pause { lane: self.lane() },
            853..905 => Command::Resume { lane: self.closed_lane(seen) },
            905..911 => Command::Drain { lane: self.lane() },
            911..917 => Command::ForceRelease { lane: self.lane() },
            917..930 => self.redrive(seen),
            930..935 => Command::Discard { dead_letter: self.dead_letter(seen) },
            950..960 => self.note(),
            935..950 => Command::Leave { task: self.joined_task(seen) },
            _ if is_full => self.cancel(seen),
            _ => Command::Tick,
        }
    }

    /// The newest running task submits a child, which may submit the next one.
    fn submit_grandchild(&mut self, seen: &Checker) -> Command {
        let mut spec = TaskSpec::new(name("chat"), vec![self.lane()]);
        let newest = seen.running().last().copied();
        spec.parent = newest.map(|(task, _)| Parent { task, detached: false });
        Command::Submit { task: self.new_task(seen), spec: Box::new(spec) }
    }

    /// Keeps two lanes busy, so that they are never free at once. A task that needs both is passed over again and again.
    fn starve(&mut self, seen: &Checker) -> Command {
        if seen.live() >= 30 || self.random.percent(45) && !seen.running().is_empty() {
            return self.finish(seen);
        }
        let lanes = match self.random.below(20) {
            0 => vec![lane("a"), lane("b")],
            number => vec![lane(if number % 2 == 0 { "a" } else { "b" })],
        };
        let mut spec = TaskSpec::new(name("chat"), lanes);
        spec.fair_key = Some(lane("ann"));
        Command::Submit { task: self.new_task(seen), spec: Box::new(spec) }
    }

    fn lane(&mut self) -> LaneName {
        match self.random.below(100) {
            0..2 => LaneName::global(),
            // Many sessions, whose lanes all have the same settings.
            2..14 => LaneName::session(&self.random.below(20).to_string()).unwrap(),
            _ => lane(self.random.pick(&LANES)),
        }
    }

    /// Mostly a paused or draining lane.
    fn closed_lane(&mut self, seen: &Checker) -> LaneName {
        let closed = seen.closed_lanes();
        if closed.is_empty() { self.lane() } else { self.random.pick(&closed) }
    }

    /// Mostly a new id, sometimes one in use.
    fn new_task(&mut self, seen: &Checker) -> TaskId {
        let taken: Vec<TaskId> = seen.live_tasks().into_iter().chain(seen.dead_letters()).collect();
        if self.is_same_time && self.random.percent(3) && !taken.is_empty() {
            return self.random.pick(&taken);
        }
        self.next_task += 1;
        TaskId(self.next_task)
    }

    /// Mostly a live task, sometimes an ended or unknown one.
    fn known_task(&mut self, seen: &Checker) -> TaskId {
        let live = seen.live_tasks();
        if live.is_empty() || self.random.percent(8) {
            return TaskId(self.random.below(self.next_task as u64 + 5).into());
        }
        self.random.pick(&live)
    }

    /// Often a task that several callers wait for.
    fn joined_task(&mut self, seen: &Checker) -> TaskId {
        let joined = seen.joined_tasks();
        if joined.is_empty() || self.random.percent(30) {
            self.known_task(seen)
        } else {
            self.random.pick(&joined)
        }
    }

    /// Mostly a running attempt, sometimes an old or an invented fence.
    fn attempt(&mut self, seen: &Checker) -> (TaskId, Fence) {
        let running = seen.running();
        if running.is_empty() || self.random.percent(4) {
            return (self.known_task(seen), Fence(self.random.below(seen.last_fence() + 3)));
        }
        self.random.pick(&running)
    }

    fn submit(&mut self, seen: &Checker) -> Command {
        let task = self.new_task(seen);
        let kind = name(self.random.pick(&KINDS));
        let lanes = (0..self.random.pick(&[1u8, 1, 1, 2, 2, 3, 0])).map(|_| self.lane()).collect();
        let mut spec = TaskSpec::new(kind, lanes);
        let random = &mut self.random;
        spec.payload = random.maybe(20, &[BlobId(NonZeroU128::MIN)]);
        spec.source = random.pick(&[Source::User, Source::Schedule, Source::Agent, Source::Background]);
        spec.priority = random.maybe(30, &[0, 1, 2, 2, 5, 9]);
        spec.fair_key = random.maybe(30, &[lane("ann"), lane("bob"), lane("a")]);
        spec.wait_timeout = random.maybe(15, &[0, 500, 5_000, 60_000]).map(Millis);
        spec.timeout = random.maybe(25, &[1, 50, 300, 20_000]).map(Millis);
        spec.deadline = random.maybe(20, &[40, 400, 2_000, 100_000]).map(Millis);
        spec.run_after = random.maybe(10, &[0, 10, 100, 3_000]).map(Millis);
        spec.retry = random.maybe(35, &lane_settings::RETRIES);
        spec.after = if random.percent(8) { Some(self.known_task(seen)) } else { None };
        spec.parent = self.parent(seen);
        spec.group = self.random.maybe(20, &[name("g"), name("h")]);
        spec.idempotency = self.key();
        if self.random.percent(3) {
            self.make_invalid(&mut spec);
        }
        Command::Submit { task, spec: Box::new(spec) }
    }

    /// Makes the task invalid.
    fn make_invalid(&mut self, spec: &mut TaskSpec) {
        match self.random.below(5) {
            0 => spec.priority = Some(10),
            1 => spec.timeout = Some(Millis(0)),
            2 => spec.deadline = Some(Millis(0)),
            3 => spec.run_after = Some(Millis(u64::MAX)),
            _ => spec.lanes = vec![LaneName::main(); 65],
        }
    }

    fn key(&mut self) -> Option<Idempotency> {
        let key = self.random.maybe(12, &["k1", "k2", "k3", "k4", ""])?;
        let until_end = key == "k4";
        Some(Idempotency { key: key.into(), fingerprint: self.random.below(100) / 80, until_end })
    }

    fn parent(&mut self, seen: &Checker) -> Option<Parent> {
        if !self.random.percent(30) || seen.running().is_empty() {
            return None;
        }
        let newest = seen.running().last().copied();
        let (task, _) = match newest.filter(|_| self.random.percent(60)) {
            Some(newest) => newest,
            None => self.attempt(seen),
        };
        Some(Parent { task, detached: self.random.percent(12) })
    }

    fn batch(&mut self, seen: &Checker) -> Command {
        let lanes =
            [ToolLane::Query, ToolLane::Query, ToolLane::Execute, ToolLane::Generate, ToolLane::Control];
        let calls = (0..self.random.below(6))
            .map(|_| ToolCall {
                task: self.new_task(seen),
                tool: name(self.random.pick(&KINDS)),
                lane: self.random.pick(&lanes),
                payload: None,
            })
            .collect();
        let parent = self.parent(seen);
        let group = self.random.maybe(50, &[name("g")]);
        let session = self.random.pick(&["s", "t", "u"]).into();
        let asker = self.random.maybe(50, &[lane("a"), lane("b"), lane("c"), lane("x")]);
        Command::SubmitBatch(Box::new(ToolBatch {
            session,
            calls,
            parent,
            group,
            asker,
            caller: None,
            trace: None,
        }))
    }

    fn finish(&mut self, seen: &Checker) -> Command {
        let (task, fence) = self.attempt(seen);
        let outcome = match self.random.below(10) {
            0..5 => Outcome::Success,
            5..8 => Outcome::Failure { error: "it broke".into(), retryable: true },
            8 => Outcome::Failure { error: "it is hopeless".into(), retryable: false },
            _ => Outcome::Stopped,
        };
        Command::Finish { task, fence, taken: vec![], outcome }
    }

    fn note(&mut self) -> Command {
        let keys = ["k", "l", "m"];
        let note = |random: &mut Random| {
            let text = random.maybe(60, &["1", "2"]);
            (Arc::from(random.pick(&keys)), text.map(Arc::from))
        };
        let expected = if self.random.percent(40) { vec![note(&mut self.random)] } else { vec![] };
        let changes = (0..self.random.below(3)).map(|_| note(&mut self.random)).collect();
        Command::Note(Box::new(NoteChange { expected, changes }))
    }

    fn heartbeat(&mut self, seen: &Checker) -> Command {
        let (task, fence) = self.attempt(seen);
        Command::Heartbeat { task, fence }
    }

    fn lapse(&mut self, seen: &Checker) -> Command {
        let (task, fence) = self.attempt(seen);
        Command::Lapse { task, fence }
    }

    fn claim(&mut self) -> Command {
        let random = &mut self.random;
        let pattern = |text: &str| Pattern::new(text).unwrap();
        let mut lanes = vec![pattern(random.pick(&["x", "*", "a*", "session:*", "agent:*"]))];
        if random.percent(2) {
            lanes.clear();
        }
        Command::Claim {
            worker: name("worker"),
            lanes,
            kinds: random.maybe(30, &KINDS).into_iter().map(name).collect(),
            max: if random.percent(2) { 0 } else { random.pick(&[1, 1, 2, 5]) },
            lease: random.maybe(20, &[30, 1_000]).map(Millis),
        }
    }

    fn cancel(&mut self, seen: &Checker) -> Command {
        let reason = self.random.pick(&[CancelReason::Caller, CancelReason::Interrupted]);
        Command::Cancel { task: self.known_task(seen), reason }
    }

    fn clear(&mut self) -> Command {
        let which = Selector {
            lane: if self.random.percent(85) { Some(self.lane()) } else { None },
            kind: self.random.maybe(50, &KINDS).map(name),
            group: self.random.maybe(30, &[name("g"), name("h")]),
            parent: None,
        };
        Command::CancelWaiting { which, reason: CancelReason::Cleared }
    }

    fn reprioritise(&mut self, seen: &Checker) -> Command {
        Command::Reprioritise { task: self.known_task(seen), priority: self.random.pick(&[0, 1, 3, 9, 10]) }
    }

    fn dead_letter(&mut self, seen: &Checker) -> TaskId {
        let dead_letters = seen.dead_letters();
        if dead_letters.is_empty() || self.random.percent(10) {
            return TaskId(1);
        }
        self.random.pick(&dead_letters)
    }

    fn redrive(&mut self, seen: &Checker) -> Command {
        let letter = self.dead_letter(seen);
        let task = self.new_task(seen);
        Command::Redrive { dead_letter: letter, task }
    }

    pub(crate) fn configure(&mut self) -> Command {
        let blocks = (0..1 + self.random.below(3)).map(|_| lane_settings::block(&mut self.random)).collect();
        Command::Configure(blocks)
    }
}
