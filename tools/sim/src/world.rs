//! Everything there is: the store, the machines, and the book in which all that happens is written.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::FixedState;
use laneway_engine::Handle;
use tokio::time::Instant;

use crate::checks::ledger::Ledger;
use crate::checks::log_checker::Checker;
use crate::kind::Kind;
use crate::machines::machine::Host;
use crate::network::shared_log::SharedLog;
use crate::network::wire::Wire;
use crate::plan::Plan;
use crate::{Bug, EPOCH_MS};
use laneway_seeded::Random;

/// How many workers and clients there are.
pub(crate) const WORKERS: usize = 2;
pub(crate) const CLIENTS: usize = 3;

/// The world, shared by all that happens in it. There is one thread, so the lock is always free.
#[derive(Clone)]
pub(crate) struct Sim(Arc<Mutex<World>>);

pub(crate) struct World {
    start: Instant,
    pub(crate) has_clock: bool,
    pub(crate) shared: SharedLog,
    pub(crate) wires: Vec<Wire>,
    pub(crate) replicas: Vec<Place>,
    pub(crate) workers: Vec<Place>,
    pub(crate) clients: Vec<Place>,
    /// What strikes the next calls of anybody.
    pub(crate) calls: std::collections::VecDeque<(Kind, u64)>,
    /// What workers do wrong next.
    pub(crate) misdeeds: std::collections::VecDeque<Kind>,
    pub(crate) random: Random,
    pub(crate) checker: Checker,
    pub(crate) ledger: Ledger,
    /// Who appends under which number: which replica, in which of its lives.
    pub(crate) authors: BTreeMap<u64, (usize, u32)>,
    /// Until when something is wrong for everybody.
    pub(crate) trouble_until: u64,
    /// Until when calls are slow or lost.
    pub(crate) calls_until: u64,
    /// When the last fault is over.
    pub(crate) fault_end: u64,
    /// When those died who appended under these numbers.
    pub(crate) deaths: BTreeMap<u64, u64>,
    /// For how long something of them was left: where all others were well, and where not.
    pub(crate) left_ms: (u64, u64),
    /// How often the append turn was passed to a replica, and how often to one that had died.
    pub(crate) append_turns: (u64, u64),
    /// Until when a replica that shuts down may have left work for the others.
    pub(crate) leaving_until: u64,
    pub(crate) counts: BTreeMap<Kind, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) timeline: Option<Vec<String>>,
    pub(crate) digest: u64,
    pub(crate) bug: Option<Bug>,
    pub(crate) is_healed: bool,
}

/// Where a replica, a worker or a client is.
pub(crate) struct Place {
    pub(crate) host: Arc<Host>,
    /// Which of its lives this is.
    pub(crate) life: u32,
    /// The replica's engine, when it is there.
    pub(crate) handle: Option<Handle>,
    /// How far its clock is ahead of the true time, in milliseconds.
    pub(crate) ahead: Arc<AtomicI64>,
    /// Until when something is wrong with it.
    pub(crate) trouble_until: u64,
    /// A client dies so soon after it asks the next time, in milliseconds.
    pub(crate) dies_in: Option<u64>,
}

impl Place {
    fn new() -> Place {
        let (host, ahead) = (Arc::default(), Arc::default());
        Place { host, life: 0, handle: None, ahead, trouble_until: 0, dies_in: None }
    }

    /// Whether it has been started and has not died since.
    pub(crate) fn is_running(&self) -> bool {
        self.life > 0 && !self.host.is_dead()
    }
}

impl Sim {
    pub(crate) fn new(plan: &Plan, has_timeline: bool, bug: Option<Bug>) -> Sim {
        let places = |count: usize| (0..count).map(|_| Place::new()).collect::<Vec<Place>>();
        Sim(Arc::new(Mutex::new(World {
            start: Instant::now(),
            has_clock: plan.has_clock,
            shared: SharedLog::new(),
            wires: (0..plan.replicas).map(|replica| Wire::new(plan.seed, replica)).collect(),
            replicas: places(plan.replicas),
            workers: places(WORKERS),
            clients: places(CLIENTS),
            calls: Default::default(),
            misdeeds: Default::default(),
            random: Random::stream(plan.seed, 2),
            checker: Checker::new(),
            ledger: Ledger::default(),
            authors: BTreeMap::new(),
            trouble_until: 0,
            calls_until: 0,
            fault_end: 0,
            deaths: BTreeMap::new(),
            left_ms: (0, 0),
            append_turns: (0, 0),
            leaving_until: 0,
            counts: BTreeMap::new(),
            violations: Vec::new(),
            timeline: has_timeline.then(Vec::new),
            digest: 0,
            bug,
            is_healed: false,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// The true time, in milliseconds from the start.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// The time by the clock that the log goes by, or the most advanced of the replicas'.
    pub(crate) fn log_time(&self) -> u64 {
        let ahead = |place: &Place| place.ahead.load(std::sync::atomic::Ordering::Relaxed);
        let ahead = if self.has_clock {
            self.shared.ahead
        } else {
            self.replicas.iter().map(ahead).max().unwrap_or(0)
        };
        (EPOCH_MS + self.now()).saturating_add_signed(ahead)
    }

    /// Writes into the timeline, if the caller wants one.
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(timeline) = &mut self.timeline {
            timeline.push(format!("{now:>6}  {}", text()));
        }
    }

    pub(crate) fn count(&mut self, kind: Kind) {
        *self.counts.entry(kind).or_default() += 1;
        self.stir(kind as u64);
    }

    /// Makes something part of what two histories must have in common.
    pub(crate) fn stir(&mut self, what: u64) {
        let now = self.now();
        self.digest = FixedState::with_seed(self.digest).hash_one((now, what));
    }

    pub(crate) fn stir_bytes(&mut self, bytes: &[u8]) {
        let mut hasher = FixedState::with_seed(self.digest).build_hasher();
        hasher.write(bytes);
        self.digest = hasher.finish();
        self.stir(0);
    }

    pub(crate) fn wrong(&mut self, text: String) {
        self.note(|| format!("VIOLATION {text}"));
        let now = self.now();
        self.violations.push(format!("at {now} ms: {text}"));
    }

    /// Something is wrong with a replica until then.
    pub(crate) fn trouble(&mut self, replica: usize, until: u64) {
        let place = &mut self.replicas[replica];
        place.trouble_until = place.trouble_until.max(until);
        self.fault_end = self.fault_end.max(until);
    }

    /// Something is wrong for everybody until then.
    pub(crate) fn trouble_for_all(&mut self, until: u64) {
        self.trouble_until = self.trouble_until.max(until);
        self.fault_end = self.fault_end.max(until);
    }

    /// Whether a replica can reach the store.
    pub(crate) fn reaches(&self, replica: usize) -> bool {
        self.now() >= self.shared.away_until.max(self.wires[replica].cut_until)
    }

    /// Tells all who follow the log to look.
    pub(crate) fn tell_all(&self) {
        self.wires.iter().for_each(|wire| wire.told.notify_waiters());
    }
}
