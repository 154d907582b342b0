//! Replicas that share a log, beside what others do on the same engine in the same run.
//!
//! `cargo xtask bench replicas` installs the peer and runs this. Subject and peer take turns; a line is the median of the
//! ratios of all rounds. The last line says whether all bounds hold.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark stops at anything unexpected")]

mod bullmq;
mod load;
mod skip_locked;

use std::sync::Arc;
use std::time::Duration;

use laneway_engine::Handle;
use laneway_servers::{Postgres, Redis};
use laneway_store::Store;
use laneway_store_postgres::PostgresStore;
use laneway_store_redis::{Options, RedisStore};

use crate::load::{idle_latency, median, open_loop, replica, throughput};

const ROUNDS: usize = 7;
const TASKS: usize = 2000;

/// What was measured, against what, and what it should be.
struct Row {
    what: &'static str,
    ours: String,
    reference: String,
    ratio: f64,
    bound: f64,
    is_at_least: bool,
}

impl Row {
    fn holds(&self) -> bool {
        if self.is_at_least { self.ratio >= self.bound } else { self.ratio <= self.bound }
    }

    fn print(&self) {
        let sign = if self.is_at_least { ">=" } else { "<=" };
        let verdict = if self.holds() { "holds" } else { "DOES NOT HOLD" };
        println!(
            "{:<58} {:>14} {:>18} {:>8.2} {sign} {:<6} {verdict}",
            self.what, self.ours, self.reference, self.ratio, self.bound
        );
    }
}

fn main() -> std::process::ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<58} {:>14} {:>18} {:>8}    bound", "what", "ours", "reference", "ratio");
    let mut rows = runtime.block_on(on_redis());
    rows.extend(runtime.block_on(on_postgres()));
    let all = rows.iter().all(Row::holds);
    println!("{}", if all { "all bounds hold" } else { "not all bounds hold" });
    if all { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// Engines on a log of their own.
async fn replicas_on(redis: &Redis, namespace: &str, count: usize) -> Vec<Handle> {
    let mut replicas = Vec::new();
    for _ in 0..count {
        let options = Options { namespace: namespace.to_owned(), ..Options::default() };
        let store: Arc<dyn Store> = Arc::new(RedisStore::open_with(&redis.url(), options).await.unwrap());
        replicas.push(replica(store).await);
    }
    replicas
}

fn told(row: Row, rows: &mut Vec<Row>) {
    row.print();
    rows.push(row);
}

async fn on_redis() -> Vec<Row> {
    let redis = Redis::start();
    let mut rows = Vec::new();
    let one = replicas_on(&redis, "one", 1).await;
    let three = replicas_on(&redis, "three", 3).await;
    let (mut ours, mut shared, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(throughput(&one, TASKS).await);
        shared.push(throughput(&three, TASKS).await);
        peer.push(bullmq::throughput(redis.port(), TASKS));
        let last = |rates: &[f64]| rates.last().copied().unwrap_or_default();
        eprintln!("one {:.0}/s, three {:.0}/s, BullMQ {:.0}/s", last(&ours), last(&shared), last(&peer));
    }
    let rate = |rates: &[f64]| format!("{:.0}/s", median(rates));
    let ratio = |a: &[f64], b: &[f64]| median(&a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<_>>());
    let row = |what, ours: &[f64], reference: &[f64], bound| Row {
        what,
        ours: rate(ours),
        reference: rate(reference),
        ratio: ratio(ours, reference),
        bound,
        is_at_least: true,
    };
    told(row("Redis: one replica, 50 at once, beside BullMQ", &ours, &peer, 5.0), &mut rows);
    told(row("Redis: three replicas, saturated, beside one", &shared, &ours, 1.0), &mut rows);
    let trip = load::round_trip(&redis).await;
    let micros = |time: Duration| format!("{:.0} us", time.as_secs_f64() * 1e6);
    let beside_trip = |what, ours: Duration, bound| Row {
        what,
        ours: micros(ours),
        reference: format!("trip {}", micros(trip)),
        ratio: ours.as_secs_f64() / trip.as_secs_f64(),
        bound,
        is_at_least: false,
    };
    let idle = idle_latency(&one[0]).await;
    told(beside_trip("Redis: idle, from submit to start, p50", idle, 4.0), &mut rows);
    let p99 = open_loop(&three, 1000, 3).await;
    told(beside_trip("Redis: three replicas, 1000/s, p99 of submit", p99, 20.0), &mut rows);
    let commands = load::idle_commands(&redis, &three).await;
    let (what, bound) = ("Redis: commands a second of an idle replica", 2.0);
    let (ours, reference) = (format!("{commands:.2}/s"), "-".to_owned());
    told(Row { what, ours, reference, ratio: commands, bound, is_at_least: false }, &mut rows);
    drop((one, three));
    let ten = replicas_on(&redis, "ten", 10).await;
    let p99 = open_loop(&ten, 5000, 3).await;
    let (what, bound) = ("Redis: ten replicas, 5000/s, p99 of submit in ms", 10.0);
    let ratio = p99.as_secs_f64() * 1e3;
    let (ours, reference) = (micros(p99), "-".to_owned());
    told(Row { what, ours, reference, ratio, bound, is_at_least: false }, &mut rows);
    rows
}

async fn on_postgres() -> Vec<Row> {
    let postgres = Postgres::start_with(&["fsync=on"]);
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&postgres.url()).await.unwrap());
    let one = [replica(store).await];
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(throughput(&one, TASKS).await);
        peer.push(skip_locked::throughput(&postgres, TASKS / 8).await);
    }
    let ratios: Vec<f64> = ours.iter().zip(&peer).map(|(ours, peer)| ours / peer).collect();
    let mut rows = Vec::new();
    let row = Row {
        what: "Postgres: one replica, beside SKIP LOCKED on 8 connections",
        ours: format!("{:.0}/s", median(&ours)),
        reference: format!("{:.0}/s", median(&peer)),
        ratio: median(&ratios),
        bound: 5.0,
        is_at_least: true,
    };
    told(row, &mut rows);
    rows
}
