//! The store does what every store must do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod site;

use laneway_store::conformance::run;

use crate::site::Directory;

#[tokio::test]
async fn sqlite_conforms() {
    run(Directory::new).await;
}
