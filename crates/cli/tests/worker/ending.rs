//! Attempts that must end: cancelled, lost, out of time.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::common::{PATIENCE, ended, fifo, serve, serve_at, signal_to, submit, task, worker};

/// A program with a child and a grandchild that do not listen to SIGTERM; it tells their numbers through a pipe.
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

/// The number of the group that a program leads, told through the pipe.
fn group(pipe: &Path) -> u32 {
    let told = std::fs::read_to_string(pipe).unwrap();
    told.split_whitespace().next().unwrap().parse().unwrap()
}

/// The living members of a group, by what the system says.
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
async fn a_task_that_takes_too_long_is_ended_here_and_there() {
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
async fn a_run_whose_lease_is_lost_is_ended_and_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let worker = worker(dir.path(), &served, "w", &file(dir.path()));
    let pipe = fifo(dir.path(), "pipe");
    submit(&served.client, "stubborn", json!({ "pipe": pipe })).await;
    let group = group(&pipe);
    // A server that has forgotten everything knows nothing of the lease.
    let address = served.address.clone();
    drop(served);
    let _served = serve_at(dir.path(), &address);
    worker.says("its lease lapsed");
    gone(group);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_ended_when_nobody_can_say_that_it_is_still_this_workers() {
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
