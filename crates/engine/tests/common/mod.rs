//! Helpers of the engine tests.
#![allow(dead_code, unreachable_pub)]

pub mod shared_store;

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Block, LaneName, LaneSettings, Pattern};
use laneway_engine::{Filter, Handle, Options};
use laneway_store::testing::FaultyStore;
use laneway_store::{MemoryStore, Store};

pub fn lanes() -> Handle {
    Handle::in_memory(Options::default())
}

pub fn lane(name: &str) -> LaneName {
    LaneName::new(name).unwrap()
}

/// A block of settings from `key=value` words.
pub fn block(lanes: &str, words: &str) -> Block {
    let mut settings = LaneSettings::default();
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap();
        settings.set(key, value).unwrap();
    }
    Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(settings) }
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The numbers of running and waiting tasks of a lane.
pub async fn numbers(lanes: &Handle, name: &str) -> (u32, u32) {
    let snapshot = lanes.snapshot().await.unwrap();
    let lane = snapshot.iter().find(|lane| lane.lane.as_str() == name);
    lane.map_or((0, 0), |lane| (lane.running, lane.waiting))
}

/// Waits until an engine sees these numbers of running and waiting tasks.
pub async fn until(lanes: &Handle, name: &str, running: u32, waiting: u32) {
    let mut updates = lanes.subscribe(Filter::default());
    while numbers(lanes, name).await != (running, waiting) {
        tokio::time::timeout(secs(600), updates.next()).await.unwrap().unwrap();
    }
}

/// Options with a short lease, so that others soon consider a replica dead.
pub fn replica_options() -> Options {
    let mut options = Options::default();
    options.replica_lease = secs(5);
    options
}

/// Replicas on one store in memory. A test can cut off each of them.
pub async fn replicas<const N: usize>() -> ([Handle; N], [Arc<FaultyStore>; N]) {
    replicas_with(replica_options).await
}

pub async fn replicas_with<const N: usize>(
    options: impl Fn() -> Options,
) -> ([Handle; N], [Arc<FaultyStore>; N]) {
    let memory = MemoryStore::new();
    let stores: [_; N] = std::array::from_fn(|_| Arc::new(FaultyStore::new(Arc::new(memory.clone()))));
    let mut handles = Vec::new();
    for store in &stores {
        let store: Arc<dyn Store> = Arc::<FaultyStore>::clone(store);
        handles.push(Handle::join(store, options()).await.unwrap());
    }
    (handles.try_into().unwrap_or_else(|_| panic!("as many")), stores)
}
