//! The event hub: one place that numbers events, keeps the newest and passes them to subscriptions.

pub(crate) mod groups;
pub(crate) mod hub;
pub(crate) mod positions;
mod publishing;
mod ring;
pub(crate) mod subscription;
pub(crate) mod update;
