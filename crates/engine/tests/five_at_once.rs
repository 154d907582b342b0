//! Three replicas share a lane of one slot and room for three. Of five callers at once, one gets the slot, three wait in
//! order, and one is refused. The test repeats this 300 times on each shared store.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;

use common::{block, numbers};
use laneway_core::Rejection;
use laneway_engine::{Error, Handle, Options, RunError, Slot};
use laneway_store::{MemoryStore, Store};
use laneway_store_postgres::PostgresStore;
use laneway_store_redis::RedisStore;
use laneway_test_services::{Postgres, Redis};

const ROUNDS: u32 = 300;

#[tokio::test]
async fn in_memory() {
    let memory = MemoryStore::new();
    rounds(async || shared(memory.clone())).await;
}

#[tokio::test]
async fn on_redis() {
    let redis = Redis::start();
    rounds(async || shared(RedisStore::open(&redis.url()).await.unwrap())).await;
}

#[tokio::test]
async fn on_postgres() {
    let postgres = Postgres::start();
    rounds(async || shared(PostgresStore::open(&postgres.url()).await.unwrap())).await;
}

fn shared(store: impl Store) -> Arc<dyn Store> {
    Arc::new(store)
}

async fn rounds(open: impl AsyncFn() -> Arc<dyn Store>) {
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(Handle::join(open().await, Options::default()).await.unwrap());
    }
    replicas[0].configure(vec![block("only", "max_concurrency=1 max_queued=3")]).await.unwrap();
    for round in 0..ROUNDS {
        one_round(&replicas, round).await;
    }
}

type Answer = Result<Slot, RunError>;

async fn one_round(replicas: &[Handle], round: u32) {
    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel::<Answer>();
    for asker in 0..5 {
        let lanes = replicas[(round as usize + asker) % replicas.len()].clone();
        let answered = answered.clone();
        // The receiver is gone after a failure of the test.
        tokio::spawn(async move { drop(answered.send(lanes.slot(["only"]).await)) });
    }
    let (mut running, mut refused) = (None, 0);
    // Of the first two answers, one is the slot and one a refusal. The other callers wait.
    for _ in 0..2 {
        match answers.recv().await.unwrap() {
            Ok(slot) if running.is_none() => running = Some(slot),
            Ok(_) => panic!("two run in round {round}"),
            Err(RunError::Refused(Error::Rejected(Rejection::LaneFull(_)))) => refused += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
    }
    assert_eq!((running.is_some(), refused), (true, 1), "round {round}");
    for lanes in replicas {
        assert_eq!(numbers(lanes, "only").await, (1, 3), "round {round}");
    }
    // Each waiting caller gets the slot when the one before gives it back.
    for left in (0..3).rev() {
        drop(running.take());
        running =
            Some(answers.recv().await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}")));
        let lanes = &replicas[left as usize % replicas.len()];
        assert_eq!(numbers(lanes, "only").await, (1, left), "round {round}");
    }
    drop(running);
    let is_idle = async |lanes: &Handle| numbers(lanes, "only").await == (0, 0);
    while !is_idle(&replicas[0]).await {
        tokio::task::yield_now().await;
    }
}
