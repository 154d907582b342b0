//! One of several engines that share a log.
//!
//! ```text
//!   replica A ──┐  append at version n   ┌──────────────┐
//!   replica B ──┼──────────────────────▶ │ one log in   │  exactly one wins; the others read what they missed,
//!   replica C ──┘ ◀───────────────────── │ Redis or     │  decide again and try again
//!                  every replica reads   │ Postgres     │
//!                  the whole log         └──────────────┘
//! ```
//!
//! Each replica keeps the whole state by reading what the others append. A decision counts when its batch is in the log, at
//! the version that it was decided on. So a limit holds over all replicas.
//!
//! **Where tasks run.** A slot or closure runs at the replica that asked for it, whichever replica granted it. A task of a
//! named handler runs at the replica of its caller or the one that granted it. Each grant names the owner, and the id of a
//! batch begins with the number of its replica, so the log alone tells both.
//!
//! **Death of a replica.** A replica that runs something, or has callers that wait, appends at least an empty batch three times
//! in each replica lease. The others read the log just as often. A replica counts as dead when several reads in a row were quick
//! and found nothing of it. So no replica dies because the store stood still. What the dead replica ran is over, and who
//! waited there is gone.

pub(crate) mod append_counts;
pub(crate) mod append_turn;
pub(crate) mod apply_remote;
pub(crate) mod broadcast;
pub(crate) mod follower;
pub(crate) mod log_loss;
mod output;
pub(crate) mod rollback;
pub(crate) mod store_clock;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::Duration;

use laneway_core::{Event, LiveTaskView, Millis, Owner, ReplicaId, Reply, Timestamp};
use laneway_store::{BatchId, StoreError};
use tokio::time::Instant;

use crate::driver::batch::Batch;
use crate::driver::clock::millis;
use crate::driver::engine::Engine;
use crate::error::Error;
use crate::replica::append_turn::Place;
use crate::replica::follower::Follower;
use crate::replica::log_loss::RecentWork;
use crate::replica::rollback::Rollback;

/// How many quick reads in a row must find nothing of a replica that is dead.
const SILENT_READS: u8 = 4;

/// Each replica does what is due for all up to this much later than it is due.
const JITTER_MAX_MS: u64 = 25;

/// What an engine keeps as one of several.
pub(crate) struct Replica {
    pub(crate) id: ReplicaId,
    pub(crate) rollback: Rollback,
    pub(crate) follower: Follower,
    pub(crate) recent: RecentWork,
    /// How long a replica may append nothing and still count as alive.
    lease: Millis,
    /// When the log was last seen to grow.
    pub(crate) log_grew: Instant,
    /// Where this replica stands in the line of those that append.
    pub(crate) place: Place,
    /// When this replica appended last.
    appended: Timestamp,
    /// When this replica last read the log to see whether the others live.
    checked: Timestamp,
    /// The other replicas that run something or have callers.
    others: BTreeMap<ReplicaId, Other>,
    /// How many tasks have their callers connected here.
    bound: usize,
}

#[derive(Clone, Default)]
struct Other {
    slots: usize,
    /// Tasks whose callers are connected to it.
    bound: usize,
    /// It had something running when this was looked at last, or was granted something since.
    is_running: bool,
    /// How many quick reads in a row found nothing of it.
    silent_reads: u8,
}

/// The replica that made a batch.
pub(crate) fn author_of(batch: BatchId) -> ReplicaId {
    ReplicaId(batch.author().0)
}

/// A batch of a replica, with a random number of its own.
pub(crate) fn batch_of(author: ReplicaId, chance: u64) -> BatchId {
    BatchId(u128::from(author.0) << 64 | u128::from(NonZeroU64::new(chance).map_or(1, NonZeroU64::get)))
}

impl Engine {
    /// Whether an append is due, so that the others count us as alive.
    pub(crate) fn is_sign_due(&self, now: Timestamp) -> bool {
        self.owes_sign() && self.replica.as_ref().is_some_and(|replica| replica.sign_due_at() <= now)
    }

    /// Whether the others watch our appends: we run something, or have callers that wait.
    fn owes_sign(&self) -> bool {
        let is_bound = self.replica.as_ref().is_some_and(|replica| replica.bound > 0);
        is_bound || !self.runs.is_quiet() || !self.callers.slots.is_empty()
    }

    /// When we must append, or another replica may have been silent for too long.
    pub(crate) fn replica_due_at(&self) -> Option<Timestamp> {
        let replica = self.replica.as_ref()?;
        let show = self.owes_sign().then(|| replica.sign_due_at());
        [show, replica.next_check()].into_iter().flatten().min()
    }

    /// How much later than due this replica acts on what is due for all, so that replicas seldom race.
    pub(crate) fn jitter(&self) -> Millis {
        self.replica.as_ref().map_or(Millis(0), |replica| Millis(replica.id.0 % JITTER_MAX_MS))
    }

    /// Whether a batch only refuses, which an older state may be wrong about.
    pub(crate) fn refuses(&self, batch: &Batch) -> bool {
        let refused = |(reply, _): &(Result<Reply, Error>, _)| matches!(reply, Err(Error::Rejected(_)));
        self.replica.is_some() && batch.events.is_empty() && batch.replies.iter().any(refused)
    }

