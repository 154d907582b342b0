//! One file for each resource.

pub(crate) mod admin;
pub(crate) mod agents;
pub(crate) mod charts;
pub(crate) mod chat;
pub(crate) mod dashboard;
pub(crate) mod dead_letters;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod groups;
pub(crate) mod lanes;
pub(crate) mod messages;
pub(crate) mod schedules;
pub(crate) mod sessions;
pub(crate) mod slots;
pub(crate) mod status;
pub(crate) mod task_list;
pub(crate) mod tasks;
pub(crate) mod workers;
