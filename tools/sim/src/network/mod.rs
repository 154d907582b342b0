//! What lies between the machines: calls to replicas, and wires to the shared log.

pub(crate) mod calls;
pub(crate) mod link;
pub(crate) mod shared_log;
pub(crate) mod wire;