    /// Another replica appended first: applies its batches.
    pub(crate) async fn on_conflict(&mut self, conflict: &StoreError) -> Result<(), StoreError> {
        match (&self.replica, conflict) {
            (Some(_), StoreError::Conflict { current, .. })
                if current.version > self.storage.head.version =>
            {
                self.go_back(Some(current.version)).await
            }
            // The log lost batches and has grown to the same version: reading behind our head would not show it.
            (Some(_), StoreError::Conflict { current, .. })
                if current.version == self.storage.head.version
                    && current.batch != self.storage.head.batch =>
            {
                self.rollback();
                self.on_log_loss().await
            }
            _ => self.reload().await,
        }
    }
}

impl Replica {
    pub(crate) fn new(id: ReplicaId, lease: Millis, follower: Follower) -> Replica {
        let appended = Timestamp(0);
        let (rollback, others) = (Rollback::default(), BTreeMap::new());
        let (log_grew, place) = (Instant::now(), Place::default());
        Replica {
            id,
            rollback,
            follower,
            recent: RecentWork::default(),
            lease,
            log_grew,
            place,
            appended,
            checked: Timestamp(0),
            others,
            bound: 0,
        }
    }

    /// Starts from a state. Nothing is known of earlier appends.
    pub(crate) fn begin<'a>(&mut self, tasks: impl Iterator<Item = &'a LiveTaskView>) {
        self.others.clear();
        self.bound = 0;
        for view in tasks {
            self.count(view.owner.as_ref(), view.caller_at, 1);
            if let Some(run) = &view.running {
                self.note_run(&run.owner);
            }
        }
    }

    /// Counts a slot, or a task whose caller is connected to a replica.
    fn count(&mut self, owner: Option<&Owner>, caller_at: Option<ReplicaId>, change: isize) {
        let slot_of = owner.and_then(Owner::replica);
        if caller_at == Some(self.id) {
            self.bound = self.bound.saturating_add_signed(change);
        }
        let Some(id) = slot_of.or(caller_at).filter(|id| *id != self.id) else { return };
        let other = self.others.entry(id).or_default();
        let counted = if slot_of.is_some() { &mut other.slots } else { &mut other.bound };
        *counted = counted.saturating_add_signed(change);
        self.forget_if_idle(id);
    }

    /// Notes that no task has its caller at this replica.
    fn unbind(&mut self, id: ReplicaId) {
        if id == self.id {
            self.bound = 0;
        } else if let Some(other) = self.others.get_mut(&id) {
            other.bound = 0;
            self.forget_if_idle(id);
        }
    }

    fn forget_if_idle(&mut self, id: ReplicaId) {
        if self.others.get(&id).is_some_and(Other::is_idle) {
            self.others.remove(&id);
        }
    }

    /// Notes what a batch in the log says of its author and its tasks.
    pub(crate) fn note(&mut self, author: ReplicaId, batch: &Batch) {
        self.log_grew = Instant::now();
        for event in &batch.events {
            match event {
                Event::Submitted { spec, .. } => self.count(spec.owner.as_ref(), spec.caller_at, 1),
                Event::Unbound { replica } => self.unbind(*replica),
                Event::Granted { owner, .. } => self.note_run(owner),
                _ => {}
            }
        }
        for view in &batch.departed {
            self.count(view.owner.as_ref(), view.caller_at, -1);
        }
        if author == self.id {
            self.appended = batch.at;
        } else if let Some(other) = self.others.get_mut(&author) {
            other.silent_reads = 0;
        }
    }

    fn note_run(&mut self, owner: &Owner) {
        if let Some(owner) = owner.replica().filter(|owner| *owner != self.id) {
            self.others.entry(owner).or_default().is_running = true;
        }
    }

    /// When we must append, so that the others count us as alive.
    pub(crate) fn sign_due_at(&self) -> Timestamp {
        self.appended + self.check_every()
    }

    /// When to see again whether the others live.
    pub(crate) fn next_check(&self) -> Option<Timestamp> {
        (!self.others.is_empty()).then(|| self.checked + self.check_every())
    }

    fn check_every(&self) -> Millis {
        Millis(self.lease.0 / 3)
    }

    /// A read that took longer says nothing about the others, because the store may have stood still.
    pub(crate) fn is_quick(&self, read: Duration) -> bool {
        millis(read) <= Millis(self.lease.0 / 10)
    }

    /// Forgets how long the others have been silent: none could append while the store was away.
    pub(crate) fn reset_liveness(&mut self) {
        self.others.values_mut().for_each(|other| other.silent_reads = 0);
    }

    /// Notes that all of the log was read quickly, and says which replicas are dead.
    pub(crate) fn find_dead(&mut self, now: Timestamp, running: &BTreeSet<ReplicaId>) -> Vec<ReplicaId> {
        self.checked = now;
        for (replica, other) in &mut self.others {
            other.silent_reads = other.silent_reads.saturating_add(1);
            other.is_running = running.contains(replica);
        }
        self.others.retain(|_, other| !other.is_idle());
        let dead = self.others.iter().filter(|(_, other)| other.silent_reads >= SILENT_READS);
        dead.map(|(replica, _)| *replica).collect()
    }

    /// Whether a replica has appended since it was found dead.
    pub(crate) fn is_alive(&self, replica: ReplicaId) -> bool {
        self.others.get(&replica).is_some_and(|other| other.silent_reads == 0)
    }
}

impl Other {
    /// Whether nothing would be left of it if it died.
    fn is_idle(&self) -> bool {
        self.slots + self.bound == 0 && !self.is_running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_name_their_author() {
        let id = ReplicaId(0xfeed_0000_0000_0001);
        assert_eq!(author_of(batch_of(id, 7)), id);
        assert_ne!(batch_of(id, 0).0 as u64, 0, "never the id of the empty log");
    }
}
