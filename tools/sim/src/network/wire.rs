//! The way between a replica and the store: what happens to what is sent over it.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_store::{Author, BatchId, Version};
use tokio::sync::Notify;

use crate::kind::Kind;
use laneway_seeded::Random;

/// How long a replica waits for an answer of the store.
pub(crate) const ANSWER_MS: u64 = 500;

/// One replica's way to the store. It outlives the replica.
pub(crate) struct Wire {
    random: Random,
    /// What strikes the next appends, reads and hints.
    appends: VecDeque<(Kind, u64)>,
    reads: VecDeque<(Kind, u64)>,
    hints: VecDeque<Kind>,
    /// A snapshot that is saved next is lost.
    pub(crate) loses_snapshot: bool,
    pub(crate) cut_until: u64,
    /// What others append from here on is in a format that this replica does not know.
    pub(crate) old_since: Option<Version>,
    /// In which life this replica has read such a batch, and the first of them.
    pub(crate) met_newer: Option<(u32, Version)>,
    /// The newest batch that the replica has heard of, and to whom it passed the append turn.
    pub(crate) newest: Option<(Version, Option<Author>)>,
    /// The batch that the replica appended last, and whether it got no answer to that.
    pub(crate) appended: Option<BatchId>,
    pub(crate) has_failed: bool,
    /// A hint that arrives a second time.
    pub(crate) again: Option<Version>,
    /// Notified when the log grows or can no longer be reached.
    pub(crate) told: Arc<Notify>,
}

/// What is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Append,
    Read,
    Other,
}

/// What becomes of something that is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) there_ms: u64,
    pub(crate) back_ms: u64,
    pub(crate) kind: Option<Kind>,
}

impl Wire {
    pub(crate) fn new(seed: u64, replica: usize) -> Wire {
        Wire {
            random: Random::stream(seed, 100 + replica as u64),
            appends: VecDeque::new(),
            reads: VecDeque::new(),
            hints: VecDeque::new(),
            loses_snapshot: false,
            cut_until: 0,
            old_since: None,
            met_newer: None,
            newest: None,
            appended: None,
            has_failed: false,
            again: None,
            told: Arc::default(),
        }
    }

    /// Plans a fault for what is sent next.
    pub(crate) fn plan(&mut self, kind: Kind, much: u64) {
        match kind {
            Kind::ReadRefused | Kind::ReadSlow => self.reads.push_back((kind, much)),
            Kind::HintLost | Kind::HintStale | Kind::HintTwice => self.hints.push_back(kind),
            _ => self.appends.push_back((kind, much)),
        }
    }

    /// Forgets what was planned and has not struck.
    pub(crate) fn heal(&mut self) {
        self.appends.clear();
        self.reads.clear();
        self.hints.clear();
        (self.loses_snapshot, self.cut_until, self.old_since) = (false, 0, None);
    }

    /// What becomes of the next thing that is sent.
    pub(crate) fn fate(&mut self, sort: Sort) -> Fate {
        let planned = match sort {
            Sort::Append => self.appends.pop_front(),
            Sort::Read => self.reads.pop_front(),
            Sort::Other => None,
        };
        let usual = Fate { there_ms: self.random.below(3), back_ms: self.random.below(3), kind: None };
        let Some((kind, much)) = planned else { return usual };
        let there_ms = match kind {
            Kind::AppendSlow | Kind::ReadSlow => 50 + much % (ANSWER_MS - 100),
            Kind::AppendLate => ANSWER_MS + 100 + much % 2500,
            _ => usual.there_ms,
        };
        Fate { there_ms, kind: Some(kind), ..usual }
    }

    /// What becomes of the next hint. Where there is one batch to tell of nothing less can be told: a stale hint waits
    /// until there are more.
    pub(crate) fn hint(&mut self, can_be_stale: bool) -> (u64, Option<Kind>) {
        let next = self.hints.iter().position(|kind| can_be_stale || *kind != Kind::HintStale);
        (self.random.below(3), next.and_then(|next| self.hints.remove(next)))
    }
}
