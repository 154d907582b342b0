//! One of several engines that share a log.
//!
//! ```text
//!   replica A ──┐  append at version n   ┌──────────────┐
//!   replica B ──┼──────────────────────▶ │ one log in   │  exactly one wins; the others read what they missed,
//!   replica C ──┘ ◀───────────────────── │ Redis or     │  decide again and try again
//!                  everybody reads all   │ Postgres     │
//!                                        └──────────────┘
//! ```
//!
//! Each keeps the whole state by reading what the others append. A decision counts when its batch is in the log, at the
//! version that it was decided on: so a limit holds over all replicas, whoever decides.
//!
//! **Who runs what.** A slot or closure runs where it was asked for, whoever granted it. A task of a named handler runs
//! where it was granted: by the replica whose batch says so. The id of a batch begins with the number of the replica that
//! made it, and the kind of a slot's task ends with it, so everybody can tell from the log alone.
//!
//! **Who is dead.** A running attempt has its lease, which only its replica renews. A slot that is waited for has no lease:
//! it goes when its replica has appended nothing for the length of a lease. One that waits for slots and has nothing to
//! append appends an empty batch from time to time, and so does one that another has granted a slot to. So a slot that was
//! granted to a dead replica goes with those that wait for it, and not a lease later.

pub(crate) mod append_counts;
pub(crate) mod append_turn;
pub(crate) mod apply_remote;
pub(crate) mod broadcast;
pub(crate) mod follower;
pub(crate) mod log_loss;
pub(crate) mod rollback;
pub(crate) mod store_clock;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use laneway_core::{
    CancelReason, Command, Event, Fence, Millis, Name, Reply, Selector, TaskId, TaskView, Timestamp,
};
use laneway_store::{BatchId, StoreError};
use tokio::time::Instant;

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::driver::ids::Ids;
use crate::error::Error;
use crate::handle::task::SLOT_KIND;
use crate::replica::append_turn::Place;
use crate::replica::follower::Follower;
use crate::replica::log_loss::Recent;
use crate::replica::rollback::Rewind;

/// What everybody would do at a certain time, each does up to so much later.
const TARDINESS_MAX_MS: u64 = 25;

/// The number of a replica, chosen at random at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReplicaId(pub(crate) u64);

/// What an engine knows as one of several.
pub(crate) struct Replica {
    pub(crate) id: ReplicaId,
    pub(crate) rewind: Rewind,
    pub(crate) follower: Follower,
    pub(crate) recent: Recent,
    /// For how long one may append nothing and still count as alive.
    lease: Millis,
    /// When the log was last seen to grow.
    pub(crate) grown: Instant,
    /// Where we stand with those who append too.
    pub(crate) place: Place,
    /// When we appended last.
    shown: Timestamp,
    /// Another has granted us a slot, and nobody can know that we heard of it.
    owes_sign: bool,
    /// How many batches of others have been read.
    heard: u64,
    /// The others that have slots or callers, waiting or running: how many, and when they appended last.
    others: BTreeMap<ReplicaId, Other>,
    /// How many tasks there are whose callers are connected here.
    bound: usize,
}

#[derive(Clone, Default)]
struct Other {
    slots: usize,
    /// Tasks whose callers are connected to it.
    bound: usize,
    /// The slots that others have granted it since it appended last.
    unanswered: Vec<(TaskId, Fence)>,
    /// It was silent for too long, and has been since.
    is_dead: bool,
    /// `None`: not since we began to look.
    seen: Option<Timestamp>,
}

impl ReplicaId {
    /// The replica that made a batch.
    pub(crate) fn of_batch(batch: BatchId) -> ReplicaId {
        ReplicaId(batch.author().0)
    }

    /// A batch of this replica, told apart from its others by chance.
    pub(crate) fn batch(self, chance: u64) -> BatchId {
        BatchId(u128::from(self.0) << 64 | u128::from(NonZeroU64::new(chance).map_or(1, NonZeroU64::get)))
    }

    /// The kind of the tasks that hold slots of this replica.
    pub(crate) fn slot_kind(self) -> String {
        format!("{SLOT_KIND}@{:016x}", self.0)
    }

    /// The replica whose slots have this kind.
    pub(crate) fn of_kind(kind: &Name) -> Option<ReplicaId> {
        let number = kind.as_str().strip_prefix(SLOT_KIND)?.strip_prefix('@')?;
        u64::from_str_radix(number, 16).ok().map(ReplicaId)
    }
}

