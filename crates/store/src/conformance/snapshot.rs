//! Snapshots, trimming, and opening again.

use bytes::Bytes;
use laneway_core::Scheduler;

use super::{Site, append_all, batch, blob_id, finished, noise, open, read_all, submit};
use crate::{BatchId, Entry, ErrorKind, Head, StoreError, StoredSnapshot, Version};

pub(super) async fn a_snapshot_and_the_rest_of_the_log_give_the_state(site: &impl Site) {
    let log = open(site).await;
    let mut scheduler = Scheduler::new(7);
    assert_eq!(log.load().await, Ok(None));
    let head = submit(&log, &mut scheduler, Head::EMPTY, 1..10).await;
    log.save(head, &scheduler.snapshot()).await.expect("saved");
    let head = submit(&log, &mut scheduler, head, 10..20).await;
    log.store().trim(Version(9)).await.expect("trimmed");
    let (at, restored) = log.restore(7).await.expect("the log leads to a state");
    assert_eq!(at, head);
    assert_eq!(restored.snapshot(), scheduler.snapshot());
}

pub(super) async fn only_what_the_snapshot_holds_is_trimmed(site: &impl Site) {
    let log = open(site).await;
    let head = append_all(&log, Head::EMPTY, 1..=10).await;
    log.store().trim(Version(10)).await.expect("nothing to do");
    assert_eq!(read_all(&log, Head::EMPTY).await.len(), 10, "there is no snapshot");
    assert_eq!(log.begin().await, Ok(Head::EMPTY));
    let seventh = Head { version: Version(7), batch: BatchId(7) };
    log.save(seventh, &Scheduler::new(0).snapshot()).await.expect("saved");
    log.store().trim(Version(4)).await.expect("trimmed");
    assert_eq!(log.store().read(Version(4)).await.map(|batches| batches.len()), Ok(6));
    let gone = StoreError::Trimmed { asked: Version(3), oldest: Version(5) };
    assert_eq!(log.store().read(Version(3)).await, Err(gone));
    assert_eq!(log.begin().await, Ok(Head { version: Version(4), batch: BatchId(4) }));
    log.store().trim(Version(10)).await.expect("trimmed");
    assert_eq!(
        log.store().read(Version(7)).await.map(|batches| batches.len()),
        Ok(3),
        "not beyond the snapshot"
    );
    log.save(head, &Scheduler::new(0).snapshot()).await.expect("saved");
    log.store().trim(Version(10)).await.expect("trimmed");
    assert_eq!(log.store().head().await, Ok(head), "an empty log still knows where it ends");
    assert_eq!(log.read(head).await, Ok(vec![]));
    assert_eq!(log.begin().await, Ok(head));
    let oldest = Version(11);
    assert_eq!(log.store().read(Version(9)).await, Err(StoreError::Trimmed { asked: Version(9), oldest }));
    let head = append_all(&log, head, [11]).await;
    assert_eq!(head.version, Version(11));
}

pub(super) async fn an_older_snapshot_never_replaces_a_newer_one(site: &impl Site) {
    let log = open(site).await;
    let head = append_all(&log, Head::EMPTY, 1..=5).await;
    let save = |head: Head, text: &'static str| {
        log.store().save_snapshot(StoredSnapshot { head, record: Bytes::from_static(text.as_bytes()) })
    };
    let fourth = Head { version: Version(4), batch: BatchId(4) };
    save(fourth, "four").await.expect("saved");
    let third = Head { version: Version(3), batch: BatchId(3) };
    save(third, "three").await.expect("ignored");
    save(fourth, "four again").await.expect("ignored");
    let record = "four".into();
    assert_eq!(log.store().snapshot().await, Ok(Some(StoredSnapshot { head: fourth, record })));
    for never_was in [head.then(BatchId(6)), Head { batch: BatchId(77), ..head }] {
        let refused = save(never_was, "never").await;
        assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::Conflict));
    }
    save(head, "five").await.expect("saved");
    assert_eq!(log.store().snapshot().await.map(|kept| kept.map(|kept| kept.head)), Ok(Some(head)));
}

pub(super) async fn a_large_snapshot_comes_back_whole(site: &impl Site) {
    let log = open(site).await;
    let mut head = Head::EMPTY;
    for (number, len) in [(1, 5_000_000), (2, 3_145_728), (3, 10), (4, 0)] {
        head = append_all(&log, head, [number]).await;
        let snapshot = StoredSnapshot { head, record: noise(len) };
        log.store().save_snapshot(snapshot.clone()).await.expect("saved");
        assert!(log.store().snapshot().await == Ok(Some(snapshot)), "snapshot {number} is another one");
    }
}

pub(super) async fn everything_is_there_after_reopening(site: &impl Site) {
    if !site.lasts() {
        return;
    }
    let log = open(site).await;
    let entry = Entry {
        payloads: vec![(blob_id(1), "payload".into())],
        finished: vec![(finished(1, 5), Some("result".into()))],
        ..batch(1)
    };
    let head = log.append(Head::EMPTY, &entry).await.expect("appended");
    log.save(head, &Scheduler::new(0).snapshot()).await.expect("saved");
    log.store().trim(head.version).await.expect("trimmed");
    drop(log);
    let log = open(site).await;
    assert_eq!(log.store().head().await, Ok(head), "also when nothing but a snapshot is left");
    assert_eq!(log.load().await, Ok(Some((head, Scheduler::new(0).snapshot()))));
    let head = append_all(&log, head, 2..=4).await;
    drop(log);
    let log = open(site).await;
    assert_eq!(log.store().head().await, Ok(head));
    assert_eq!(log.store().read(Version(1)).await.map(|batches| batches.len()), Ok(3));
    assert_eq!(log.payload(blob_id(1)).await, Ok(Some("payload".into())));
    assert_eq!(log.finished(finished(1, 5).task).await, Ok(Some((finished(1, 5), Some("result".into())))));
    append_all(&log, head, [5]).await;
}
