//! What every transport calls: submit, wait, hold slots.

pub(crate) mod attempt_view;
pub(crate) mod envelope;
pub(crate) mod slots;
pub(crate) mod submission;
pub(crate) mod task_view;
