//! Workers while the server is away, and workers that stop.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{HELD, Process, ended, fifo, laneway, serve, serve_at, submit, worker, worker_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_an_outcome_after_the_servers_restart() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"data\"");
    let worker = worker(dir.path(), &served, "w", HELD);
    let pipe = fifo(dir.path(), "pipe");
    let accepted = submit(&served.client, "held", json!({ "pipe": pipe })).await;
    let mut write = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let address = served.address.clone();
    served.process.signal("-KILL");
    drop(served);
    write.write_all(b"done while the server was down\n").unwrap();
    worker.says("the outcome is kept");
    let served = serve_at(dir.path(), &address);
    let view = ended(&served.client, &accepted.id).await;
    assert_eq!((view.status.as_str(), view.attempts), ("completed", 1));
    assert_eq!(view.result.unwrap(), json!("done while the server was down\n"));
    worker.signal("-TERM");
    assert_eq!(
        worker.ends(),
        (Some(0), "1 claimed, 1 completed, 0 failed, 0 stale, 0 left to others\n".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_finishes_its_attempts_and_claims_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    // With a concurrency of one, no claim runs when the signal comes.
    let worker = worker(dir.path(), &served, "w", HELD);
    let pipe = fifo(dir.path(), "pipe");
    let accepted = submit(&served.client, "held", json!({ "pipe": pipe })).await;
    let mut write = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    worker.signal("-TERM");
    worker.says("claims no more work");
    let later = submit(&served.client, "held", json!({ "pipe": pipe })).await;
    write.write_all(b"ended well\n").unwrap();
    let view = ended(&served.client, &accepted.id).await;
    assert_eq!((view.status.as_str(), view.result.unwrap()), ("completed", json!("ended well\n")));
    assert_eq!(
        worker.ends(),
        (Some(0), "1 claimed, 1 completed, 0 failed, 0 stale, 0 left to others\n".to_owned())
    );
    assert_eq!(served.client.task(&later.id).await.unwrap().status, "queued");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_leaves_attempts_that_outlast_the_grace_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let first =
        worker(dir.path(), &served, "first", &format!("lease = \"1s\"\ndrain_grace = \"100ms\"\n{HELD}"));
    let pipe = fifo(dir.path(), "pipe");
    // The test also opens the reading end, so that the program waits for a line.
    let mut held = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let accepted = submit(&served.client, "held", json!({ "pipe": pipe })).await;
    first.says("starts");
    first.signal("-TERM");
    let (code, summary) = first.ends();
    assert_eq!(
        (code, summary.as_str()),
        (Some(0), "1 claimed, 0 completed, 0 failed, 0 stale, 1 left to others\n")
    );
    let _second = worker(dir.path(), &served, "second", HELD);
    held.write_all(b"by another\n").unwrap();
    let view = ended(&served.client, &accepted.id).await;
    assert_eq!(view.status, "completed", "{view:?}");
    assert_eq!(view.worker.as_deref(), Some("second"));
}

#[test]
fn a_worker_waits_longer_after_each_failed_claim() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let file = dir.path().join("w.hcl");
    std::fs::write(&file, HELD).unwrap();
    let _worker = worker_with(dir.path(), &address, "w", &file);
    let mut asked = Vec::new();
    // Read each request and close its connection at once.
    while asked.len() < 6 {
        let (connection, _) = listener.accept().unwrap();
        let mut request = String::new();
        BufReader::new(&connection).read_line(&mut request).unwrap();
        // The worker's pause begins when the connection is closed. Its stream of events is opened again independently.
        if request.contains("/api/claim") {
            asked.push(Instant::now());
        }
        drop(connection);
    }
    let gaps: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (times, gap) in gaps.iter().enumerate() {
        let least = Duration::from_millis(100 << times);
        assert!(*gap >= least, "after {times} tries it waited {gap:?}: {gaps:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_until_idle_a_worker_ends_when_no_task_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    for number in 0..7 {
        submit(&served.client, "copy", json!(number)).await;
    }
    std::fs::write(dir.path().join("worker.hcl"), "handler \"copy\" { command = [\"cat\"] }").unwrap();
    let mut command = laneway(dir.path());
    let url = format!("http://{}", served.address);
    command.args([
        "worker",
        "--until-idle",
        "--json",
        "--lanes",
        "external",
        "--concurrency",
        "2",
        "--url",
        &url,
    ]);
    let (code, summary) = Process::start(command).ends();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(summary, json!({ "claimed": 7, "completed": 7, "failed": 0, "stale": 0, "left": 0 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_runs_the_tasks_of_an_open_claim() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    std::fs::write(dir.path().join("worker.hcl"), "handler \"copy\" { command = [\"cat\"] }").unwrap();
    let mut command = laneway(dir.path());
    let url = format!("http://{}", served.address);
    command.args(["worker", "--lanes", "external", "--url", &url, "--log", "debug"]);
    let worker = Process::start(command);
    worker.says("asks for work");
    worker.signal("-TERM");
    worker.says("a claim is under way");
    let accepted = submit(&served.client, "copy", json!("taken at the last moment")).await;
    let view = ended(&served.client, &accepted.id).await;
    assert_eq!((view.status.as_str(), view.attempts), ("completed", 1), "{view:?}");
    assert_eq!(
        worker.ends(),
        (Some(0), "1 claimed, 1 completed, 0 failed, 0 stale, 0 left to others\n".to_owned())
    );
}
