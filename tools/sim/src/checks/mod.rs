//! What must hold: of each batch, of each answer, of each run, and at the end.

pub(crate) mod ledger;
pub(crate) mod log_checker;
pub(crate) mod message_order;
pub(crate) mod verdicts;
