//! Questions about the state: why a task waits, when it may start, who is in line.

pub(crate) mod estimate;
pub(crate) mod explain;
pub(crate) mod listing;
pub(crate) mod return_times;
