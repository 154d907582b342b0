//! The store does what every store must do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod site;

use std::sync::Arc;

use laneway_store::conformance::{Site, run};
use laneway_store::{Answer, Record, Store};
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
             DROP TABLE result; CREATE TABLE result (task BLOB NOT NULL UNIQUE, record BLOB NOT NULL) STRICT;",
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
