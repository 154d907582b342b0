//! Replicas that share a log, compared with other queues on the same backend in the same run.
//!
//! `cargo xtask bench replicas` installs the peer and runs this; `cargo xtask bench replicas ten` only the parts whose name
//! has that in it. Subject and peer take turns; a line is the median of the ratios of all rounds. Below a line stands what
//! the run has cost. The last line says whether all bounds hold.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark stops at anything unexpected")]

mod bullmq;
mod counts;
mod load;
mod skip_locked;

use std::sync::Arc;
use std::time::Duration;

use laneway_engine::Handle;
use laneway_store::Store;
use laneway_store_postgres::{Options as OnPostgres, PostgresStore};
use laneway_store_redis::{Options, RedisStore};
use laneway_test_services::{Postgres, Redis};

use crate::counts::Counts;
use crate::load::{Load, idle_commands, idle_latencies, median, open_loop, replica, round_trip, throughput};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 7;
/// Tasks of a round, and of a peer's.
const TASKS: usize = 20_000;
const PEER_TASKS: usize = 2000;
/// For how long work comes at a fixed rate.
const SECONDS: u32 = 5;
/// The same, where there are rounds.
const SHORT_SECONDS: u32 = 2;

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
    // Cargo says `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|word| part.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<58} {:>14} {:>18} {:>8}    bound", "what", "ours", "reference", "ratio");
    let mut rows = Vec::new();
    let redis = Redis::start();
    runtime.block_on(async {
        if is_wanted("saturated") {
            rows.extend(saturated(&redis).await);
        }
        if is_wanted("idle") {
            rows.extend(idle(&redis).await);
        }
        if is_wanted("three") {
            rows.push(three_at_a_rate(&redis).await);
        }
        if is_wanted("ten") {
            rows.push(ten_at_a_rate(&redis).await);
        }
        if is_wanted("postgres") {
            rows.push(on_postgres().await);
        }
    });
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

fn told(row: Row) -> Row {
    row.print();
    row
}

fn micros(time: Duration) -> String {
    format!("{:.0} us", time.as_secs_f64() * 1e6)
}

/// As fast as one replica and three can, and BullMQ.
async fn saturated(redis: &Redis) -> [Row; 2] {
    let one = replicas_on(redis, "one", 1).await;
    let three = replicas_on(redis, "three", 3).await;
    let mut rates: [Rates; 2] = Default::default();
    let mut peer = Vec::new();
    for _ in 0..ROUNDS {
        rates[0].measure(redis, &one, Load::ONE).await;
        rates[1].measure(redis, &three, Load::of(3)).await;
        let rate = bullmq::throughput(redis.port(), PEER_TASKS);
        eprintln!("BullMQ {rate:.0}/s");
        peer.push(rate);
    }
    let row = |what, ours: &[f64], reference: &[f64], bound| Row {
        what,
        ours: rate(ours),
        reference: rate(reference),
        ratio: ratio(ours, reference),
        bound,
        is_at_least: true,
    };
    let [of_one, of_three] = rates;
    let with_peer =
        told(row("Redis: one replica, 50 at once, compared with BullMQ", &of_one.rates, &peer, 5.0));
    of_one.costs.print(ROUNDS * TASKS);
    let what = "Redis: three replicas, saturated, compared with one";
    let beside_one = told(row(what, &of_three.rates, &of_one.rates, 1.0));
    of_three.costs.print(ROUNDS * TASKS);
    more_slots(redis, [&one, &three]).await;
    [with_peer, beside_one]
}

/// What slots and callers have to do with it, in rounds of their own: what has ended is remembered, and the more there is of that
/// in a namespace, the more each task costs.
async fn more_slots(redis: &Redis, [one, three]: [&[Handle]; 2]) {
    let loads = [
        ("one", one, Load::ONE),
        ("three with the slots and callers of one", three, Load::ONE),
        (
            "three with three times the slots of one",
            three,
            Load { slots: 3 * Load::ONE.slots, ..Load::of(3) },
        ),
        ("one with a slot for each caller", one, Load { slots: Load::ONE.callers as u32, ..Load::ONE }),
    ];
    let mut rates: [Rates; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (rates, (_, replicas, load)) in rates.iter_mut().zip(loads) {
            rates.measure(redis, replicas, load).await;
        }
        eprintln!();
    }
    for (of, (name, ..)) in rates.iter().zip(loads).skip(1) {
        println!("    {name}: {}, ratio {:.2}", rate(&of.rates), ratio(&of.rates, &rates[0].rates));
        of.costs.print(ROUNDS * TASKS);
    }
}

/// How fast some replicas were in each round, and what all of that has cost.
#[derive(Default)]
struct Rates {
    rates: Vec<f64>,
    costs: Counts,
}

impl Rates {
    async fn measure(&mut self, redis: &Redis, replicas: &[Handle], load: Load) {
        let before = Counts::of(replicas, redis).await;
        let rate = throughput(replicas, load, TASKS).await;
        self.costs += Counts::of(replicas, redis).await - before;
        self.rates.push(rate);
        eprint!("{} with {} slots {rate:.0}/s, ", replicas.len(), load.slots);
    }
}

