//! Tasks and turns: programs, upstreams, workers, callers that leave.

mod lists;
mod programs;
mod requests;
mod upstreams;
mod workers;
