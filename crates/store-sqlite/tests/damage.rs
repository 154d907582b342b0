//! What is not a store of ours, or is one no longer, is never taken for an empty one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod site;

use std::fs;
use std::sync::Arc;

use laneway_core::{BlobId, Timestamp};
use laneway_store::{Batch, BatchId, Entry, ErrorKind, Head, Log, StoreError};
use laneway_store_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::site::Directory;

/// What opening says after `damage` was done to a store that has something in it.
fn refusal(damage: impl Fn(&Directory)) -> String {
    let dir = Directory::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let log = Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
        let mut head = Head::EMPTY;
        for number in 1..=100 {
            let batch = Batch { id: BatchId(number), at: Timestamp(0), events: vec![] };
            head = log.append(head, &Entry::of(batch)).await.unwrap();
        }
    });
    damage(&dir);
    let error = SqliteStore::open(dir.path()).err().expect("a damaged store is refused");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let text = error.to_string();
    let path = dir.path().display().to_string();
    assert!(text.starts_with(&format!("store {path} cannot be read: ")), "{text}");
    text.replace(&path, "DIR")
}

fn execute(dir: &Directory, sql: &str) {
    Connection::open(dir.database()).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let empty = refusal(|dir| fs::write(dir.database(), "").unwrap());
    assert_eq!(empty, "store DIR cannot be read: DIR/laneway.db is empty");
    let text = refusal(|dir| fs::write(dir.database(), "my notes ".repeat(1000)).unwrap());
    assert_eq!(text, "store DIR cannot be read: file is not a database");
    refusal(|dir| {
        let bytes = fs::read(dir.database()).unwrap();
        fs::write(dir.database(), &bytes[..bytes.len() / 2]).unwrap();
    });
    refusal(|dir| {
        let mut bytes = fs::read(dir.database()).unwrap();
        bytes[4096 * 2..].fill(0xA5);
        fs::write(dir.database(), bytes).unwrap();
    });
}

#[test]
fn a_database_of_another_program_or_a_newer_version_is_refused() {
    let other = refusal(|dir| execute(dir, "PRAGMA application_id = 7"));
    assert_eq!(other, "store DIR cannot be read: laneway.db is a SQLite database, but not one of Laneway's");
    let newer = refusal(|dir| execute(dir, "PRAGMA user_version = 3"));
    assert_eq!(
        newer,
        "store DIR cannot be read: it was written in format 3 by a newer version of Laneway, and this one reads \
         formats up to 2"
    );
}

#[test]
fn a_log_without_its_beginning_or_its_database_is_refused() {
    let gap = refusal(|dir| execute(dir, "DELETE FROM log WHERE version < 5"));
    assert_eq!(
        gap,
        "store DIR cannot be read: its log begins at version 5 and its snapshot holds only what came before 1"
    );
    let orphan = refusal(|dir| fs::rename(dir.database(), dir.path().join("laneway.db-wal")).unwrap());
    assert_eq!(orphan, "store DIR cannot be read: DIR/laneway.db-wal is there and DIR/laneway.db is missing");
}

/// A copy of a store of 20 batches as a crash leaves it, all of it in the write-ahead log.
async fn crashed() -> Directory {
    let (dir, copy) = (Directory::new(), Directory::new());
    let log = Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
    let mut head = Head::EMPTY;
    for number in 1..=20 {
        let batch = Batch { id: BatchId(number), at: Timestamp(0), events: vec![] };
        head = log.append(head, &Entry::of(batch)).await.unwrap();
    }
    fs::create_dir(copy.path()).unwrap();
    for name in ["laneway.db", "laneway.db-wal"] {
        fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// The same with another write-ahead log.
fn with_wal(crashed: &Directory, wal: &[u8]) -> Directory {
    let copy = Directory::new();
    fs::create_dir(copy.path()).unwrap();
    fs::copy(crashed.database(), copy.database()).unwrap();
    fs::write(copy.path().join("laneway.db-wal"), wal).unwrap();
    copy
}

#[tokio::test]
async fn a_wrong_byte_before_the_last_of_a_write_ahead_log_is_refused_and_not_taken_for_its_end() {
    let crashed = crashed().await;
    let whole = fs::read(crashed.path().join("laneway.db-wal")).unwrap();
    let frame = 24 + 4096;
    // Where the last two transactions begin: damage there may be a power cut's.
    let commits: Vec<usize> =
        (32..whole.len()).step_by(frame).filter(|at| whole[at + 4..at + 8] != [0; 4]).collect();
    assert!(commits.len() >= 20, "{commits:?}");
    let surely = commits[commits.len() - 3] + frame;
    let mut refused = 0;
    for at in (0..whole.len()).step_by(397).chain(0..56) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let copy = with_wal(&crashed, &bytes);
        match SqliteStore::open(copy.path()) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                let text = error.to_string();
                let begin = if at < 32 { 0 } else { (at - 32) / frame * frame + 32 };
                let words = format!("laneway.db-wal is damaged at byte {begin}, ");
                assert!(text.contains(&words), "{at}: {text}");
                refused += 1;
            }
            Ok(store) => {
                let (head, _) = Log::new(Arc::new(store)).restore(0).await.unwrap();
                assert!(at >= surely && head.version.0 >= 18, "byte {at}: version {}", head.version);
            }
        }
    }
    assert!(refused > 200, "{refused}");
}