fn rate(rates: &[f64]) -> String {
    format!("{:.0}/s", median(rates))
}

fn ratio(ours: &[f64], reference: &[f64]) -> f64 {
    median(&ours.iter().zip(reference).map(|(ours, reference)| ours / reference).collect::<Vec<_>>())
}

/// Times, each with a round trip just before it: how long one takes depends on where the kernel puts the two processes.
fn beside_trips(what: &'static str, pairs: &[(Duration, Duration)], bound: f64) -> Row {
    let (ours, trips): (Vec<f64>, Vec<f64>) =
        pairs.iter().map(|(ours, trip)| (ours.as_secs_f64() * 1e6, trip.as_secs_f64() * 1e6)).unzip();
    let reference = format!("trip {:.0} us", median(&trips));
    let ratio = ratio(&ours, &trips);
    Row { what, ours: format!("{:.0} us", median(&ours)), reference, ratio, bound, is_at_least: false }
}

/// How fast something starts when nothing else does, and what doing nothing costs.
async fn idle(redis: &Redis) -> [Row; 2] {
    let replicas = replicas_on(redis, "idle", 3).await;
    let starts = idle_latencies(&replicas[0], redis, ROUNDS).await;
    let start = told(beside_trips("Redis: idle, from submit to start, p50", &starts, 4.0));
    let commands = idle_commands(redis, &replicas).await;
    let commands = told(Row {
        what: "Redis: commands a second of an idle replica",
        ours: format!("{commands:.2}/s"),
        reference: "-".to_owned(),
        ratio: commands,
        bound: 2.0,
        is_at_least: false,
    });
    [start, commands]
}

async fn three_at_a_rate(redis: &Redis) -> Row {
    let three = replicas_on(redis, "three at a rate", 3).await;
    let (mut pairs, mut costs, mut count) = (Vec::new(), Counts::default(), 0);
    for _ in 0..ROUNDS {
        let trip = round_trip(redis).await;
        let (p99, cost, tasks) = at_a_rate(&three, redis, 1000, SHORT_SECONDS).await;
        pairs.push((p99, trip));
        costs += cost;
        count += tasks;
    }
    let row = told(beside_trips("Redis: three replicas, 1000/s, p99 of submit", &pairs, 20.0));
    costs.print(count);
    row
}

async fn ten_at_a_rate(redis: &Redis) -> Row {
    let ten = replicas_on(redis, "ten at a rate", 10).await;
    let (p99, cost, tasks) = at_a_rate(&ten, redis, 5000, SECONDS).await;
    let row = told(Row {
        what: "Redis: ten replicas, 5000/s, p99 of submit in ms",
        ours: micros(p99),
        reference: "-".to_owned(),
        ratio: p99.as_secs_f64() * 1e3,
        bound: 10.0,
        is_at_least: false,
    });
    cost.print(tasks);
    row
}

/// The 99th percentile of submit at this many tasks a second, what that has cost, and how many tasks there were.
async fn at_a_rate(
    replicas: &[Handle],
    redis: &Redis,
    a_second: u32,
    seconds: u32,
) -> (Duration, Counts, usize) {
    let before = Counts::of(replicas, redis).await;
    let (p99, tasks) = open_loop(replicas, a_second, seconds).await;
    (p99, Counts::of(replicas, redis).await - before, tasks)
}

/// Replicas that all have something to append, at a thousand tasks a second.
async fn contend_on(postgres: &Postgres, count: usize) {
    let mut replicas = Vec::new();
    for _ in 0..count {
        let options = OnPostgres { namespace: format!("{count} at a rate"), ..OnPostgres::default() };
        let store: Arc<dyn Store> =
            Arc::new(PostgresStore::open_with(&postgres.url(), options).await.unwrap());
        replicas.push(replica(store).await);
    }
    let (p99, _) = open_loop(&replicas, 1000, SECONDS).await;
    let appends: Vec<_> = replicas.iter().map(Handle::appends).collect();
    let (kept, lost) =
        appends.iter().fold((0, 0), |(kept, lost), appends| (kept + appends.kept, lost + appends.lost));
    println!(
        "    Postgres: {count} replicas, 1000/s: p99 of submit {}; {kept} appends, {lost} races lost",
        micros(p99)
    );
}

async fn on_postgres() -> Row {
    let postgres = Postgres::start_with(&["fsync=on"]);
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&postgres.url()).await.unwrap());
    for count in [3, 10] {
        contend_on(&postgres, count).await;
    }
    let one = [replica(store).await];
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(throughput(&one, Load::ONE, PEER_TASKS).await);
        peer.push(skip_locked::throughput(&postgres, PEER_TASKS / 8).await);
    }
    let ratios: Vec<f64> = ours.iter().zip(&peer).map(|(ours, peer)| ours / peer).collect();
    told(Row {
        what: "Postgres: one replica, compared with SKIP LOCKED on 8 connections",
        ours: format!("{:.0}/s", median(&ours)),
        reference: format!("{:.0}/s", median(&peer)),
        ratio: median(&ratios),
        bound: 5.0,
        is_at_least: true,
    })
}
