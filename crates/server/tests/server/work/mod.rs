//! Tasks and turns: programs, upstreams, workers, reads of the store.

mod children;
mod lists;
mod programs;
mod reads;
mod requests;
mod slots;
mod upstreams;
mod worker_events;
mod workers;
