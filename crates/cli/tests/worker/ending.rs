//! Attempts that must end: cancelled, timed out, or with a lapsed lease.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::common::{PATIENCE, ended, fifo, serve, serve_at, signal_to, submit, task, worker};

/// A program with a child and a grandchild that ignore SIGTERM. It writes their process ids to a pipe.
fn file(dir: &Path) -> String {
    let stubborn = dir.join("stubborn");
    let script = "trap '' TERM\n(trap '' TERM; (trap '' TERM; echo $$ > \"$1.x\"; exec sleep 1000) & exec sleep 1001) &\n\
                  sleep 1002 & echo $$ $! > \"$1\"\nwait\nwait\nwait\n";
    std::fs::write(&stubborn, script).unwrap();
    format!(
        "lease = \"3s\"\nhandler \"stubborn\" {{\ncommand = [\"sh\", \"{}\", \"{{{{payload.pipe}}}}\"]\ngrace = \"300ms\"\n}}",
        stubborn.display()
    )
}

/// The process group of the program, read from the pipe.
fn group(pipe: &Path) -> u32 {
    let ids = std::fs::read_to_string(pipe).unwrap();
    ids.split_whitespace().next().unwrap().parse().unwrap()
}

/// The living members of a process group, by `/proc`.
fn members(group: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let is_member = |stat: &String| {
        let mut words = stat.rsplit_once(')').unwrap().1.split_whitespace();
        let state = words.next().unwrap();
        words.nth(1) == Some(group.to_string().as_str()) && state != "Z"
    };
    stats.filter(is_member).collect()
}

fn gone(group: u32) {
    let end = Instant::now() + PATIENCE;
    while !members(group).is_empty() {
        assert!(Instant::now() < end, "still there: {:?}", members(group));
        std::thread::yield_now();
    }
    assert!(!signal_to("-0", group));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_task_ends_the_whole_process_group_grandchildren_included() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let _worker = worker(dir.path(), &served, "w", &file(dir.path()));
    let pipe = fifo(dir.path(), "pipe");
    let accepted = submit(&served.client, "stubborn", json!({ "pipe": pipe })).await;
    let group = group(&pipe);
    assert!(members(group).len() >= 3, "{:?}", members(group));
    assert_eq!(served.client.cancel(&accepted.id).await.unwrap().status, "cancelling");
    let view = ended(&served.client, &accepted.id).await;
    assert_eq!(view.status, "cancelled");
    gone(group);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_the_attempt_and_its_process_group() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let _worker = worker(dir.path(), &served, "w", &file(dir.path()));
    let pipe = fifo(dir.path(), "pipe");
    let mut asked = task("stubborn", json!({ "pipe": pipe }));
    asked.timeout_ms = Some(5000);
    asked.retry = serde_json::from_value(json!({ "strategy": "none" })).unwrap();
    let accepted = served.client.submit(&asked, None).await.unwrap();
    let group = group(&pipe);
    let view = ended(&served.client, &accepted.id).await;
    assert!(matches!(view.status.as_str(), "timed_out" | "failed"), "{view:?}");
    gone(group);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_ends_the_attempt_without_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let worker = worker(dir.path(), &served, "w", &file(dir.path()));
    let pipe = fifo(dir.path(), "pipe");
    submit(&served.client, "stubborn", json!({ "pipe": pipe })).await;
    let group = group(&pipe);
    // With its store in memory, the restarted server does not know the lease.
    let address = served.address.clone();
    drop(served);
    let _served = serve_at(dir.path(), &address);
    worker.says("its lease lapsed");
    gone(group);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_ends_when_no_server_renews_its_lease() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let worker = worker(dir.path(), &served, "w", &file(dir.path()));
    let pipe = fifo(dir.path(), "pipe");
    submit(&served.client, "stubborn", json!({ "pipe": pipe })).await;
    let group = group(&pipe);
    drop(served);
    worker.says("its lease lapsed");
    gone(group);
}
