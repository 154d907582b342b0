//! The store does what every store must do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod site;

use std::sync::Arc;

use laneway_store::conformance::run;
use laneway_test_services::{PgBouncer, Postgres};

use crate::site::Namespace;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms() {
    let postgres = Arc::new(Postgres::start());
    run(|| Namespace::new(&postgres)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_behind_a_pooler_in_transaction_mode_conforms() {
    let postgres = Arc::new(Postgres::start());
    let bouncer = PgBouncer::start(&postgres, "transaction");
    run(|| Namespace::by_way_of(bouncer.port(), &postgres)).await;
}