impl Engine {
    /// Whether something must be appended, so that nobody takes us for dead.
    pub(crate) fn must_show(&self, now: Timestamp) -> bool {
        self.owes_sign() && self.replica.as_ref().is_some_and(|replica| replica.must_show_at() <= now)
    }

    /// Whether others go by our signs of life: we wait for slots, or were granted one that has not been renewed yet.
    fn owes_sign(&self) -> bool {
        let owes = |replica: &Replica| replica.owes_sign || replica.bound > 0;
        !self.slots.is_empty() || self.replica.as_deref().is_some_and(owes)
    }

    /// When we must show that we live, or somebody else has not for too long.
    pub(crate) fn replica_due_at(&self) -> Option<Timestamp> {
        let replica = self.replica.as_ref()?;
        let show = self.owes_sign().then(|| replica.must_show_at());
        [show, replica.next_death()].into_iter().flatten().min()
    }

    /// How much later than the others we do what everybody would do at a certain time, so that they seldom race.
    pub(crate) fn tardiness(&self) -> Millis {
        self.replica.as_ref().map_or(Millis(0), |replica| Millis(replica.id.0 % TARDINESS_MAX_MS))
    }

    /// Whether a turn only refuses, which a state that is a little old may be wrong about.
    pub(crate) fn refuses(&self, turn: &Turn) -> bool {
        let refused = |(reply, _): &(Result<Reply, Error>, _)| matches!(reply, Err(Error::Rejected(_)));
        self.replica.is_some() && turn.events.is_empty() && turn.replies.iter().any(refused)
    }

    /// Another was faster: takes up what it has decided.
    pub(crate) async fn give_way(&mut self, conflict: &StoreError) -> Result<(), StoreError> {
        match (&self.replica, conflict) {
            (Some(_), StoreError::Conflict { current, .. }) if current.version > self.head.version => {
                self.go_back(Some(current.version)).await
            }
            // The log went back and has grown as far as it was: there is nothing behind our end that would tell.
            (Some(_), StoreError::Conflict { current, .. })
                if current.version == self.head.version && current.batch != self.head.batch =>
            {
                self.rewind();
                self.set_back().await
            }
            _ => self.reload().await,
        }
    }

    /// How many batches of others have been read.
    pub(crate) fn heard(&self) -> u64 {
        self.replica.as_ref().map_or(0, |replica| replica.heard)
    }

    /// Signs of life of what runs here, and how long they last at the least before the next; or, where others share the
    /// log, of everything that runs: while the store was away for all they could not give them either.
    pub(crate) fn signs_of_life(&self, is_for_all: bool) -> (Vec<Command>, Millis) {
        if self.replica.is_none() || !is_for_all {
            return self.runs.signs_of_life();
        }
        let mut signs = Vec::new();
        let mut least = Millis::MAX;
        for view in self.scheduler.tasks() {
            let Some(run) = &view.running else { continue };
            // Whoever claimed it may have asked for a lease of its own.
            let lease = run.lease_until.since(self.scheduler.now());
            least = least.min(Millis((lease.0 / 3).max(1)));
            signs.push(Command::Heartbeat { task: view.id, fence: run.fence });
        }
        (signs, least)
    }
}

impl Replica {
    pub(crate) fn new(id: ReplicaId, lease: Millis, follower: Follower) -> Replica {
        let shown = Timestamp(0);
        let (rewind, others) = (Rewind::default(), BTreeMap::new());
        let (grown, place) = (Instant::now(), Place::default());
        Replica {
            id,
            rewind,
            follower,
            recent: Recent::default(),
            lease,
            grown,
            place,
            shown,
            owes_sign: false,
            heard: 0,
            others,
            bound: 0,
        }
    }

