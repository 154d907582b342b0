//! Connections: accepted up to a bound, with time limits on reading heads and on writing.

pub(crate) mod connections;
pub(crate) mod read_timeout;
pub(crate) mod write_timeout;
