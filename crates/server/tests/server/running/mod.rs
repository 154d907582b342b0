//! A server over its life: reload, schedules, replicas, proxies, traces, shutdown.

mod agents;
mod operating;
mod proxies;
mod replicas;
mod schedules;
mod shared;
mod stopping;
mod traces;
