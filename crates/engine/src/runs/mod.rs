//! Running attempts: handlers, programs, slots, tool calls, and how each is stopped.

pub(crate) mod context;
pub(crate) mod direct_tools;
pub(crate) mod handler;
pub(crate) mod panic;
pub(crate) mod program_handler;
pub(crate) mod slot;
pub(crate) mod stop;
pub(crate) mod table;
pub(crate) mod tool_lanes;
pub(crate) mod tools;
pub(crate) mod turn_payload;
