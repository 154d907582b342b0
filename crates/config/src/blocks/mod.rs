//! One file for each block of the configuration.

pub(crate) mod agents;
pub(crate) mod lanes;
pub(crate) mod message_types;
pub(crate) mod messages;
pub(crate) mod places;
pub(crate) mod queue;
pub(crate) mod server;
pub(crate) mod template;
pub(crate) mod worker;
