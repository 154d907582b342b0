//! Append, read, tail.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{Site, append_all, batch, open, read_all};
use crate::{BatchId, ErrorKind, Head, READ_BATCHES_MAX, StoreError, Version};

pub(super) async fn batches_come_back_in_order(site: &impl Site) {
    let log = open(site).await;
    assert_eq!(log.store().head().await, Ok(Head::EMPTY));
    assert_eq!(log.read(Head::EMPTY).await, Ok(vec![]));
    let head = append_all(&log, Head::EMPTY, 1..=5).await;
    assert_eq!(head, Head { version: Version(5), batch: BatchId(5) });
    assert_eq!(log.store().head().await, Ok(head));
    let expected: Vec<_> = (1..=5).map(|number| batch(number).batch).collect();
    assert_eq!(read_all(&log, Head::EMPTY).await, expected);
    let third = Head { version: Version(3), batch: BatchId(3) };
    assert_eq!(read_all(&log, third).await, expected[3..]);
    assert_eq!(log.read(head).await, Ok(vec![]));
}

pub(super) async fn a_stale_append_changes_nothing(site: &impl Site) {
    let log = open(site).await;
    let head = append_all(&log, Head::EMPTY, 1..=3).await;
    let other = Head { batch: BatchId(99), ..head };
    let ahead = head.then(BatchId(4));
    for stale in [Head::EMPTY, other, ahead] {
        let refused = log.append(stale, &batch(7)).await;
        assert_eq!(refused, Err(StoreError::Conflict { expected: stale, current: head }));
    }
    assert_eq!(read_all(&log, Head::EMPTY).await.len(), 3);
    // A read after a batch that the log does not hold is a conflict too.
    append_all(&log, head, [4]).await;
    assert_eq!(log.read(other).await.map_err(|error| error.kind()), Err(ErrorKind::Conflict));
}

pub(super) async fn a_lost_reply_never_writes_twice(site: &impl Site) {
    let log = open(site).await;
    let head = append_all(&log, Head::EMPTY, [1]).await;
    let entry = log.seal(head, &batch(2)).expect("it can be encoded");
    let done = log.store().append(entry.clone()).await.expect("appended");
    assert_eq!(log.store().append(entry.clone()).await, Ok(done), "the same batch once more is a success");
    let later = append_all(&log, done, [3]).await;
    assert_eq!(log.store().append(entry.clone()).await, Ok(done), "also when the log has gone on");
    assert_eq!(log.store().head().await, Ok(later));
    let ids: Vec<_> = read_all(&log, Head::EMPTY).await.iter().map(|batch| batch.id).collect();
    assert_eq!(ids, [BatchId(1), BatchId(2), BatchId(3)]);
    // A batch that never got there, whose place another has taken, is not mistaken for it.
    let lost = log.seal(done, &batch(9)).expect("it can be encoded");
    let answer = log.store().append(lost).await;
    assert_eq!(answer, Err(StoreError::Conflict { expected: done, current: later }));
}

pub(super) async fn the_tail_wakes_its_waiters(site: &impl Site) {
    let log = open(site).await;
    let head = append_all(&log, Head::EMPTY, 1..=2).await;
    assert_eq!(log.store().tail(Version(0)).await, Ok(Version(2)), "there is more already");
    let mut early = pin!(log.store().tail(head.version));
    let mut also = pin!(log.store().tail(head.version));
    assert!(poll_once(early.as_mut()).is_pending(), "nothing more yet");
    assert!(poll_once(also.as_mut()).is_pending());
    append_all(&log, head, [3]).await;
    assert_eq!(early.await, Ok(Version(3)));
    assert_eq!(also.await, Ok(Version(3)));
}

fn poll_once<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) async fn exactly_one_of_many_wins_each_version(site: &impl Site) {
    let log = open(site).await;
    let mut head = Head::EMPTY;
    for round in 0..20_u128 {
        let appends: Vec<_> = (1..=8)
            .map(|writer| log.seal(head, &batch(round * 8 + writer)).expect("it can be encoded"))
            .map(|append| {
                let store = Arc::clone(log.store());
                std::thread::spawn(move || block_on(store.append(append)))
            })
            .collect();
        let answers: Vec<_> = appends.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        let winners: Vec<_> = answers.iter().flatten().copied().collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        assert!(
            answers
                .iter()
                .flat_map(|answer| answer.as_ref().err())
                .all(|error| { *error == StoreError::Conflict { expected: head, current: winners[0] } })
        );
        head = winners[0];
    }
    assert_eq!(read_all(&log, Head::EMPTY).await.len(), 20);
}

/// Waits for a future on a thread of its own, without any runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

pub(super) async fn long_logs_are_read_in_pieces(site: &impl Site) {
    let log = open(site).await;
    let count = READ_BATCHES_MAX as u128 + 10;
    append_all(&log, Head::EMPTY, 1..=count).await;
    let first = log.store().read(Version(0)).await.expect("the log can be read");
    assert!(!first.is_empty() && first.len() <= READ_BATCHES_MAX);
    let ids: Vec<_> = read_all(&log, Head::EMPTY).await.iter().map(|batch| batch.id.0).collect();
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
}

pub(super) async fn a_version_that_never_was_is_a_conflict(site: &impl Site) {
    let log = open(site).await;
    append_all(&log, Head::EMPTY, 1..=2).await;
    let kind = |error: StoreError| error.kind();
    assert_eq!(log.store().read(Version(3)).await.map_err(kind), Err(ErrorKind::Conflict));
    assert_eq!(log.store().tail(Version(3)).await.map_err(kind), Err(ErrorKind::Conflict));
}
