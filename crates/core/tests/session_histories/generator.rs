//! Generates random commands.

use laneway_core::{
    Agent, Block, CancelReason, Command, DropRule, Fence, Incoming, LaneName, LaneSettings, MessageId,
    MessagePolicy, MessageSettings, Millis, Mode, Name, Otherwise, Outcome, Pattern, QueueOverrides,
    Scheduler, SessionCommand, Source, Steer, TaskId, TaskSpec, Timestamp,
};

use crate::ledger::{Ledger, MessageState};
use laneway_seeded::Random;

pub(crate) const SESSIONS: [&str; 3] = ["s", "t/1", "u"];
const MODES: [Mode; 8] = [
    Mode::Collect,
    Mode::Followup,
    Mode::Steer,
    Mode::Steer,
    Mode::SteerBacklog,
    Mode::Interrupt,
    Mode::Reject,
    Mode::Latest,
];
const TEXTS: [&str; 14] = [
    "one",
    "two words",
    "three\nlines\n of it",
    "/queue",
    "/queue steer cap:2",
    "do /queue latest this",
    "/queue reset",
    "/queue foo",
    "/queue collect debounce:2s drop:new",
    "all /queue collect max_wait:400ms of it",
    "/queue cap:99",
    "/stop",
    "/new",
    "/new start here",
];

pub(crate) enum Action {
    Command(Command),
    Restart,
}

/// Lanes with enough room, and an agent whose lane retries turns.
pub(crate) fn lanes() -> Command {
    let block = |lane: &str, words: &[(&str, &str)]| {
        let mut settings = LaneSettings::default();
        words.iter().for_each(|(key, value)| settings.set(key, value).unwrap());
        Block { lanes: Pattern::new(lane).unwrap(), settings: Some(settings) }
    };
    let retry = [("retry", "fixed"), ("retry.fixed_delay", "20"), ("retry.max_retries", "2")];
    Command::Configure(vec![
        block("agent:bot", &[("max_concurrency", "2"), ("max_queued", "6")]),
        block("agent:cat", &retry),
    ])
}

pub(crate) struct Generator {
    random: Random,
    last_id: u128,
    /// Most turns fail.
    mostly_fails: bool,
    focus: Focus,
}

