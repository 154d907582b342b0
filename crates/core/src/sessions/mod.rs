//! Sessions: conversations, the messages that wait for a busy agent, and the turns that answer them.

pub(crate) mod dedupe;
pub(crate) mod directive;
pub(crate) mod edit;
pub(crate) mod message;
pub(crate) mod parked;
pub(crate) mod queue_mode;
pub(crate) mod receipts;
pub(crate) mod send;
pub(crate) mod session;
pub(crate) mod snapshot;
pub(crate) mod steering;
pub(crate) mod table;
pub(crate) mod turn_text;
pub(crate) mod turns;
pub(crate) mod view;
