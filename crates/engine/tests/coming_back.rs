//! Callers that find no room and come back when they are told.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::time::Duration;

use common::{block, lanes};
use laneway_engine::{Error, Handle, RunError, Task};
use tokio::time::Instant;

/// Runs something for 0.1 s in a lane with one slot, and says how often it asked.
async fn obedient(lanes: Handle) -> usize {
    let mut tries = 0;
    loop {
        tries += 1;
        let work = tokio::time::sleep(Duration::from_millis(100));
        match lanes.run(Task::new("one"), work).await {
            Ok(()) => return tries,
            Err(RunError::Refused(Error::Rejected(refusal))) => {
                tokio::time::sleep(Duration::from_millis(refusal.retry_after().unwrap().0)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_refused_caller_gets_the_next_free_moment() {
    for (callers, most_ms) in [(10, 1500), (40, 6000)] {
        let lanes = lanes();
        lanes.configure(vec![block("one", "max_concurrency=1 max_queued=0")]).await.unwrap();
        let began = Instant::now();
        let running: Vec<_> = (0..callers).map(|_| tokio::spawn(obedient(lanes.clone()))).collect();
        let mut tries = 0;
        for caller in running {
            tries += caller.await.unwrap();
        }
        let took = began.elapsed().as_millis();
        assert!(took <= most_ms, "{callers} callers took {took} ms and {tries} requests");
        assert!(tries * 2 <= callers * 5, "{callers} callers took {took} ms and {tries} requests");
    }
}
