//! The machines of a history: replicas, workers and clients, each of which may stall or die.

pub(crate) mod client;
pub(crate) mod machine;
pub(crate) mod replica;
pub(crate) mod worker;
