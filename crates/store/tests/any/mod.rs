//! Events of every sort, made from a seed.

mod sessions;

use std::num::NonZeroU128;
use std::sync::Arc;

use laneway_core::{
    Ageing, AlertLevel, BlobId, Block, Boost, BoostStrategy, CancelReason, DeadLetterRemoval, End, Event,
    Fence, Handler, Idempotency, LaneName, LaneSettings, Millis, Name, Order, Owner, Parent, Pattern, Period,
    Priorities, RateLimit, ReplicaId, Retry, RetryStrategy, Source, StopReason, Switch, TaskId, TaskSpec,
    Timestamp,
};
use laneway_seeded::Random;

/// How many sorts of events there are.
pub(crate) const SORTS: u64 = 31;

/// A number for each sort of event. A new sort does not compile until it has one, and [`Dice::event`] makes it.
pub(crate) fn sort(event: &Event) -> u64 {
    match event {
        Event::Configured { .. } => 0,
        Event::Submitted { .. } => 1,
        Event::Joined { .. } => 2,
        Event::Left { .. } => 3,
        Event::Ready { .. } => 4,
        Event::Aged { .. } => 5,
        Event::Boosted { .. } => 6,
        Event::Reprioritised { .. } => 7,
        Event::Noticed { .. } => 8,
        Event::Reserved { .. } => 9,
        Event::Granted { .. } => 10,
        Event::Renewed { .. } => 11,
        Event::Stopping { .. } => 12,
        Event::Retrying { .. } => 13,
        Event::Redelivered { .. } => 14,
        Event::Ended { .. } => 15,
        Event::DeadLettered { .. } => 16,
        Event::DeadLetterRemoved { .. } => 17,
        Event::Paused { .. } => 18,
        Event::Resumed { .. } => 19,
        Event::Draining { .. } => 20,
        Event::Drained { .. } => 21,
        Event::Pressure { .. } => 22,
        Event::Idle { .. } => 23,
        Event::Alert { .. } => 24,
        Event::AlertOver { .. } => 25,
        Event::MessagesConfigured { .. } => 26,
        Event::Session(_) => 27,
        Event::FencesRaised { .. } => 28,
        Event::Unbound { .. } => 29,
        Event::Noted { .. } => 30,
    }
}

/// A source of values, all of which follow from the seed. With `full`, nothing optional is left out.
pub(crate) struct Dice {
    random: Random,
    full: bool,
}

impl Dice {
    pub(crate) fn new(seed: u64, full: bool) -> Dice {
        Dice { random: Random::new(seed), full }
    }

    fn number(&mut self) -> u64 {
        let z = self.random.number();
        // Small ones, large ones, and the ends.
        match z % 8 {
            0 => 0,
            1 => u64::MAX,
            2..=4 => z >> 56,
            _ => z.rotate_left(20),
        }
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[(self.number() % from.len() as u64) as usize].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        (self.full || self.number().is_multiple_of(2)).then(|| make(self))
    }

    fn switch<T>(&mut self, make: impl FnOnce(&mut Dice) -> T) -> Option<Switch<T>> {
        self.maybe(|dice| dice.maybe(make).map_or(Switch::Off, Switch::On))
    }

    fn small(&mut self) -> u32 {
        self.number() as u32
    }

    fn byte(&mut self) -> u8 {
        self.number() as u8
    }

    fn task(&mut self) -> TaskId {
        TaskId(u128::from(self.number()) << 64 | u128::from(self.number()))
    }

    fn blob(&mut self) -> BlobId {
        BlobId(NonZeroU128::new(self.task().0).unwrap_or(NonZeroU128::MIN))
    }

    fn at(&mut self) -> Timestamp {
        Timestamp(self.number())
    }

    fn length(&mut self) -> Millis {
        Millis(self.number())
    }

    fn text(&mut self) -> Arc<str> {
        let texts = ["", "a", "nil", "\u{0}\u{7f}", "ünïcode ☃ 🦀", "it failed: \"x\"\n  at line 3"];
        let long = "long ".repeat(60);
        self.pick(&texts.map(Arc::from).into_iter().chain([long.into()]).collect::<Vec<_>>())
    }

