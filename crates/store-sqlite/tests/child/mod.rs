//! This very test program once more, as another process that uses a store.
//!
//! A test binary that uses this has an ignored test named `child` which calls [`be`].

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use laneway_core::{BlobId, Scheduler, Timestamp};
use laneway_store::{Batch, BatchId, Entry, ErrorKind, Head, Log};
use laneway_store_sqlite::SqliteStore;

const DOES: &str = "LANEWAY_CHILD_DOES";
const DIR: &str = "LANEWAY_CHILD_DIR";

/// A command that runs this test program as a child which does `what` in `dir`, under `wrapper` if that is not empty.
pub(crate) fn child(wrapper: &[String], what: &str, dir: &Path) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut words = wrapper.iter().cloned().chain([program.to_str().unwrap().to_owned()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(DOES, what).env(DIR, dir).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What the child does. Without a parent: nothing.
pub(crate) fn be() {
    let (Ok(what), Ok(dir)) = (std::env::var(DOES), std::env::var(DIR)) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = SqliteStore::open(dir).unwrap();
    match what.as_str() {
        "open" => {}
        "hold" => {
            println!("\nholding");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "append" => runtime.block_on(append(&Log::new(std::sync::Arc::new(store)))),
        other => panic!("a child cannot {other}"),
    }
}

pub(crate) const BATCHES: u64 = 12;

/// A batch that brings a log to a version: it adds that payload and drops the one before it.
pub(crate) fn entry(version: u64) -> Entry {
    let blob = |number: u64| BlobId(std::num::NonZeroU128::new(u128::from(number) + 1).unwrap());
    let batch = Batch { id: BatchId(version.into()), at: Timestamp(version), events: vec![] };
    Entry {
        payloads: vec![(blob(version), Bytes::from(vec![7; 10_000]))],
        dropped: vec![blob(version - 1)],
        ..Entry::of(batch)
    }
}

/// Appends what is missing, says which versions are safe, tries again what failed and says how often it did.
async fn append(log: &Log) {
    let mut head = log.store().head().await.unwrap();
    while head.version.0 < BATCHES {
        match log.append(head, &entry(head.version.0 + 1)).await {
            Ok(next) => {
                head = next;
                println!("\nsafe {}", head.version);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                println!("\nunavailable 1");
            }
        }
        if head.version.0 == BATCHES / 2 {
            save_and_trim(log, head).await;
        }
    }
}

async fn save_and_trim(log: &Log, head: Head) {
    let state = Scheduler::new(0).snapshot();
    while let Err(error) = log.save(head, &state).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    while let Err(error) = log.store().trim(head.version).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}
