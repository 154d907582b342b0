//! What a store must never take for "nothing there": changed bytes, newer formats, a full disk.

use laneway_core::{Scheduler, TaskId};

use super::{Site, append_all, batch, blob_id, finished, noise, open, read_all};
use crate::testing::in_format;
use crate::{
    BATCH_FORMAT, BatchId, Damage, Entry, ErrorKind, FINISHED_FORMAT, Finished, Head, HistoryQuery, Log,
    OLDEST_FORMAT, PAYLOAD_FORMAT, RESULT_FORMAT, Record, SNAPSHOT_FORMAT, StoreError, Version,
};

/// One record of each sort, with the newest format of each.
fn records() -> [(Record, u8); 5] {
    [
        (Record::Batch(Version(2)), BATCH_FORMAT),
        (Record::Snapshot(Version(1)), SNAPSHOT_FORMAT),
        (Record::Payload(blob_id(5)), PAYLOAD_FORMAT),
        (Record::Finished(TaskId(6)), FINISHED_FORMAT),
        (Record::Result(TaskId(6)), RESULT_FORMAT),
    ]
}

async fn fill(site: &impl Site) {
    let log = open(site).await;
    let head = append_all(&log, Head::EMPTY, [1]).await;
    let finished = Finished { payload: Some("work".into()), ..finished(6, 7) };
    let entry = Entry {
        payloads: vec![(blob_id(5), "payload".into())],
        finished: vec![(finished, Some("result".into()))],
        ..batch(2)
    };
    log.append(head, &entry).await.expect("appended");
    log.save(head, &Scheduler::new(0).snapshot()).await.expect("saved");
}

/// What opening the store and reading a record says of it.
async fn look(site: &impl Site, record: Record) -> Result<(), StoreError> {
    let log = Log::new(site.open().await?);
    match record {
        Record::Batch(_) => log.read(Head { version: Version(1), batch: BatchId(1) }).await.map(drop),
        Record::Snapshot(_) => log.load().await.map(drop),
        Record::Payload(id) => log.payload(id).await.map(drop),
        Record::Finished(task) => log
            .history(HistoryQuery { max: 1, ..HistoryQuery::default() })
            .await
            .and(log.finished(task).await)
            .map(drop),
        Record::Result(task) => log.finished(task).await.map(drop),
    }
}

pub(super) async fn every_changed_byte_is_noticed(site: &impl Site) {
    fill(site).await;
    for (record, _) in records() {
        assert_eq!(look(site, record).await, Ok(()));
        let len = std::sync::atomic::AtomicUsize::new(0);
        let measure = |bytes: &mut Vec<u8>| len.store(bytes.len(), std::sync::atomic::Ordering::Relaxed);
        assert!(site.tamper(record, &measure), "{record} is there");
        let len = len.into_inner();
        // Every byte of a short record; of a long one the header and some of the rest.
        for at in (0..len).filter(|at| *at < 24 || at % (1 + len / 16) == 0) {
            let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 0x10;
            site.tamper(record, &flip);
            check_named(record, &look(site, record).await);
            site.tamper(record, &flip);
        }
        let cut = std::sync::Mutex::new(Vec::new());
        let shorten = |bytes: &mut Vec<u8>| *cut.lock().expect("no panic") = bytes.split_off(3);
        site.tamper(record, &shorten);
        check_named(record, &look(site, record).await);
        site.tamper(record, &|bytes: &mut Vec<u8>| bytes.extend_from_slice(&cut.lock().expect("no panic")));
        assert_eq!(look(site, record).await, Ok(()), "{record} is whole again");
    }
}

fn check_named(record: Record, said: &Result<(), StoreError>) {
    let Err(error @ StoreError::Corrupt { record: Some(named), .. }) = said else {
        panic!("a changed byte in {record} gave {said:?}");
    };
    assert_eq!(*named, record);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

pub(super) async fn a_newer_format_is_refused(site: &impl Site) {
    fill(site).await;
    for (record, known) in records() {
        let rewrite =
            |format| site.tamper(record, &|bytes| *bytes = in_format(record, format, bytes).to_vec());
        rewrite(known + 1);
        let Err(StoreError::Corrupt { record: Some(named), damage, .. }) = look(site, record).await else {
            panic!("a newer format of {record} was read");
        };
        let refused = Damage::UnknownFormat { found: u32::from(known) + 1, known: u32::from(known) };
        assert_eq!((named, damage), (record, refused));
        rewrite(known);
        assert_eq!(look(site, record).await, Ok(()));
    }
}

pub(super) async fn an_older_format_is_refused_with_what_to_do(site: &impl Site) {
    fill(site).await;
    let of_state = |(record, _): &(Record, u8)| matches!(record, Record::Batch(_) | Record::Snapshot(_));
    for (record, known) in records().into_iter().filter(of_state) {
        let rewrite =
            |format| site.tamper(record, &|bytes| *bytes = in_format(record, format, bytes).to_vec());
        rewrite(OLDEST_FORMAT - 1);
        let refused = look(site, record).await.expect_err("an older format was read");
        let text = refused.to_string();
        assert!(text.contains("an older version of Laneway wrote it in format 2"), "{text}");
        assert!(text.contains("let the older version finish its tasks"), "{text}");
        rewrite(known);
        assert_eq!(look(site, record).await, Ok(()));
    }
}

pub(super) async fn a_full_store_says_so_and_recovers(site: &impl Site) {
    let Some(store) = site.open_small() else { return };
    let log = Log::new(store.await.expect("the store opens"));
    let mut head = Head::EMPTY;
    let payload = noise(64 * 1024);
    let entry = |number: u128| Entry { payloads: vec![(blob_id(number), payload.clone())], ..batch(number) };
    let mut number = 1;
    let error = loop {
        assert!(number < 1000, "a small store never got full");
        match log.append(head, &entry(number)).await {
            Ok(next) => head = next,
            Err(error) => break error,
        }
        number += 1;
    };
    assert!(number > 1, "there is room for something");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // What was there can be read, what did not fit left no trace, and room makes it work again.
    assert_eq!(log.store().head().await, Ok(head));
    assert_eq!(read_all(&log, Head::EMPTY).await.len() as u128, number - 1);
    assert_eq!(log.payload(blob_id(number)).await, Ok(None));
    assert_eq!(log.payload(blob_id(1)).await, Ok(Some(payload.clone())));
    log.store().remove_blobs((1..number).map(blob_id).collect()).await.expect("removing needs no room");
    log.append(head, &entry(number)).await.expect("there is room again");
}