    fn lane(&mut self) -> LaneName {
        let names = ["main", "session:alice", "agent:coder", "é", "provider:a.b/c"];
        LaneName::new(self.pick(&names)).unwrap()
    }

    fn name(&mut self) -> Name {
        let names = ["chat", " padded ", "*", "☃"];
        Name::new(self.pick(&names)).unwrap()
    }

    fn replica(&mut self) -> ReplicaId {
        ReplicaId(self.number())
    }

    fn owner(&mut self) -> Owner {
        if self.byte().is_multiple_of(2) {
            Owner::Replica(self.replica())
        } else {
            Owner::Worker(self.name())
        }
    }

    fn source(&mut self) -> Source {
        self.pick(&[Source::User, Source::Schedule, Source::Agent, Source::Background])
    }

    fn handler(&mut self) -> Handler {
        self.pick(&[Handler::Internal, Handler::External, Handler::Hybrid])
    }

    fn retry(&mut self) -> Retry {
        Retry {
            strategy: self.pick(&[RetryStrategy::None, RetryStrategy::Fixed, RetryStrategy::Exponential]),
            max_retries: self.small(),
            initial_delay: self.length(),
            fixed_delay: self.length(),
            max_delay: self.length(),
            jitter: self.byte().is_multiple_of(2),
        }
    }

    fn settings(&mut self) -> LaneSettings {
        LaneSettings {
            max_concurrency: self.switch(Dice::small),
            max_queued: self.maybe(Dice::small),
            order: self.maybe(|dice| dice.pick(&[Order::Fair, Order::Fifo])),
            priority: self.switch(Dice::byte),
            priorities: self.maybe(|dice| Priorities {
                user: dice.byte(),
                schedule: dice.byte(),
                agent: dice.byte(),
                background: dice.byte(),
            }),
            weight: self.maybe(Dice::small),
            wait_timeout: self.switch(Dice::length),
            timeout: self.switch(Dice::length),
            lease: self.maybe(Dice::length),
            max_redelivery: self.maybe(Dice::small),
            retry: self.maybe(Dice::retry),
            rate_limit: self.switch(|dice| RateLimit {
                per: dice.pick(&[Period::Second, Period::Minute, Period::Hour]),
                max: dice.small(),
            }),
            ageing: self.switch(|dice| Ageing { after: dice.length(), max: dice.byte() }),
            boost: self.switch(|dice| Boost {
                strategy: dice.pick(&[BoostStrategy::Standard, BoostStrategy::Aggressive]),
                deadline: dice.maybe(Dice::length),
            }),
            pressure_threshold: self.maybe(Dice::small),
            alert_warning: self.maybe(Dice::small),
            alert_critical: self.maybe(Dice::small),
            dead_letters_max: self.maybe(Dice::small),
            notice_after: self.switch(Dice::length),
            handler: self.maybe(Dice::handler),
        }
    }

    fn block(&mut self) -> Block {
        let lanes = Pattern::new(self.pick(&["*", "session:*/query", "main"])).unwrap();
        Block { lanes, settings: self.maybe(Dice::settings) }
    }

    fn spec(&mut self) -> TaskSpec {
        TaskSpec {
            kind: self.name(),
            lanes: (0..self.number() % 5).map(|_| self.lane()).collect(),
            payload: self.maybe(Dice::blob),
            source: self.source(),
            priority: self.maybe(Dice::byte),
            fair_key: self.maybe(Dice::lane),
            wait_timeout: self.maybe(Dice::length),
            timeout: self.maybe(Dice::length),
            deadline: self.maybe(Dice::length),
            run_after: self.maybe(Dice::length),
            retry: self.maybe(Dice::retry),
            parent: self.maybe(|dice| Parent { task: dice.task(), detached: dice.byte().is_multiple_of(2) }),
            after: self.maybe(Dice::task),
            group: self.maybe(Dice::name),
            idempotency: self.maybe(|dice| Idempotency {
                key: dice.text(),
                fingerprint: dice.number(),
                until_end: dice.byte().is_multiple_of(2),
            }),
            caller_at: self.maybe(Dice::replica),
            owner: self.maybe(Dice::owner),
            lease: self.maybe(Dice::length),
            caller: self.maybe(Dice::name),
            trace: self.maybe(Dice::text),
            label: self.maybe(Dice::name),
        }
    }

