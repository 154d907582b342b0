//! The data of the scheduler. Nothing here decides.

pub(crate) mod dead_letters;
pub(crate) mod index;
pub(crate) mod interner;
pub(crate) mod lane;
pub(crate) mod lane_config;
pub(crate) mod lanes;
pub(crate) mod lazy_box;
pub(crate) mod ready_tree;
pub(crate) mod routes;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod timers;
pub(crate) mod token_bucket;
