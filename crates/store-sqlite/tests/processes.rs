//! One process at a time, and the next one when that is gone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod child;
mod site;

use std::io::{BufRead, BufReader};

use laneway_store::{ErrorKind, StoreError};
use laneway_store_sqlite::SqliteStore;

use crate::site::Directory;

#[test]
#[ignore = "run by the other tests, as another process"]
fn child() {
    child::be();
}

#[test]
fn a_second_process_is_told_who_has_the_store_until_that_is_killed() {
    let dir = Directory::new();
    let mut holder = child::child(&[], "hold", &dir.path()).spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "holding"), "the child opened the store");
    let refused = SqliteStore::open(dir.path()).err().unwrap();
    let store = dir.path().display().to_string();
    let pid = holder.id();
    assert_eq!(refused, StoreError::InUse { store: store.as_str().into(), pid: Some(pid) });
    assert_eq!(refused.to_string(), format!("store {store} is in use by process {pid}"));
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    holder.kill().unwrap();
    holder.wait().unwrap();
    SqliteStore::open(dir.path()).unwrap();
}

#[test]
fn the_same_process_cannot_open_it_twice_either() {
    let dir = Directory::new();
    let first = SqliteStore::open(dir.path()).unwrap();
    let refused = SqliteStore::open(dir.path()).err().unwrap();
    assert!(matches!(refused, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()));
    drop(first);
    SqliteStore::open(dir.path()).unwrap();
}