    fn reason(&mut self) -> CancelReason {
        use CancelReason::{Caller, Cleared, Interrupted, Parent, Released, Steered};
        self.pick(&[Caller, Cleared, Released, Parent, Interrupted, Steered])
    }

    fn end(&mut self) -> End {
        match self.number() % 7 {
            0 => End::Completed,
            1 => End::Failed { error: self.text() },
            2 => End::TimedOut,
            3 => End::Cancelled { reason: self.reason() },
            4 => End::Expired,
            5 => End::WaitTimeout,
            _ => End::Lost,
        }
    }

    fn level(&mut self) -> AlertLevel {
        self.pick(&[AlertLevel::Warning, AlertLevel::Critical])
    }

    /// An event of this sort.
    pub(crate) fn event(&mut self, sort: u64) -> Event {
        let fence = Fence(self.number());
        match sort {
            0 => Event::Configured { blocks: (0..self.number() % 4).map(|_| self.block()).collect() },
            1 => Event::Submitted {
                task: self.task(),
                spec: Box::new(self.spec()),
                priority: self.byte(),
                handler: self.handler(),
                wait_until: self.maybe(Dice::at),
                deadline: self.maybe(Dice::at),
            },
            10 => Event::Granted {
                task: self.task(),
                attempt: self.small(),
                fence,
                lease_until: self.at(),
                lease: self.length(),
                timeout_at: self.maybe(Dice::at),
                owner: self.owner(),
                borrowed: (0..self.number() % 4).map(|_| self.byte()).collect(),
            },
            11 => Event::Renewed { task: self.task(), fence, lease_until: self.at() },
            12 => {
                let reason = match self.maybe(Dice::reason) {
                    Some(reason) => StopReason::Cancelled(reason),
                    None => StopReason::Timeout,
                };
                Event::Stopping { task: self.task(), fence, reason, until: self.at() }
            }
            13 => Event::Retrying { task: self.task(), fence, error: self.text(), at: self.at() },
            14 => Event::Redelivered { task: self.task(), fence },
            26 => Event::MessagesConfigured { settings: Box::new(self.message_settings()) },
            28 => Event::FencesRaised { to: fence },
            29 => Event::Unbound { replica: self.replica() },
            30 => Event::Noted { changes: vec![(self.text(), self.maybe(Dice::text)), (self.text(), None)] },
            27 => Event::Session(Box::new(self.session_event())),
            18.. => self.lane_event(sort),
            _ => self.task_event(sort),
        }
    }

    fn task_event(&mut self, sort: u64) -> Event {
        let task = self.task();
        match sort {
            2 => Event::Joined { task },
            3 => Event::Left { task },
            4 => Event::Ready { task },
            5 => Event::Aged { task, levels: self.byte() },
            6 => Event::Boosted { task, levels: self.byte() },
            7 => Event::Reprioritised { task, priority: self.byte() },
            8 => Event::Noticed { task, waited: self.length(), ahead: self.small() },
            9 => Event::Reserved { task },
            15 => Event::Ended { task, end: self.end() },
            16 => Event::DeadLettered { task, error: self.text(), attempts: self.small() },
            17 => {
                let redriven = DeadLetterRemoval::Redriven(self.task());
                let why = self.pick(&[DeadLetterRemoval::Overflow, redriven, DeadLetterRemoval::Discarded]);
                Event::DeadLetterRemoved { dead_letter: task, why }
            }
            other => panic!("no event of a task has number {other}"),
        }
    }

    fn lane_event(&mut self, sort: u64) -> Event {
        let lane = self.lane();
        match sort {
            18 => Event::Paused { lane },
            19 => Event::Resumed { lane },
            20 => Event::Draining { lane },
            21 => Event::Drained { lane },
            22 => Event::Pressure { lane, waiting: self.small() },
            23 => Event::Idle { lane },
            24 => Event::Alert { lane, level: self.level(), waiting: self.small() },
            25 => Event::AlertOver { lane, level: self.level() },
            other => panic!("no event of a lane has number {other}"),
        }
    }
}
