//! What crosses the border of the scheduler: commands in, events and rejections out.

pub(crate) mod backoff;
pub(crate) mod command;
pub(crate) mod event;
pub(crate) mod held_settings;
pub(crate) mod ids;
pub(crate) mod lane_settings;
pub(crate) mod name;
pub(crate) mod owner;
pub(crate) mod rejection;
pub(crate) mod retry;
pub(crate) mod session_command;
pub(crate) mod settings_schema;
pub(crate) mod task_spec;
pub(crate) mod time;
pub(crate) mod views;
