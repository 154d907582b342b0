//! Bugs of the protocol, to see that a simulation finds each. Compiled only with the feature `planted`, which no program
//! has, and even then nothing is wrong until [`plant`] is called on the thread concerned.

use std::cell::Cell;

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Whoever reports the end of a task is believed, whichever attempt he had.
    FenceIgnored,
    /// Nobody renews the leases of what runs here.
    LeaseNotRenewed,
    /// An append whose answer was lost is made anew where the log ends then.
    AppendedTwice,
    /// The first of several batches that were missed is not read.
    TailSkipped,
    /// What was decided on an old state is appended to a newer one.
    StaleGrant,
    /// What a run reports while the store is away is forgotten.
    OutcomeDropped,
    /// Nobody looks at the clock for what is due.
    LapseUnseen,
    /// A second report of the same end is believed.
    CompletedTwice,
    /// What waits for a dead replica waits for ever.
    DeadNotBuried,
    /// A batch of our own that is found in the log, after its answer was lost, is taken for known.
    OwnBatchSkipped,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 10] = [
        Bug::FenceIgnored,
        Bug::LeaseNotRenewed,
        Bug::AppendedTwice,
        Bug::TailSkipped,
        Bug::StaleGrant,
        Bug::OutcomeDropped,
        Bug::LapseUnseen,
        Bug::CompletedTwice,
        Bug::DeadNotBuried,
        Bug::OwnBatchSkipped,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// From now on all engines on this thread have this bug, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}