#[tokio::test]
async fn a_write_ahead_log_that_a_power_cut_left_in_part_is_read_up_to_there() {
    let crashed = crashed().await;
    let whole = fs::read(crashed.path().join("laneway.db-wal")).unwrap();
    for length in (0..whole.len()).step_by(997) {
        SqliteStore::open(with_wal(&crashed, &whole[..length]).path()).unwrap();
    }
    // The last of it came in another order than it was written.
    let mut bytes = whole.clone();
    let torn = bytes.len() - 2000;
    bytes[torn..].fill(0);
    let copy = with_wal(&crashed, &bytes);
    let (head, _) = Log::new(Arc::new(SqliteStore::open(copy.path()).unwrap())).restore(0).await.unwrap();
    assert_eq!(head.version.0, 19);
}

#[tokio::test]
async fn a_gap_in_the_log_is_noticed_by_its_reader() {
    let dir = Directory::new();
    let log = Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
    let mut head = Head::EMPTY;
    for number in 1..=5 {
        let batch = Batch { id: BatchId(number), at: Timestamp(0), events: vec![] };
        head = log.append(head, &Entry::of(batch)).await.unwrap();
    }
    drop(log);
    execute(&dir, "DELETE FROM log WHERE version = 3");
    let log = Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
    let error = log.restore(0).await.err().unwrap();
    let text = error.to_string().replace(&dir.path().display().to_string(), "DIR");
    assert_eq!(
        text,
        "the batch of version 3 in store DIR cannot be read: it does not follow the batch before it"
    );
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

/// A megabyte that can be told apart from the next one.
fn payload(number: u128) -> (BlobId, bytes::Bytes) {
    let id = BlobId(std::num::NonZeroU128::new(number + 1).unwrap());
    (id, vec![number as u8; 1024 * 1024].into())
}

#[tokio::test]
async fn the_file_does_not_grow_for_ever() -> Result<(), StoreError> {
    let dir = Directory::new();
    let log = Log::new(Arc::new(SqliteStore::open(dir.path())?));
    let mut head = Head::EMPTY;
    let state = laneway_core::Scheduler::new(0).snapshot();
    let size = || fs::metadata(dir.database()).unwrap().len() / (1024 * 1024);
    let mut largest = 0;
    for number in 0..40 {
        let batch = Batch { id: BatchId(number + 1), at: Timestamp(0), events: vec![] };
        let dropped = number.checked_sub(3).map(|old| payload(old).0).into_iter().collect();
        let entry = Entry { payloads: vec![payload(number)], dropped, ..Entry::of(batch) };
        head = log.append(head, &entry).await?;
        log.save(head, &state).await?;
        log.store().trim(head.version).await?;
        largest = largest.max(size());
    }
    assert!(largest < 12, "three megabytes of payloads took {largest} MB");
    let batch = Batch { id: BatchId(99), at: Timestamp(0), events: vec![] };
    let many = Entry { payloads: (100..130).map(payload).collect(), ..Entry::of(batch) };
    log.append(head, &many).await?;
    log.store().remove_blobs((0..130).map(|number| payload(number).0).collect()).await?;
    drop(log);
    assert!(size() < 12, "after thirty megabytes came and went {} are left", size());
    Ok(())
}
