//! Real servers for tests: [`Redis`] and [`Postgres`] on free ports of this machine, which can be killed, stopped for a
//! while and started again, and a [`Proxy`] that cuts connections and loses replies. [`Cluster`] and [`Sentinels`] are
//! several Redis servers that replace one another, and [`PgBouncer`] stands in front of a Postgres. A [`Balancer`] stands in
//! front of our own servers, and a [`Prometheus`] watches them.
//!
//! A server ends when its value is dropped, and also when the process that started it dies in any other way.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use it, and they stop at anything unexpected"
)]

mod balancer;
mod certificates;
mod cluster;
mod listening;
mod pgbouncer;
mod postgres;
mod process;
mod prometheus;
mod proxy;
mod redis;
mod sentinels;
mod wait;

pub use balancer::Balancer;
pub use certificates::Certificates;
pub use cluster::Cluster;
pub use pgbouncer::PgBouncer;
pub use postgres::Postgres;
pub use process::{Process, Signal};
pub use prometheus::Prometheus;
pub use proxy::Proxy;
pub use redis::{Access, Redis};
pub use sentinels::Sentinels;

/// A port of the loopback interface that is free now.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}
