//! Turns: fair keys of equal priority share the slots evenly, or by weight.
//!
//! Start-time fair queueing. Each key has a tag, the virtual time at which its next task is due. A grant moves the tag
//! on by the key's cost (less for more weight). The clock of virtual time is the latest granted tag. Rest earns no
//! credit: a key that comes back, or was held up by a lane of its own, starts at the clock. A key without waiting
//! tasks is remembered only while its tag lies ahead.

use std::collections::BTreeSet;

use crate::api::name::LaneName;
use crate::state::hash_index::HashIndex;
use crate::state::table::{Idx, Table};

/// What one grant costs a key of weight one.
const COST: u64 = 1 << 20;
/// How many keys without waiting tasks are remembered; beyond that the clock moves on past the earliest.
const RESTING_MAX: usize = 4096;

pub(crate) type FairKeyIdx = Idx<FairKey>;

pub(crate) struct FairKey {
    pub(crate) name: LaneName,
    pub(crate) tag: u64,
    pub(super) weight: u32,
    /// Tasks in the line carry this key.
    pub(crate) is_waiting: bool,
}

impl FairKey {
    /// What one grant costs this key.
    pub(crate) fn cost(&self) -> u64 {
        COST / u64::from(self.weight)
    }
}

pub(crate) struct FairShare {
    pub(crate) keys: Table<FairKey>,
    index: HashIndex<FairKey>,
    pub(crate) clock: u64,
    /// Keys that nothing waits under, by tag.
    pub(crate) resting: BTreeSet<(u64, FairKeyIdx)>,
    /// The key of the last task, kept while the line is empty. Its tag is the clock, as if it were new.
    idle: Option<FairKeyIdx>,
}

impl FairShare {
    pub(crate) fn new(seed: u64) -> FairShare {
        FairShare {
            keys: Table::default(),
            index: HashIndex::new(seed),
            clock: 0,
            resting: BTreeSet::new(),
            idle: None,
        }
    }

    pub(crate) fn find(&self, name: &LaneName) -> Option<FairKeyIdx> {
        let hash = self.index.hash(name);
        self.index.find(hash, |key| self.keys[key].name == *name)
    }

    /// A task waits under the key called `name`, whose weight is asked for when it comes back from a rest.
    /// Returns the key.
    pub(crate) fn join(&mut self, name: &LaneName, weight: impl FnOnce() -> u32) -> FairKeyIdx {
        self.drop_idle();
        let key = match self.find(name) {
            Some(key) => key,
            None => self.add(name.clone(), 1, self.clock),
        };
        let fair = &mut self.keys[key];
        if !fair.is_waiting {
            fair.is_waiting = true;
            fair.weight = weight();
            if self.resting.remove(&(fair.tag, key)) {
                fair.tag = fair.tag.max(self.clock);
            }
        }
        key
    }

    /// Remembers a key with its tag, as it was when the state was saved; [`resume`](FairShare::resume) follows
    /// when the tasks have joined again.
    pub(crate) fn restore(&mut self, name: LaneName, tag: u64) {
        self.add(name, 1, tag);
    }

    /// Forgets which keys have waiting tasks, but keeps the tags: all tasks are about to join again.
    pub(crate) fn suspend(&mut self) {
        self.drop_idle();
        self.resting.clear();
        for (_, fair) in self.keys.iter_mut() {
            fair.is_waiting = false;
        }
    }

    /// All tasks have joined again.
    pub(crate) fn resume(&mut self) {
        let resting = self.keys.iter().filter(|(_, fair)| !fair.is_waiting);
        self.resting = resting.map(|(key, fair)| (fair.tag, key)).collect();
    }

    fn add(&mut self, name: LaneName, weight: u32, tag: u64) -> FairKeyIdx {
        let hash = self.index.hash(&name);
        let key = self.keys.insert(FairKey { name, tag, weight, is_waiting: false });
        self.index.insert(hash, key);
        key
    }

