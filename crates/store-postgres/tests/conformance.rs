//! The store does what every store must do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod site;

use std::sync::Arc;

use laneway_store::conformance::run;
use laneway_test_services::Postgres;

use crate::site::Namespace;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms() {
    let postgres = Arc::new(Postgres::start());
    run(|| Namespace::new(&postgres)).await;
}