    /// Begins to look at a state: of what happened before nothing is known.
    pub(crate) fn begin<'a>(&mut self, tasks: impl Iterator<Item = &'a TaskView>) {
        self.others.clear();
        self.bound = 0;
        self.heard += 1;
        for view in tasks {
            self.count(&view.kind, view.home.as_ref(), 1);
        }
    }

    /// Counts a slot, or a task whose caller is connected somewhere.
    fn count(&mut self, kind: &Name, home: Option<&Name>, change: isize) {
        let (slot_of, home) = (ReplicaId::of_kind(kind), home.and_then(Ids::replica_of));
        if home == Some(self.id) {
            self.bound = self.bound.saturating_add_signed(change);
        }
        let Some(id) = slot_of.or(home).filter(|id| *id != self.id) else { return };
        let other = self.others.entry(id).or_default();
        let counted = if slot_of.is_some() { &mut other.slots } else { &mut other.bound };
        *counted = counted.saturating_add_signed(change);
        if other.slots + other.bound == 0 {
            self.others.remove(&id);
        }
    }

    /// Takes note that nobody is bound to one any more.
    fn unbind(&mut self, home: &Name) {
        let Some(id) = Ids::replica_of(home) else { return };
        if id == self.id {
            self.bound = 0;
        } else if let Some(other) = self.others.get_mut(&id) {
            other.bound = 0;
            if other.slots == 0 {
                self.others.remove(&id);
            }
        }
    }

    /// Takes note of what is in the log now, and by whom.
    pub(crate) fn note(&mut self, author: ReplicaId, turn: &Turn) {
        self.grown = Instant::now();
        for event in &turn.events {
            match event {
                Event::Submitted { spec, .. } => self.count(&spec.kind, spec.home.as_ref(), 1),
                Event::Unbound { home } => self.unbind(home),
                _ => {}
            }
        }
        for view in &turn.departed {
            self.count(&view.kind, view.home.as_ref(), -1);
        }
        if author == self.id {
            (self.shown, self.owes_sign) = (turn.at, false);
            return;
        }
        self.heard += 1;
        if let Some(other) = self.others.get_mut(&author) {
            (other.seen, other.is_dead) = (Some(turn.at), false);
            other.unanswered.clear();
        }
    }

    /// Takes note of a slot that a replica was granted by another.
    pub(crate) fn note_grant(&mut self, author: ReplicaId, origin: ReplicaId, task: TaskId, fence: Fence) {
        if author == origin {
            return;
        }
        if origin == self.id {
            self.owes_sign = true;
        } else if let Some(other) = self.others.get_mut(&origin) {
            other.unanswered.push((task, fence));
        }
    }

    /// Whether somebody else has slots, so that grants of slots matter here.
    pub(crate) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// When we have to append something, so that nobody takes us for dead.
    pub(crate) fn must_show_at(&self) -> Timestamp {
        self.shown + Millis(self.lease.0 / 3)
    }

    /// When somebody may turn out to be dead.
    pub(crate) fn next_death(&self) -> Option<Timestamp> {
        // Of one that was not seen yet the time begins with the next look.
        let at = |other: &Other| match other.seen {
            Some(seen) if !other.must_be_buried() => seen + self.lease,
            _ => Timestamp(0),
        };
        self.others.values().map(at).min()
    }

    /// The store was away, so that nobody could be heard.
    pub(crate) fn forgive(&mut self) {
        for other in self.others.values_mut() {
            (other.seen, other.is_dead) = (None, false);
        }
    }

    /// What follows from the silence of others: what waits for them does not wait any more, and what they were granted
    /// since is taken back. What they have shown to run has a lease of its own. Also tells who has just turned out to be dead.
    pub(crate) fn bury(&mut self, now: Timestamp) -> (Vec<Command>, Vec<ReplicaId>) {
        let (mut commands, mut dead) = (Vec::new(), Vec::new());
        for (id, other) in &mut self.others {
            let seen = *other.seen.get_or_insert(now);
            if seen + self.lease <= now {
                // Looked at again after another lease, for what is there then.
                (other.seen, other.is_dead) = (Some(now), true);
                dead.push(*id);
                if let Ok(kind) = Name::new(id.slot_kind()) {
                    let which = Selector { kind: Some(kind), ..Selector::default() };
                    commands.push(Command::CancelWaiting { which, reason: CancelReason::Caller });
                }
            }
            if other.is_dead {
                let unanswered = other.unanswered.drain(..);
                commands.extend(unanswered.map(|(task, fence)| Command::Lapse { task, fence }));
            }
        }
        (commands, dead)
    }
}

impl Other {
    /// Whether the dead were granted something, in the very moment of their burial at the latest.
    fn must_be_buried(&self) -> bool {
        self.is_dead && !self.unanswered.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_kinds_name_their_replica() {
        let id = ReplicaId(0xfeed_0000_0000_0001);
        assert_eq!(ReplicaId::of_batch(id.batch(7)), id);
        assert_ne!(id.batch(0).0 as u64, 0, "never the id of the empty log");
        let kind = Name::new(id.slot_kind()).unwrap();
        assert_eq!(ReplicaId::of_kind(&kind), Some(id));
        assert_eq!(ReplicaId::of_kind(&Name::new(SLOT_KIND).unwrap()), None);
    }
}
