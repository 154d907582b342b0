//! The store that fails on demand, and what a caller can do about each fault.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use laneway_core::Timestamp;
use laneway_store::testing::{Fault, FaultyStore};
use laneway_store::{Batch, BatchId, Entry, ErrorKind, Head, Log, MemoryStore, StoreError, Version};

fn faulty() -> (Arc<FaultyStore>, Log) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    (Arc::clone(&store), Log::new(store))
}

fn entry(number: u128) -> Entry {
    Entry::of(Batch { id: BatchId(number), at: Timestamp(0), events: vec![] })
}

fn kind<T>(answer: Result<T, StoreError>) -> Result<T, ErrorKind> {
    answer.map_err(|error| error.kind())
}

#[tokio::test]
async fn an_append_of_unknown_outcome_is_repeated_until_it_is_known() {
    for fault in [Fault::NotWritten, Fault::ReplyLost, Fault::DiskFull] {
        let (store, log) = faulty();
        store.plan(fault);
        assert_eq!(kind(log.append(Head::EMPTY, &entry(1)).await), Err(ErrorKind::Unavailable));
        let written = log.store().head().await.unwrap().version == Version(1);
        assert_eq!(written, fault == Fault::ReplyLost);
        let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
        assert_eq!(head.version, Version(1));
        assert_eq!(log.read(Head::EMPTY).await.unwrap().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn who_is_overtaken_finds_what_it_missed() {
    let (store, log) = faulty();
    store.plan(Fault::Overtaken);
    let Err(StoreError::Conflict { expected: Head::EMPTY, current }) =
        log.append(Head::EMPTY, &entry(1)).await
    else {
        panic!("the append was overtaken");
    };
    let (missed, _) = log.read(Head::EMPTY).await.unwrap()[0];
    assert_eq!(missed, current);
    log.append(missed, &entry(1)).await.unwrap();
}

#[tokio::test]
async fn a_slow_append_waits_until_it_may_go_on() {
    let (store, log) = faulty();
    store.plan(Fault::Slow);
    let entry = entry(1);
    let mut append = pin!(log.append(Head::EMPTY, &entry));
    let first_look = poll_fn(|cx| Poll::Ready(append.as_mut().poll(cx))).await;
    assert!(first_look.is_pending());
    assert_eq!(log.store().head().await, Ok(Head::EMPTY));
    store.go_on();
    assert_eq!(append.await.unwrap().version, Version(1));
}

#[tokio::test]
async fn a_store_that_went_away_fails_everywhere_and_comes_back() {
    let (store, log) = faulty();
    let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    store.go_away();
    assert_eq!(kind(log.append(head, &entry(2)).await), Err(ErrorKind::Unavailable));
    assert_eq!(kind(log.read(Head::EMPTY).await), Err(ErrorKind::Unavailable));
    assert_eq!(kind(log.restore(0).await.map(|_| ())), Err(ErrorKind::Unavailable));
    store.come_back();
    assert_eq!(log.append(head, &entry(2)).await.unwrap().version, Version(2));
}
