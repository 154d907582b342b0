//! A directory for a store, as tests need it.

use std::path::PathBuf;
use std::sync::Arc;

use laneway_store::conformance::Site;
use laneway_store::{Answer, Record, Store};
use laneway_store_sqlite::{Options, SqliteStore};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use tempfile::TempDir;

pub(crate) struct Directory(TempDir);

impl Directory {
    pub(crate) fn new() -> Directory {
        Directory(TempDir::new().unwrap())
    }

    /// Not there until it is opened.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("data")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("laneway.db")
    }
}

fn as_dyn(store: SqliteStore) -> Arc<dyn Store> {
    Arc::new(store)
}

impl Site for Directory {
    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        Box::pin(async { SqliteStore::open(self.path()).map(as_dyn) })
    }

    fn open_small(&self) -> Option<Answer<'_, Arc<dyn Store>>> {
        let options = Options { bytes_max: Some(512 * 1024) };
        Some(Box::pin(async move { SqliteStore::open_with(self.path(), &options).map(as_dyn) }))
    }

    fn tamper(&self, record: Record, change: &(dyn Fn(&mut Vec<u8>) + Sync)) -> bool {
        let number = |number: u64| Value::Integer(number as i64);
        let id = |id: u128| Value::Blob(id.to_be_bytes().to_vec());
        let (table, column, key, value) = match record {
            Record::Batch(version) => ("log", "record", "version", number(version.0)),
            Record::Snapshot(version) => ("snapshot_part", "bytes", "version", number(version.0)),
            Record::Payload(blob) => ("blob", "record", "id", id(blob.0.get())),
            Record::Finished(task) => ("finished", "record", "task", id(task.0)),
            Record::Result(task) => ("result", "record", "task", id(task.0)),
            other => panic!("there is no table for {other}"),
        };
        let db = Connection::open(self.database()).unwrap();
        let is_short = |task: &Value| {
            let sql = "SELECT count(*) FROM finished WHERE task = ? AND result IS NOT NULL";
            db.query_row(sql, [task], |row| row.get::<_, bool>(0)).unwrap()
        };
        let (table, column) = match record {
            Record::Result(_) if is_short(&value) => ("finished", "result"),
            _ => (table, column),
        };
        let select = format!("SELECT {column} FROM {table} WHERE {key} = ?");
        let found = db.query_row(&select, [&value], |row| row.get::<_, Vec<u8>>(0)).optional().unwrap();
        let Some(mut bytes) = found else { return false };
        change(&mut bytes);
        let update = format!("UPDATE {table} SET {column} = ? WHERE {key} = ?");
        db.execute(&update, rusqlite::params![bytes, value]).unwrap() == 1
    }
}
