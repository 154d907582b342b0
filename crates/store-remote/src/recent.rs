//! The newest batches of the log, so that a replica that catches up seldom asks the backend.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laneway_store::{Author, READ_BATCHES_MAX, READ_BYTES_MAX, StoredBatch, Version, is_next};

use crate::backend::LogPage;

/// Batches without a gap between them, as many as one read returns at most. The oldest make room.
#[derive(Default)]
pub struct Recent(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    batches: VecDeque<StoredBatch>,
    bytes: usize,
    /// The newest of all, kept or not, and to whom it passed the append turn.
    newest: (Version, Option<Author>),
}

impl Recent {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Every change is made of steps that do not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything: the backend may have another log now.
    pub fn clear(&self) {
        *self.kept() = Kept::default();
    }

    /// Keeps batches, and forgets those that they do not follow.
    pub fn add(&self, page: LogPage) {
        self.note_page(&page);
        let mut kept = self.kept();
        let Some(first) = page.batches.first() else { return };
        if !kept.batches.back().is_some_and(|last| is_next(last, first)) {
            *kept = Kept { newest: kept.newest, ..Kept::default() };
        }
        for batch in page.batches {
            kept.bytes += batch.record.len();
            kept.batches.push_back(batch);
        }
        while kept.batches.len() > READ_BATCHES_MAX || kept.bytes > READ_BYTES_MAX {
            let Some(oldest) = kept.batches.pop_front() else { break };
            kept.bytes -= oldest.record.len();
        }
    }

    /// Keeps these batches in place of all others.
    pub fn replace(&self, page: LogPage) {
        self.clear();
        self.add(page);
    }

    /// Notes to whom a batch passed the append turn, if it is the newest so far.
    pub fn note(&self, version: Version, append_turn: Option<Author>) {
        let mut kept = self.kept();
        if version >= kept.newest.0 {
            kept.newest = (version, append_turn);
        }
    }

    pub(crate) fn note_page(&self, page: &LogPage) {
        if let Some(last) = page.batches.last() {
            self.note(last.version, page.append_turn);
        }
    }

    /// The newest batch, and to whom it passed the append turn.
    pub(crate) fn newest(&self) -> (Version, Option<Author>) {
        self.kept().newest
    }

    /// The batches after a version, if the next one is kept.
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
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

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
    fn page<const N: usize>(log: &[StoredBatch], versions: [usize; N]) -> LogPage {
        LogPage { batches: versions.map(|version| log[version - 1].clone()).into(), append_turn: None }
    }

    fn versions(recent: &Recent, after: u64) -> Vec<u64> {
        recent.after(Version(after)).iter().map(|batch| batch.version.0).collect()
    }

    #[tokio::test]
    async fn only_what_follows_without_a_gap_is_known() {
        let (recent, log) = (Recent::default(), log_from(1, 11).await);
        assert_eq!(versions(&recent, 0), []);
        recent.add(page(&log, [5, 6]));
        recent.add(page(&log, [7]));
        assert_eq!(versions(&recent, 4), [5, 6, 7]);
        assert_eq!(versions(&recent, 5), [6, 7]);
        assert_eq!((versions(&recent, 7), versions(&recent, 3)), (vec![], vec![]));
        recent.add(page(&log, [9]));
        assert_eq!((versions(&recent, 8), versions(&recent, 4)), (vec![9], vec![]));
        recent.replace(page(&log, [10, 11]));
        assert_eq!((versions(&recent, 8), versions(&recent, 9)), (vec![], vec![10, 11]));
    }

    #[tokio::test]
    async fn another_log_does_not_go_on_where_the_first_was() {
        let (recent, log, other) = (Recent::default(), log_from(1, 5).await, log_from(100, 5).await);
        recent.add(page(&log, [1, 2, 3]));
        recent.add(page(&other, [4, 5]));
        assert_eq!((versions(&recent, 0), versions(&recent, 3)), (vec![], vec![4, 5]));
    }

    #[tokio::test]
    async fn the_oldest_make_room() {
        let (recent, log) = (Recent::default(), log_from(1, 2000).await);
        (1..=2000).for_each(|version| recent.add(page(&log, [version])));
        assert_eq!(versions(&recent, 2000 - READ_BATCHES_MAX as u64).len(), READ_BATCHES_MAX);
        assert_eq!(versions(&recent, 1999 - READ_BATCHES_MAX as u64), []);
    }

    #[test]
    fn an_older_batch_does_not_change_the_newest_until_that_is_forgotten() {
        let recent = Recent::default();
        recent.note(Version(7), Some(Author(1)));
        recent.note(Version(6), Some(Author(2)));
        assert_eq!(recent.newest(), (Version(7), Some(Author(1))));
        recent.clear();
        recent.note(Version(6), None);
        assert_eq!(recent.newest(), (Version(6), None));
    }
}
