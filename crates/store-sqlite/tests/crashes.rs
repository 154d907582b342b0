//! Killed at every system call that touches the disk, and refused by the disk: the next open finds everything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod child;
mod site;

use std::process::{Command, Output};
use std::sync::{Arc, Once};

use laneway_store::{Head, Log, Store, Version};
use laneway_store_sqlite::SqliteStore;

use crate::child::{BATCHES, entry};
use crate::site::Directory;

/// The calls that change something on a disk, by the names that they have on one kind of machine or another.
const CALLS: [&str; 9] = [
    "?mkdir,?mkdirat",
    "?open,?openat",
    "write",
    "pwrite64",
    "ftruncate",
    "fsync,fdatasync",
    "?rename,?renameat,?renameat2",
    "?unlink,?unlinkat",
    "flock",
];

#[test]
#[ignore = "run by the other tests, as another process"]
fn child() {
    child::be();
}

/// Puts strace there if it is not.
fn need_strace() {
    static ONCE: Once = Once::new();
    let works = || Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    ONCE.call_once(|| {
        if !works() {
            let installed = Command::new("apt-get").args(["install", "-y", "strace"]).output();
            assert!(works(), "these tests need strace, and it could not be installed: {installed:?}");
        }
    });
}

/// Runs a child that does `what` in `dir`, with something injected into its system calls.
fn run(inject: &str, what: &str, dir: &Directory) -> Output {
    need_strace();
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={inject}")];
    let wrapper: Vec<String> = wrapper.iter().map(|word| word.to_string()).collect();
    child::child(&wrapper, what, &dir.path()).output().unwrap()
}

/// The numbers that a child said, each on a line after this word.
fn said(output: &Output, word: &str) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
}

/// Runs `what` again and again, killed at the first such call, then at the second, until it survives. Returns how
/// often it was killed.
fn kill_at_each(
    calls: &str,
    what: &str,
    before: impl Fn(&Directory),
    after: impl Fn(&Directory, &Output),
) -> u32 {
    for number in 1.. {
        assert!(number < 1000, "{what} never gets by without {calls}");
        let dir = Directory::new();
        before(&dir);
        let output = run(&format!("{calls}:signal=KILL:when={number}"), what, &dir);
        after(&dir, &output);
        if output.status.success() {
            return number - 1;
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), None, "killed, and not failed: {stderr}");
    }
    0
}

async fn check_first_open(dir: &Directory) {
    let log = Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
    assert_eq!(log.store().head().await, Ok(Head::EMPTY));
    log.append(Head::EMPTY, &entry(1)).await.unwrap();
    drop(log);
    assert_eq!(SqliteStore::open(dir.path()).unwrap().head().await.unwrap().version, Version(1));
}

#[test]
fn a_crash_at_any_moment_of_the_first_open_leaves_something_to_open() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let kills = CALLS
        .map(|calls| kill_at_each(calls, "open", |_| (), |dir, _| runtime.block_on(check_first_open(dir))));
    println!("killed at {:?}", CALLS.iter().zip(kills).collect::<Vec<_>>());
    assert!(kills.iter().all(|kills| *kills > 0), "every one of these calls is made: {kills:?}");
}

/// Everything that the child was told to be safe is there, at most one batch more, and with the right payloads.
async fn check_appends(dir: &Directory, output: &Output) {
    let safe = said(output, "safe").last().copied().unwrap_or(0);
    let log = Log::new(Arc::new(SqliteStore::open(dir.path()).unwrap()));
    let (head, _) = log.restore(0).await.unwrap();
    assert!(head.version.0 == safe || head.version.0 == safe + 1, "{safe} were safe and {head:?} are there");
    for version in 1..=head.version.0 {
        let (blob, _) = entry(version).payloads[0];
        assert_eq!(log.payload(blob).await.unwrap().is_some(), version == head.version.0);
    }
    log.append(head, &entry(head.version.0 + 1)).await.unwrap();
}

#[test]
fn a_crash_at_any_moment_of_appending_loses_nothing_that_was_safe() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let made = |dir: &Directory| drop(SqliteStore::open(dir.path()).unwrap());
    let kills = ["pwrite64", "fsync,fdatasync", "ftruncate"].map(|calls| {
        kill_at_each(calls, "append", made, |dir, output| runtime.block_on(check_appends(dir, output)))
    });
    println!("killed {kills:?} times");
    assert!(kills.iter().sum::<u32>() > u32::try_from(BATCHES).unwrap(), "{kills:?}");
}

#[test]
fn a_disk_that_is_full_or_fails_for_a_while_delays_and_doubles_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for fault in ["pwrite64:error=ENOSPC", "pwrite64:error=EIO", "fsync,fdatasync:error=EIO"] {
        let dir = Directory::new();
        drop(SqliteStore::open(dir.path()).unwrap());
        let when = if fault.starts_with("pwrite") { "20..30" } else { "4..6" };
        let output = run(&format!("{fault}:when={when}"), "append", &dir);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{fault}: {stderr}");
        println!("{fault}: refused {} times", said(&output, "unavailable").len());
        assert!(
            !said(&output, "unavailable").is_empty() || fault.starts_with("fsync"),
            "{fault} was not noticed"
        );
        assert_eq!(said(&output, "safe"), (1..=BATCHES).collect::<Vec<_>>(), "{fault}");
        runtime.block_on(check_appends(&dir, &output));
    }
}
