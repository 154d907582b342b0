//! A server over its life: reload, schedules, replicas, traces, shutdown.

mod agents;
mod operating;
mod replicas;
mod schedules;
mod stopping;
mod traces;
