//! Decisions: a command or the time becomes events. Decisions read the state and never write it.

pub(crate) mod affinity;
pub(crate) mod at_once;
pub(crate) mod control;
pub(crate) mod dispatch;
pub(crate) mod expire;
pub(crate) mod lending;
pub(crate) mod notes;
pub(crate) mod outcome;
pub(crate) mod restore_outcome;
pub(crate) mod submit;
