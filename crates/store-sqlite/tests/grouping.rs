//! Appends that come together are written together, each still on its own merits.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::sync::Arc;

use laneway_core::Timestamp;
use laneway_store::{Batch, BatchId, Entry, ErrorKind, Head, Log};
use laneway_store_sqlite::SqliteStore;

fn entry(number: u128) -> Entry {
    Entry::of(Batch { id: BatchId(number), at: Timestamp(0), events: vec![] })
}

#[tokio::test]
async fn a_pipeline_of_appends_is_written_in_order_and_a_stale_one_among_them_is_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    let log = Log::new(Arc::new(SqliteStore::open(dir.path().join("data")).unwrap()));
    let mut head = Head::EMPTY;
    for round in 0..20 {
        // No more than the store takes at once: beyond that their order would be anybody's guess.
        let mut answers = Vec::new();
        for number in round * 25 + 1..=round * 25 + 25 {
            let stale = number % 7 == 0;
            let expected = if stale { Head::EMPTY } else { head };
            let append = log.seal(expected, &entry(number)).unwrap();
            head = if stale { head } else { append.outcome() };
            let store = Arc::clone(log.store());
            answers.push((stale, tokio::spawn(async move { store.append(append).await })));
        }
        for (stale, answer) in answers {
            let refused = answer.await.unwrap().err().map(|error| error.kind());
            assert_eq!(refused, stale.then_some(ErrorKind::Conflict));
        }
    }
    assert_eq!(log.store().head().await, Ok(head));
    assert_eq!(log.read(Head::EMPTY).await.unwrap().len() as u64, head.version.0);
}
