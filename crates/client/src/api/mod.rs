//! One file for each resource of the API.

mod agents;
mod claims;
mod dead_letters;
mod lanes;
mod operations;
mod sessions;
mod tasks;

pub use agents::{AskKind, AskOptions};
pub use lanes::ChartQuery;
pub use tasks::TasksQuery;
