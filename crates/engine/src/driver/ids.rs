//! Ids of tasks, payloads, batches and replicas.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU128;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use foldhash::fast::FixedState;
use laneway_core::{BlobId, ReplicaId, TaskId};
use laneway_store::BatchId;

/// A map by task. The ids are our own, so a fast hash is safe.
pub(crate) type ByTask<V> = HashMap<TaskId, V, FixedState>;

/// Makes ids: UUIDs of version 7, which sort by their time of making.
pub(crate) struct Ids {
    /// From the operating system's randomness, unless it was given.
    seed: u64,
    chance: FixedState,
    /// No clock is read where ids come from a seed.
    reads_clock: bool,
    made: AtomicU32,
}

impl Ids {
    pub(super) fn new() -> Ids {
        let seed = RandomState::new().hash_one("seed");
        Ids {
            seed,
            chance: FixedState::with_seed(RandomState::new().hash_one("ids")),
            reads_clock: true,
            made: AtomicU32::new(0),
        }
    }

    /// The same ids for the same seed.
    pub(super) fn seeded(seed: u64) -> Ids {
        Ids { seed, chance: FixedState::with_seed(seed), reads_clock: false, made: AtomicU32::new(0) }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of this engine among those that share a log.
    pub(crate) fn replica(&self) -> ReplicaId {
        // One that has its log to itself is called zero.
        ReplicaId(self.chance.hash_one("replica").max(1))
    }

    pub(crate) fn task(&self) -> TaskId {
        TaskId(self.uuid())
    }

    pub(crate) fn blob(&self) -> BlobId {
        BlobId(NonZeroU128::new(self.uuid()).unwrap_or(NonZeroU128::MIN))
    }

    pub(crate) fn batch(&self) -> BatchId {
        BatchId(self.uuid())
    }

    /// 48 bits of time, a counter of 32 bits, 42 bits of chance, and the six bits that say what it is.
    fn uuid(&self) -> u128 {
        let since_1970 =
            || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let millis = if self.reads_clock { since_1970() } else { 0 };
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let chance = u128::from(self.chance.hash_one((millis, number)) >> 22);
        let (high, low) = (u128::from(number >> 20), u128::from(number & 0xf_ffff));
        (u128::from(millis) & 0xffff_ffff_ffff) << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 42 | chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_uuids() {
        let ids = Ids::new();
        let some: std::collections::BTreeSet<TaskId> = (0..10_000).map(|_| ids.task()).collect();
        assert_eq!(some.len(), 10_000);
        let text = ids.task().to_string();
        assert_eq!(&text[14..15], "7");
        assert!("89ab".contains(&text[19..20]));
    }
}
