//! A server over its life: reload, schedules, replicas, traces, shutdown.

mod operating;
mod replicas;
mod schedules;
mod stopping;
mod traces;
