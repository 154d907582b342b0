//! A Postgres behind a PgBouncer.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test stops at anything unexpected, and shares code with others"
)]

mod site;

use std::sync::Arc;

use laneway_core::Timestamp;
use laneway_store::{Batch, BatchId, Entry, ErrorKind, Head, Log, StoreError, Version};
use laneway_store_postgres::PostgresStore;
use laneway_test_services::{PgBouncer, Postgres};

use crate::site::{connect, options};

fn entry(number: u128) -> Entry {
    Entry::of(Batch { id: BatchId(number), at: Timestamp(0), events: vec![] })
}

async fn open(url: &str) -> Result<Log, StoreError> {
    Ok(Log::new(Arc::new(PostgresStore::open_with(url, options("pooled")).await?)))
}

#[tokio::test]
async fn the_mode_of_a_pooler_is_found_out() {
    let postgres = Postgres::start();
    let direct = open(&postgres.url()).await.unwrap();
    assert!(direct.store().subscribe().await.unwrap().is_some());
    let session = PgBouncer::start(&postgres, "session");
    let log = open(&postgres.url_at(session.port())).await.unwrap();
    assert!(log.store().subscribe().await.unwrap().is_some());

    let mut transaction = PgBouncer::start(&postgres, "transaction");
    let url = postgres.url_at(transaction.port());
    let log = open(&url).await.unwrap();
    // No notification, and so no subscription.
    assert!(log.store().subscribe().await.unwrap().is_none());
    let first = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    // The direct one hears of a batch that came through the pooler, and the other way round.
    assert_eq!(direct.store().tail(Version(0)).await, Ok(Version(1)));
    let (grown, appended) =
        tokio::join!(log.store().tail(Version(1)), async { direct.append(first, &entry(2)).await.unwrap() });
    assert_eq!((grown, appended.version), (Ok(Version(2)), Version(2)));
    // A pooler that was restarted, and connections that it lost.
    transaction.restart();
    let third = loop {
        match log.append(appended, &entry(3)).await {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            Ok(head) => break head,
        }
    };
    assert_eq!(third.version, Version(3));
    // The address may say it.
    let said = open(&format!("{url}?pool=transaction")).await.unwrap();
    assert!(said.store().subscribe().await.unwrap().is_none());
    assert_eq!(said.read(Head::EMPTY).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_pooler_that_cannot_work_is_refused_with_the_reason() {
    let postgres = Postgres::start();
    let statement = PgBouncer::start(&postgres, "statement");
    let refused = open(&postgres.url_at(statement.port())).await.err().unwrap();
    assert!(matches!(refused, StoreError::Unfit { .. }), "{refused}");
    assert!(refused.to_string().contains("set pool_mode to transaction"), "{refused}");

    let sql = "ALTER ROLE postgres SET default_transaction_isolation = 'serializable'";
    connect(&postgres).await.batch_execute(sql).await.unwrap();
    let transaction = PgBouncer::start(&postgres, "transaction");
    let refused = open(&postgres.url_at(transaction.port())).await.err().unwrap();
    assert!(refused.to_string().contains("set default_transaction_isolation"), "{refused}");
    // Without a pooler, each session sets it.
    assert!(open(&postgres.url()).await.is_ok());
}
