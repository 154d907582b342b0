//! Everything there is: the store, the machines, and the book in which all that happens is written.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::FixedState;
use laneway_core::{State, TaskId};
use laneway_engine::Handle;
use laneway_store::{Append, Head, StoreError, StoredSnapshot};
use tokio::time::Instant;

use crate::chance::Chance;
use crate::check::{Checker, Holder};
use crate::host::Host;
use crate::kind::Kind;
use crate::ledger::Ledger;
use crate::plan::Plan;
use crate::shared::SharedLog;
use crate::wire::Wire;
use crate::{EPOCH_MS, LEASE_MS, StoreBug};

/// How many workers and clients there are.
pub(crate) const WORKERS: usize = 2;
pub(crate) const CLIENTS: usize = 3;

/// The world, shared by all that happens in it. There is one thread, so nobody ever waits for it.
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
    pub(crate) chance: Chance,
    pub(crate) checker: Checker,
    pub(crate) ledger: Ledger,
    /// Who appends under which number: which replica, in which of its lives.
    authors: BTreeMap<u64, (usize, u32)>,
    /// Until when something is wrong for everybody.
    pub(crate) trouble_until: u64,
    /// Until when calls are slow or lost.
    pub(crate) calls_until: u64,
    /// When the last fault is over.
    pub(crate) fault_end: u64,
    /// Until when somebody who shuts down may have left work for the others.
    pub(crate) leaving_until: u64,
    pub(crate) counts: BTreeMap<Kind, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) timeline: Option<Vec<String>>,
    pub(crate) digest: u64,
    pub(crate) bug: Option<StoreBug>,
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
}

impl Place {
    fn new() -> Place {
        let (host, ahead) = (Arc::default(), Arc::default());
        Place { host, life: 0, handle: None, ahead, trouble_until: 0 }
    }
}

impl Sim {
    pub(crate) fn new(plan: &Plan, has_timeline: bool, bug: Option<StoreBug>) -> Sim {
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
            chance: Chance::new(plan.seed, 2),
            checker: Checker::new(),
            ledger: Ledger::default(),
            authors: BTreeMap::new(),
            trouble_until: 0,
            calls_until: 0,
            fault_end: 0,
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
        let ahead = match self.has_clock {
            true => self.shared.ahead,
            false => self.replicas.iter().map(ahead).max().unwrap_or(0),
        };
        (EPOCH_MS + self.now()).saturating_add_signed(ahead)
    }

    /// Writes into the timeline, if somebody wants to read it.
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

