//! The handlers of all routes, by resource.

pub(crate) mod admin;
pub(crate) mod agents;
pub(crate) mod events;
pub(crate) mod lanes;
pub(crate) mod pages;
pub(crate) mod schedules;
pub(crate) mod sessions;
pub(crate) mod tasks;