    /// The last task that waited under `key` is gone.
    pub(crate) fn rest(&mut self, key: FairKeyIdx) {
        let fair = &mut self.keys[key];
        fair.is_waiting = false;
        self.resting.insert((fair.tag, key));
    }

    /// The line is empty, and the last task had `key`: keeps the key for the next task, and forgets its tag.
    pub(crate) fn keep_idle(&mut self, key: FairKeyIdx) {
        let fair = &mut self.keys[key];
        (fair.is_waiting, fair.tag) = (false, self.clock);
        self.idle = Some(key);
    }

    /// Whether this is the key that was kept while the line was empty.
    pub(crate) fn is_idle(&self, name: &LaneName) -> bool {
        self.idle.is_some_and(|key| self.keys[key].name == *name)
    }

    /// A task waits again under the key that was kept while the line was empty. Returns the key and its tag.
    pub(crate) fn wake(&mut self) -> Option<(FairKeyIdx, u64)> {
        let key = self.idle.take()?;
        let fair = &mut self.keys[key];
        fair.is_waiting = true;
        Some((key, fair.tag))
    }

    /// Forgets the key that was kept while the line was empty.
    pub(crate) fn drop_idle(&mut self) {
        if let Some(key) = self.idle.take() {
            self.forget(key);
        }
    }

    /// The keys that must be saved.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = &FairKey> {
        self.keys.iter().filter(|(key, _)| Some(*key) != self.idle).map(|(_, fair)| fair)
    }

    /// Forgets keys that nothing speaks for remembering. `is_line_empty`: no task waits, so turns mean nothing.
    pub(crate) fn sweep(&mut self, is_line_empty: bool) {
        if self.resting.len() > RESTING_MAX
            && let Some((tag, _)) = self.resting.first()
        {
            self.clock = self.clock.max(*tag);
        }
        while let Some((tag, key)) = self.resting.first().copied()
            && (tag <= self.clock || is_line_empty)
        {
            self.resting.pop_first();
            self.forget(key);
        }
    }

    /// Gives back what an empty table has grown to.
    pub(crate) fn shrink(&mut self) {
        if self.keys.is_empty() {
            self.keys = Table::default();
            self.index.shrink();
        }
    }

    fn forget(&mut self, key: FairKeyIdx) {
        let fair = self.keys.remove(key);
        self.index.remove(self.index.hash(&fair.name), key);
    }

    /// A task under `key` is granted. Returns the key's new tag.
    pub(crate) fn charge(&mut self, key: FairKeyIdx) -> u64 {
        let fair = &mut self.keys[key];
        fair.tag = fair.tag.max(self.clock);
        self.clock = fair.tag;
        fair.tag += fair.cost();
        fair.tag
    }

    /// Gives the key called `name` back what one grant cost, so that a task which must be run again keeps its
    /// place. Returns the key and its new tag, if it is still known.
    pub(crate) fn refund(&mut self, name: &LaneName, weight: u32) -> Option<(FairKeyIdx, u64)> {
        let key = self.find(name).filter(|key| Some(*key) != self.idle)?;
        let fair = &mut self.keys[key];
        let tag = fair.tag.saturating_sub(COST / u64::from(weight));
        if !fair.is_waiting {
            self.resting.remove(&(fair.tag, key));
            self.resting.insert((tag, key));
        }
        fair.tag = tag;
        Some((key, tag))
    }

    /// For the checks: the keys that are remembered although nothing speaks for it.
    pub(crate) fn disagreement(&self) -> Option<String> {
        let resting = self.remembered().filter(|fair| !fair.is_waiting).count();
        if resting != self.resting.len() || self.index.len() != self.keys.len() {
            return Some(format!("{} fair keys rest, {resting} do", self.resting.len()));
        }
        (resting > RESTING_MAX).then(|| format!("{resting} fair keys are remembered"))
    }
}