/// What senders mostly do in one history, so that each thing happens often in some histories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Focus {
    Anything,
    /// They steer running turns.
    Steering,
    /// They send many messages to the same place.
    Collecting,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        let focus = [Focus::Anything, Focus::Steering, Focus::Collecting][(seed % 3) as usize];
        Generator { random: Random::new(seed), last_id: 0, mostly_fails: seed.is_multiple_of(4), focus }
    }

    fn id(&mut self) -> u128 {
        self.last_id += 1;
        self.last_id
    }

    /// The time of the next command: now, soon, when something is due, or much later.
    pub(crate) fn later(&mut self, now: Timestamp, due: Option<Timestamp>) -> Timestamp {
        match self.random.below(30) {
            0..20 if self.mostly_fails => due.unwrap_or(now).max(now),
            0..14 => now,
            14..21 => Timestamp(now.0 + self.random.below(200)),
            21..25 => Timestamp(now.0 + self.random.below(1500)),
            25..29 => due.unwrap_or(now).max(now),
            _ => Timestamp(now.0 + self.random.below(20_000)),
        }
    }

    pub(crate) fn next(&mut self, ledger: &Ledger, live: &Scheduler) -> Action {
        if self.focus == Focus::Steering && self.random.percent(20) {
            return Action::Command(Command::Session(Box::new(self.steering(live))));
        }
        let command = match self.random.below(100) {
            0..42 => SessionCommand::Send(Box::new(self.message(live))),
            42..66 => return Action::Command(self.report(live)),
            66..69 => return Action::Restart,
            69..72 => return Action::Command(self.submitted_turn()),
            72..74 => return Action::Command(self.operate(live)),
            74..86 => self.steering(live),
            86..92 => self.edit(ledger),
            92..95 => {
                let session = self.random.pick(&SESSIONS).into();
                match self.random.below(6) {
                    0..4 => SessionCommand::Interrupt { session },
                    4 => SessionCommand::Clear { session },
                    _ => SessionCommand::Stop { session },
                }
            }
            95..98 => {
                let session = self.random.pick(&SESSIONS).into();
                SessionCommand::Configure { session, queue: self.queue(40) }
            }
            _ => SessionCommand::ConfigureMessages(Box::new(MessageSettings {
                global: self.queue(60),
                by_channel: [("discord".into(), self.queue(30))].into(),
                redeliver: self.random.percent(80),
                attempts: self.random.pick(&[1, 2, 7, 9]),
                policy: MessagePolicy {
                    cap_max: self.random.pick(&[4, 20, 100]),
                    wait_max: self.random.pick(&[Millis(10_000), Millis(60_000)]),
                },
            })),
        };
        Action::Command(Command::Session(Box::new(command)))
    }

    fn queue(&mut self, percent: u64) -> QueueOverrides {
        QueueOverrides {
            mode: self.random.maybe(percent, &MODES),
            debounce: self.random.maybe(percent, &[Millis(0), Millis(50), Millis(300), Millis(3000)]),
            max_wait: self.random.maybe(percent, &[Millis(100), Millis(1000), Millis(5000), Millis(10_000)]),
            cap: self.random.maybe(percent, &[1, 2, 4]),
            drop: self.random.maybe(percent, &[DropRule::Old, DropRule::New, DropRule::Summarize]),
        }
    }

    fn message(&mut self, live: &Scheduler) -> Incoming {
        let id = MessageId(self.id());
        let session = self.random.pick(&SESSIONS);
        let others = if self.focus == Focus::Anything { 25 } else { 5 };
        let agent = Agent::new(Name::new(if self.random.percent(others) { "cat" } else { "bot" }).unwrap());
        let text = match self.random.below(100) {
            0..6 if self.focus == Focus::Steering => "/stop",
            0..80 => self.random.pick(&TEXTS[..3]),
            _ => self.random.pick(&TEXTS),
        };
        let mut message = Incoming::new(id, session, agent, text);
        message.place.channel = self.random.maybe(others + 10, &["discord".into(), "slack".into()]);
        message.place.thread = self.random.maybe(others / 3, &["7".into()]);
        let admin = vec![Name::new("admin").unwrap()];
        message.permissions = self.random.maybe(others, &[admin]).unwrap_or_default();
        message.asker =
            self.random.maybe(20, &[LaneName::new("by:ann").unwrap(), LaneName::new("by:bob").unwrap()]);
        message.sender_name = self.random.maybe(20, &["Ann".into()]);
        message.message_id = self.random.maybe(30, &["1".into(), "2".into(), "3".into(), "4".into()]);
        message.queue = self.queue(15);
        message.queue.mode = match self.focus {
            Focus::Steering => {
                self.random.maybe(60, &[Mode::Steer, Mode::SteerBacklog]).or(message.queue.mode)
            }
            Focus::Collecting => self.random.maybe(70, &[Mode::Collect]).or(message.queue.mode),
            Focus::Anything => message.queue.mode,
        };
        message.heartbeat = self.random.percent(3);
        message.may_configure = self.random.percent(60);
        if self.random.percent(5) {
            message.source = Source::Agent;
        }
        message.priority = self.random.maybe(4, &[7]);
        let turn = live.session(session).and_then(|view| view.turns.first().map(|turn| turn.task));
        if self.random.percent(8) {
            let turn = turn.filter(|_| self.random.percent(70)).unwrap_or(TaskId(1));
            let otherwise = self.random.pick(&[Otherwise::Followup, Otherwise::Reject, Otherwise::Drop]);
            message.steer = Some(Steer { turn, otherwise });
        }
        message
    }

    fn running(&mut self, live: &Scheduler) -> Option<(TaskId, Fence)> {
        let running: Vec<(TaskId, Fence)> =
            live.tasks().filter_map(|task| task.running.map(|running| (task.id, running.fence))).collect();
        if running.is_empty() { None } else { Some(self.random.pick(&running)) }
    }

    /// Reports the end of a turn, or its heartbeat.
    fn report(&mut self, live: &Scheduler) -> Command {
        let Some((task, fence)) = self.running(live) else { return Command::Tick };
        let outcome = match self.random.below(10) {
            0..5 if !self.mostly_fails => Outcome::Success,
            0..5 => Outcome::Failure { error: "bad luck".into(), retryable: true },
            5..8 => Outcome::Failure { error: "it broke".into(), retryable: self.random.percent(50) },
            8 => return Command::Lapse { task, fence },
            _ => return Command::Heartbeat { task, fence },
        };
        Command::Finish { task, fence, taken: vec![], outcome }
    }

    /// A submitted turn, without a message.
    fn submitted_turn(&mut self) -> Command {
        let session = LaneName::session(self.random.pick(&SESSIONS)).unwrap();
        let lanes = vec![LaneName::new("agent:bot").unwrap(), session];
        let spec = TaskSpec::new(Name::new("direct").unwrap(), lanes);
        Command::Submit { task: TaskId(self.id() << 64), spec: Box::new(spec) }
    }

    fn operate(&mut self, live: &Scheduler) -> Command {
        let lane = LaneName::new(self.random.pick(&["agent:bot", "session:s", "agent:cat"])).unwrap();
        let tasks: Vec<TaskId> = live.tasks().map(|task| task.id).collect();
        match self.random.below(5) {
            0 => Command::Pause { lane },
            1 | 2 => Command::Resume { lane: LaneName::new("agent:bot").unwrap() },
            3 if !tasks.is_empty() => {
                Command::Cancel { task: self.random.pick(&tasks), reason: CancelReason::Caller }
            }
            _ => Command::ForceRelease { lane },
        }
    }

    fn steering(&mut self, live: &Scheduler) -> SessionCommand {
        let turns: Vec<TaskId> = live
            .sessions()
            .iter()
            .flat_map(|session| &session.turns)
            .filter(|turn| !turn.pending.is_empty() || !turn.steered.is_empty())
            .map(|turn| turn.task)
            .collect();
        if !turns.is_empty() && self.random.percent(50) {
            let turn = self.random.pick(&turns);
            let running = live.task(turn).and_then(|task| task.running);
            let fence = running.map_or(Fence(1), |running| running.fence);
            let mut only = live.offered_steering(turn, fence);
            only.truncate(self.random.below(3) as usize);
            let only: Vec<MessageId> = only.iter().map(|message| message.id).collect();
            let only = Some(only).filter(|_| self.random.percent(60));
            return SessionCommand::TakeSteering { turn, fence, only };
        }
        let (turn, fence) = self.running(live).unwrap_or((TaskId(1), Fence(1)));
        match self.random.below(10) {
            0..8 => SessionCommand::Steering { turn, fence, open: true },
            8 => SessionCommand::Steering { turn, fence, open: false },
            _ => SessionCommand::TakeSteering { turn, fence, only: None },
        }
    }

    /// Edits a message, whatever its state.
    fn edit(&mut self, ledger: &Ledger) -> SessionCommand {
        if !ledger.parked.is_empty() && self.random.percent(40) {
            let message = self.random.pick(&ledger.parked);
            return if self.random.percent(70) {
                SessionCommand::Resend { message, again: MessageId(self.id()) }
            } else {
                SessionCommand::Withdraw { message }
            };
        }
        let of = |matches: &dyn Fn(MessageState) -> bool| -> Vec<MessageId> {
            let matching = ledger.messages.iter().filter(|(_, known)| matches(known.state));
            matching.map(|(id, _)| *id).collect()
        };
        let waiting = of(&|state| state == MessageState::Waiting);
        let mut any = match self.random.below(10) {
            0..5 => waiting.clone(),
            5..9 => of(&|state| state != MessageState::Waiting && state != MessageState::Ended),
            _ => of(&|_| true),
        };
        any.push(MessageId(u128::from(self.random.below(self.last_id as u64 + 2))));
        let message = self.random.pick(&any);
        match self.random.below(8) {
            0..3 => SessionCommand::Withdraw { message },
            3 => SessionCommand::SendNow { message },
            4 => SessionCommand::Move { message, before: None },
            6.. => {
                let is_open = |session: &str| {
                    ledger.turns.values().any(|turn| turn.steering.is_some() && turn.session == session)
                };
                let mut steering = ledger
                    .messages
                    .iter()
                    .filter(|(_, known)| known.state == MessageState::Waiting && is_open(&known.session));
                SessionCommand::Promote { message: steering.next().map_or(message, |(id, _)| *id) }
            }
            _ => {
                let before = if waiting.is_empty() { any } else { waiting };
                SessionCommand::Move { message, before: Some(self.random.pick(&before)) }
            }
        }
    }
}
