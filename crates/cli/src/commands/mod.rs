//! One file for each subcommand.

pub(crate) mod agents;
pub(crate) mod cancel;
pub(crate) mod dead_letters;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod follow;
pub(crate) mod lanes;
pub(crate) mod manual;
pub(crate) mod mcp;
pub(crate) mod operate;
pub(crate) mod scenario;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod status;
pub(crate) mod submit;
pub(crate) mod tasks;
pub(crate) mod transfer;
pub(crate) mod whatif;
