//! What watchers see: updates, places in line, refusals.

pub(crate) mod positions;
pub(crate) mod refusals;
pub(crate) mod watch;
