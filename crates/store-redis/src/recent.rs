//! The last batches that came by, so that whoever wants to catch up need not ask for them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laneway_store::{Author, READ_BATCHES_MAX, READ_BYTES_MAX, StoredBatch, Version, is_next};

use crate::log::Read;

/// Batches without a gap between them, as many as one read returns at most. The oldest make room.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    batches: VecDeque<StoredBatch>,
    bytes: usize,
    /// The newest of all, kept or not, and to whom it passed the baton.
    newest: (Version, Option<Author>),
}

impl Recent {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Every change is made of steps that do not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.kept() = Kept::default();
    }

    /// Takes note of batches that follow each other; what they do not follow is forgotten.
    pub(crate) fn add(&self, read: Read) {
        read.note_baton(self);
        let mut kept = self.kept();
        let Some(first) = read.batches.first() else { return };
        if !kept.batches.back().is_some_and(|last| is_next(last, first)) {
            *kept = Kept { newest: kept.newest, ..Kept::default() };
        }
        for batch in read.batches {
            kept.bytes += batch.record.len();
            kept.batches.push_back(batch);
        }
        while kept.batches.len() > READ_BATCHES_MAX || kept.bytes > READ_BYTES_MAX {
            let Some(oldest) = kept.batches.pop_front() else { break };
            kept.bytes -= oldest.record.len();
        }
    }

    /// In place of all that was known: what Redis has just said.
    pub(crate) fn replace(&self, read: Read) {
        self.clear();
        self.add(read);
    }

    /// Takes note of whom a batch passed the baton to, if there is none that is newer.
    pub(crate) fn note_baton(&self, version: Version, baton: Option<Author>) {
        let mut kept = self.kept();
        if version >= kept.newest.0 {
            kept.newest = (version, baton);
        }
    }

    /// The newest batch that came by, and to whom it passed the baton.
    pub(crate) fn newest(&self) -> (Version, Option<Author>) {
        self.kept().newest
    }

    /// The batches after a version, if the next one is known.
    pub(crate) fn after(&self, version: Version) -> Vec<StoredBatch> {
        let kept = self.kept();
        let oldest = kept.batches.front().map_or(u64::MAX, |batch| batch.version.0);
        match version.next().0.checked_sub(oldest) {
            Some(from) => kept.batches.iter().skip(from as usize).cloned().collect(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use laneway_core::Timestamp;
    use laneway_store::{Batch, BatchId, Entry, Head, Log, MemoryStore};

    use super::*;

    /// The batches of a log, whose ids count from here.
    async fn log_from(first: u128, length: usize) -> Vec<StoredBatch> {
        let log = Log::new(Arc::new(MemoryStore::new()));
        let mut head = Head::EMPTY;
        for id in (first..).take(length) {
            let batch = Batch { id: BatchId(id), at: Timestamp(0), events: vec![] };
            head = log.append(head, &Entry::of(batch)).await.unwrap();
        }
        let mut batches: Vec<StoredBatch> = Vec::new();
        while batches.len() < length {
            let after = batches.last().map_or(Version(0), |last| last.version);
            batches.extend(log.store().read(after).await.unwrap());
        }
        batches
    }

    /// Some of them, by their versions.
    fn read<const N: usize>(log: &[StoredBatch], versions: [usize; N]) -> Read {
        Read { batches: versions.map(|version| log[version - 1].clone()).into(), baton: None }
    }

    fn versions(recent: &Recent, after: u64) -> Vec<u64> {
        recent.after(Version(after)).iter().map(|batch| batch.version.0).collect()
    }

    #[tokio::test]
    async fn only_what_follows_without_a_gap_is_known() {
        let (recent, log) = (Recent::default(), log_from(1, 11).await);
        assert_eq!(versions(&recent, 0), []);
        recent.add(read(&log, [5, 6]));
        recent.add(read(&log, [7]));
        assert_eq!(versions(&recent, 4), [5, 6, 7]);
        assert_eq!(versions(&recent, 5), [6, 7]);
        assert_eq!((versions(&recent, 7), versions(&recent, 3)), (vec![], vec![]));
        recent.add(read(&log, [9]));
        assert_eq!((versions(&recent, 8), versions(&recent, 4)), (vec![9], vec![]));
        recent.replace(read(&log, [10, 11]));
        assert_eq!((versions(&recent, 8), versions(&recent, 9)), (vec![], vec![10, 11]));
    }

    #[tokio::test]
    async fn another_log_does_not_go_on_where_the_first_was() {
        let (recent, log, other) = (Recent::default(), log_from(1, 5).await, log_from(100, 5).await);
        recent.add(read(&log, [1, 2, 3]));
        recent.add(read(&other, [4, 5]));
        assert_eq!((versions(&recent, 0), versions(&recent, 3)), (vec![], vec![4, 5]));
    }

    #[tokio::test]
    async fn the_oldest_make_room() {
        let (recent, log) = (Recent::default(), log_from(1, 2000).await);
        (1..=2000).for_each(|version| recent.add(read(&log, [version])));
        assert_eq!(versions(&recent, 2000 - READ_BATCHES_MAX as u64).len(), READ_BATCHES_MAX);
        assert_eq!(versions(&recent, 1999 - READ_BATCHES_MAX as u64), []);
    }
}