    fn stir_bytes(&mut self, bytes: &[u8]) {
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

    pub(crate) fn append(
        &mut self,
        replica: usize,
        life: u32,
        mut append: Append,
    ) -> Result<Head, StoreError> {
        if self.bug == Some(StoreBug::VersionNotChecked) {
            append.expected = self.shared.head();
        }
        self.authors.insert((append.batch.0 >> 64) as u64, (replica, life));
        let (before, record) = (self.shared.head(), append.record.clone());
        let (answer, has_grown) = self.shared.append(append);
        if has_grown {
            self.stir_bytes(&record);
            self.check_after(before, replica);
            self.tell_all();
        }
        answer
    }

    fn check_after(&mut self, before: Head, replica: usize) {
        let batches = match self.shared.after(before) {
            Ok(batches) => batches,
            Err(error) => return self.wrong(format!("the log cannot be read: {error}")),
        };
        for (head, batch) in batches {
            self.note(|| {
                let events = batch.events.iter().map(crate::report::event);
                let events = events.collect::<Vec<_>>().join(", ");
                format!("replica {replica} appends {} at {}: {events}", head.version, batch.at.0 - EPOCH_MS)
            });
            self.checker.take(head, &batch);
            self.judge();
        }
    }

    /// Takes over what the checker found.
    pub(crate) fn judge(&mut self) {
        let is_leaving = self.now() < self.leaving_until;
        for wrong in std::mem::take(&mut self.checker.wrong) {
            // Whoever shuts down grants nothing more; the others do when they look.
            if !(is_leaving && wrong.ends_with("could run")) {
                self.wrong(wrong);
            }
        }
        for lapse in std::mem::take(&mut self.checker.lapses) {
            if self.is_sound(&lapse.holder) {
                let (task, fence, holder) = (lapse.task, lapse.fence, lapse.holder);
                self.wrong(format!("the lease of {task} #{fence} lapsed although {holder:?} was well"));
            }
        }
    }

    /// Whether nothing was wrong with somebody for longer than a lease and a second.
    fn is_sound(&self, holder: &Holder) -> bool {
        let aheads =
            || self.replicas.iter().map(|place| place.ahead.load(std::sync::atomic::Ordering::Relaxed));
        if !self.has_clock && aheads().min() != aheads().max() {
            // Without a clock that all go by, a lease is as long as the clocks of those who look at it say.
            return false;
        }
        let (place, until) = match holder {
            Holder::Replica(author) => match self.authors.get(author) {
                Some((replica, life)) if self.replicas[*replica].life == *life => {
                    (&self.replicas[*replica], self.trouble_until)
                }
                _ => return false,
            },
            Holder::Worker(name) => {
                let mut words = name.split('-').skip(1).map(str::parse::<u32>);
                let (Some(Ok(worker)), Some(Ok(life))) = (words.next(), words.next()) else { return false };
                // A worker speaks through any replica.
                let replicas = self.replicas.iter().map(|place| place.trouble_until).max().unwrap_or(0);
                match self.workers.get(worker as usize) {
                    Some(place) if place.life == life => {
                        (place, self.trouble_until.max(self.calls_until).max(replicas))
                    }
                    _ => return false,
                }
            }
        };
        !place.host.is_paused() && self.now() > place.trouble_until.max(until) + LEASE_MS + 1000
    }

    /// Who appends under this number, if it is alive.
    pub(crate) fn is_alive(&self, author: u64) -> bool {
        let known = self.authors.get(&author);
        known.is_some_and(|(replica, life)| self.replicas[*replica].life == *life)
    }

    /// A replica saves its state: it must be the one that the log leads to.
    pub(crate) fn save(&mut self, replica: usize, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let wire = &mut self.wires[replica];
        if std::mem::take(&mut wire.loses_snapshot) {
            self.count(Kind::SnapshotLost);
            return Ok(());
        }
        let head = snapshot.head;
        self.shared.save(snapshot.clone())?;
        let mut known = Checker::new();
        for (at, batch) in self.shared.all()?.into_iter().take_while(|(at, _)| at.version <= head.version) {
            known.take(at, &batch);
        }
        if let Some((at, saved)) = self.shared.newest_snapshot()?
            && at == head
            && let Some(difference) = difference(&saved, &known.state())
        {
            let version = head.version;
            self.wrong(format!(
                "the state of replica {replica} at {version} is not that of the log: {difference}"
            ));
        }
        Ok(())
    }

    /// The store forgets the end of its log.
    pub(crate) fn lose_tail(&mut self, batches: usize) -> usize {
        let lost = self.shared.lose_tail(batches);
        let mut checker = Checker::new();
        for (head, batch) in self.shared.all().unwrap_or_default() {
            checker.take(head, &batch);
        }
        let gone: BTreeSet<TaskId> = self.checker.missing_in(&checker);
        let messages = self.checker.messages.keys().filter(|id| !checker.messages.contains_key(id));
        let messages = messages.copied().collect();
        let head = checker.head.version;
        self.note(|| format!("the log is back at {head}; lost {gone:?}"));
        self.ledger.set_back(gone, messages);
        self.checker = checker;
        self.tell_all();
        lost
    }
}

/// Where two states differ, beside the time of the last look at them: who only looks, or is refused, appends nothing.
fn difference(saved: &State, known: &State) -> Option<String> {
    let words = |state: &State| format!("{state:?}").split_once(", ").map(|(_, rest)| rest.to_owned());
    let (saved, known) = (words(saved)?, words(known)?);
    let at = saved.bytes().zip(known.bytes()).position(|(one, other)| one != other);
    let at = at.or((saved.len() != known.len()).then(|| saved.len().min(known.len())))?;
    let part = |text: &str| text.chars().skip(at.saturating_sub(200)).take(260).collect::<String>();
    Some(format!("{} | and not | {}", part(&saved), part(&known)))
}
