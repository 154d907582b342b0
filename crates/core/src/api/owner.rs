//! Who executes an attempt.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::api::name::Name;

/// The number of a replica, chosen at random at its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReplicaId(pub u64);

/// Who executes an attempt.
///
/// It is written as a number or a text, because the log has one in every grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Owner {
    /// A replica, in its own process.
    Replica(ReplicaId),
    /// The worker that claimed the task, or for which it was submitted.
    Worker(Name),
}

impl ReplicaId {
    /// A program that has its log to itself, also after a restart.
    pub const SOLE: ReplicaId = ReplicaId(0);
}

impl fmt::Debug for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {self}")
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Owner {
    /// Which replica it is, if it is one.
    pub fn replica(&self) -> Option<ReplicaId> {
        match self {
            Owner::Replica(replica) => Some(*replica),
            Owner::Worker(_) => None,
        }
    }

    /// Which worker it is, if it is one.
    pub fn worker(&self) -> Option<&Name> {
        match self {
            Owner::Replica(_) => None,
            Owner::Worker(worker) => Some(worker),
        }
    }
}
