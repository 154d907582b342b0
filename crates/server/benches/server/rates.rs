//! How many tasks a second are taken, in memory and on a disk, and how many requests a full lane refuses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_store_sqlite::SqliteStore;

use crate::other::{Asked, Client, Other, load};
use crate::{Bound, CONNECTIONS, ROUND, ROUNDS, TASK, Table, Threads, median};

/// The engine by itself, in this process. It is kept for all rounds, as the server is: what waits grows, is noticed and is
/// saved in both.
struct Alone {
    runtime: tokio::runtime::Runtime,
    handle: laneway_engine::Handle,
    _dir: tempfile::TempDir,
}

impl Alone {
    fn open(threads: Threads) -> Alone {
        let runtime = threads.runtime(false);
        let (handle, dir) = tokio::task::block_in_place(|| runtime.block_on(Alone::engine()));
        Alone { runtime, handle, _dir: dir }
    }

    async fn engine() -> (laneway_engine::Handle, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path().join("store")).unwrap());
        let options = laneway_engine::Options::default();
        let handle = laneway_engine::Handle::open(store, options).await.unwrap();
        let block = |lanes: &str, words: &[(&str, &str)]| {
            let mut settings = laneway_core::LaneSettings::default();
            words.iter().for_each(|(key, value)| settings.set(key, value).unwrap());
            let lanes = laneway_core::Pattern::new(lanes).unwrap();
            laneway_core::Block { lanes, settings: Some(settings) }
        };
        let room = ("max_queued", "10000000");
        let external = [("handler", "external"), ("max_concurrency", "1"), room];
        handle.configure(vec![block("global", &[room]), block("external", &external)]).await.unwrap();
        (handle, dir)
    }

    fn submissions(&self) -> f64 {
        tokio::task::block_in_place(|| self.runtime.block_on(self.submit_all()))
    }

    /// Durable submissions a second, asked by as many at once as there are connections.
    async fn submit_all(&self) -> f64 {
        let until = Instant::now() + ROUND;
        let begun = Instant::now();
        let mut askers = Vec::new();
        for _ in 0..CONNECTIONS {
            let handle = self.handle.clone();
            askers.push(tokio::spawn(async move {
                let mut count = 0;
                while Instant::now() < until {
                    let task = laneway_engine::Task::new("external").kind("index").payload(1);
                    handle.submit(task).await.unwrap().detach();
                    count += 1;
                }
                count
            }));
        }
        let mut count = 0;
        for asker in askers {
            count += asker.await.unwrap();
        }
        f64::from(count) / begun.elapsed().as_secs_f64()
    }
}

const SUBMISSION: Asked = Asked { path: "/api/tasks", body: |_| TASK.to_owned(), status: 202 };
const TURN: &str = "{\"message\": \"hello\"}";
const REFUSED: Asked = Asked { path: "/api/agents/busy/chat", body: |_| TURN.to_owned(), status: 429 };

/// What was measured of ours and of the reference: how many a second, and their 99th percentile.
type Round = ((f64, Duration), (f64, Duration));

pub(crate) async fn memory_rate(table: &mut Table, threads: Threads) {
    let ours = Other::start("memory", threads);
    beside_constant(table, threads, "POST /api/tasks in memory, a second", &ours, SUBMISSION).await;
}

/// The lane of the agent is full: one turn waits for a worker, and no more may.
pub(crate) async fn full_rate(table: &mut Table, threads: Threads) {
    let ours = Other::start("full", threads);
    let mut client = Client::connect(ours.address).await;
    let waiting = "{\"message\": \"hello\", \"session\": \"waits\"}";
    let (status, _) = client.ask_later("/api/agents/busy/chat", waiting).await;
    assert_eq!(status, 202);
    beside_constant(table, threads, "429s of a full agent in memory, a second", &ours, REFUSED).await;
}

/// Asks ours and axum with a constant answer in turns.
async fn beside_constant(table: &mut Table, threads: Threads, what: &str, ours: &Other, asked: Asked) {
    let constant = Other::start("constant", threads);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((load(ours.address, asked).await, load(constant.address, asked).await));
    }
    let asked = |pick: fn(&Round) -> f64| rounds.iter().map(pick).sum::<f64>() * ROUND.as_secs_f64();
    let ours_us = ours.cpu_secs() * 1e6 / asked(|r| r.0.0);
    let constant_us = constant.cpu_secs() * 1e6 / asked(|r| r.1.0);
    let of = |pick: fn(&Round) -> f64| median(rounds.iter().map(pick).collect());
    let (rate, reference) = (of(|r| r.0.0), of(|r| r.1.0));
    let ratio = of(|r| r.0.0 / r.1.0);
    table.of(threads, what, rate, reference, ratio, Bound::AtLeast(0.5));
    let (p99, reference) = (of(|r| r.0.1.as_secs_f64() * 1e6), of(|r| r.1.1.as_secs_f64() * 1e6));
    let ratio = of(|r| r.0.1.as_secs_f64() / r.1.1.as_secs_f64());
    table.of(threads, "  its 99th percentile, us", p99, reference, ratio, Bound::AtMost(5.0));
    // Where the kernel counts whole ticks this is rough, and says all the same what a request costs the server itself.
    table.unbound("  processor time of one, us", ours_us, constant_us, ours_us / constant_us);
}

pub(crate) async fn disk_rate(table: &mut Table, threads: Threads) {
    let (ours, alone, constant) =
        (Other::start("disk", threads), Alone::open(threads), Other::start("constant", threads));
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (ours, alone) = (load(ours.address, SUBMISSION).await.0, alone.submissions());
        rounds.push((ours, alone, load(constant.address, SUBMISSION).await.0));
    }
    let of = |pick: fn(&(f64, f64, f64)) -> f64| median(rounds.iter().map(pick).collect());
    let (rate, reference) = (of(|r| r.0), of(|r| r.1));
    let (what, ratio) = ("POST /api/tasks on disk, a second", of(|r| r.0 / r.1));
    table.of(threads, what, rate, reference, ratio, Bound::AtLeast(0.5));
    // What can be had at best: the same cores answer the constant and submit, one after the other.
    let (at_best, ratio) = (of(|r| by_turns(r.1, r.2)), of(|r| by_turns(r.1, r.2) / r.1));
    table.unbound("  the constant and the submission by turns", at_best, reference, ratio);
    alone.runtime.shutdown_background();
}

/// How many a second, if each is one of these and one of those.
fn by_turns(these: f64, those: f64) -> f64 {
    1.0 / (1.0 / these + 1.0 / those)
}
