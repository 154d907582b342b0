//! The store does what every store must do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod site;

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{End, Name, Source, TaskId, Timestamp};
use laneway_store::conformance::{Site, run};
use laneway_store::{Answer, Batch, BatchId, Entry, Finished, Head, Log, Record, Store};
use laneway_store_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::site::Directory;

#[tokio::test]
async fn sqlite_conforms() {
    run(Directory::new).await;
}

/// A directory whose tables were made by an earlier program.
struct Older(Directory);

impl Older {
    fn new() -> Older {
        let dir = Directory::new();
        drop(SqliteStore::open(dir.path()).unwrap());
        let db = Connection::open(dir.database()).unwrap();
        db.execute_batch(
            "DROP TABLE blob; CREATE TABLE blob (id BLOB NOT NULL UNIQUE, record BLOB NOT NULL) STRICT;
             DROP TABLE result; CREATE TABLE result (task BLOB NOT NULL UNIQUE, record BLOB NOT NULL) STRICT;
             DROP TABLE finished; CREATE TABLE finished (
                 version INTEGER NOT NULL, position INTEGER NOT NULL, task BLOB NOT NULL UNIQUE,
                 ended INTEGER NOT NULL, record BLOB NOT NULL, labels TEXT NOT NULL, PRIMARY KEY (version, position)
             ) STRICT, WITHOUT ROWID;
             PRAGMA user_version = 1;",
        )
        .unwrap();
        Older(dir)
    }
}

impl Site for Older {
    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        self.0.open()
    }

    fn open_small(&self) -> Option<Answer<'_, Arc<dyn Store>>> {
        self.0.open_small()
    }

    fn tamper(&self, record: Record, change: &(dyn Fn(&mut Vec<u8>) + Sync)) -> bool {
        self.0.tamper(record, change)
    }
}

#[tokio::test]
async fn tables_that_an_earlier_program_made_conform_too() {
    run(Older::new).await;
}

/// A task that ended with this batch.
fn finished(task: u128) -> Finished {
    Finished {
        task: TaskId(task),
        kind: Name::new("work").unwrap(),
        lanes: Vec::new(),
        source: Source::User,
        priority: 2,
        group: None,
        parent: None,
        worker: None,
        submitted: Timestamp(1),
        started: Some(Timestamp(2)),
        ended: Timestamp(3),
        attempts: 1,
        end: End::Completed,
        tries: Vec::new(),
        caller: None,
        trace: None,
        label: None,
        payload: None,
    }
}

/// Tasks 1 to 3 with results of these lengths, each told apart by its first byte.
fn entry(batch: u128, lengths: [usize; 3]) -> Entry {
    let mut entry = Entry::of(Batch { id: BatchId(batch), at: Timestamp(3), events: vec![] });
    let result = |length: usize| Bytes::from(vec![batch as u8; length]);
    entry.finished =
        (1..).zip(lengths).map(|(task, length)| (finished(task), Some(result(length)))).collect();
    entry
}

#[tokio::test]
async fn results_that_an_earlier_program_kept_are_read_and_replaced_whatever_their_length() {
    let dir = Directory::new();
    let open = || Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
    let (older, newer) = ([3, 248, 5000], [5000, 249, 3]);
    let head = open().append(Head::EMPTY, &entry(1, older)).await.unwrap();
    // As the first layout had it: all results apart.
    let db = Connection::open(dir.database()).unwrap();
    db.execute_batch(
        "INSERT INTO result SELECT task, result FROM finished WHERE result IS NOT NULL;
         ALTER TABLE finished DROP COLUMN result; PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(db);
    let results = async |log: &Log| {
        let mut all = Vec::new();
        for task in 1..=3 {
            all.push(log.finished(TaskId(task)).await.unwrap().unwrap().1.unwrap());
        }
        all
    };
    let kept =
        |batch: u8, lengths: [usize; 3]| lengths.map(|length| Bytes::from(vec![batch; length])).to_vec();
    let log = open();
    assert_eq!(results(&log).await, kept(1, older));
    let head = log.append(head, &entry(2, newer)).await.unwrap();
    assert_eq!(results(&log).await, kept(2, newer));
    log.append(head, &entry(3, older)).await.unwrap();
    assert_eq!(results(&log).await, kept(3, older));
    drop(log);
    let db = Connection::open(dir.database()).unwrap();
    let apart: Vec<usize> = (db.prepare("SELECT length(record) FROM result").unwrap())
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(apart.len(), 1, "only the long one lies apart: {apart:?}");
}
