//! Tasks and turns: programs, upstreams, workers, reads of the store.

mod lists;
mod programs;
mod reads;
mod requests;
mod upstreams;
mod worker_events;
mod workers;
