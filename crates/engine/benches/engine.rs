//! What the engine costs beside what tokio alone costs, in one run.
//!
//! `cargo bench -p laneway-engine`; with a word it does only that part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use laneway_core::{Block, LaneSettings, Pattern};
use laneway_engine::{Context, Error, Failure, Handle, Options, RunError, Task};
use laneway_store_sqlite::SqliteStore;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinSet;

const TASKS: usize = 100_000;
/// Rounds of which the median is told.
const ROUNDS: usize = 9;

type Tried<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Tried<()> {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let wanted = words.next();
    if let (Some("counted"), Some(what), Some(tasks)) = (wanted.as_deref(), words.next(), words.next()) {
        return counted(&what, tasks.parse()?);
    }
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let mut holds = true;
    if is_wanted("no-ops") {
        let one_thread = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        for lanes in [1, 6] {
            holds &= one_thread.block_on(no_ops(lanes, Some(0.5)))?;
        }
        holds &= instructions()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    runtime.block_on(async {
        if is_wanted("no-ops") {
            no_ops(1, None).await?;
            no_ops(6, None).await?;
        }
        if is_wanted("fan-out") {
            fan_out().await?;
        }
        if is_wanted("latency") {
            latency().await?;
        }
        if is_wanted("waiting") {
            waiting().await?;
        }
        if is_wanted("disk") {
            on_disk().await?;
        }
        Tried::Ok(())
    })?;
    if holds { Ok(()) } else { Err("a bound does not hold".into()) }
}

fn block(lanes: &str, slots: u32) -> Tried<Block> {
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", &slots.to_string())?;
    settings.set("max_queued", "10000000")?;
    Ok(Block { lanes: Pattern::new(lanes)?, settings: Some(settings) })
}

async fn lanes(slots: u32) -> Tried<Handle> {
    let lanes = Handle::in_memory(Options::default());
    let names = ["global", "lane", "lane0", "lane1", "lane2", "lane3", "lane4", "lane5"];
    let slots_of = |name: &str| if name == "global" { 1_000_000 } else { slots };
    let blocks = names.map(|name| block(name, slots_of(name)));
    lanes.configure(blocks.into_iter().collect::<Result<_, _>>()?).await?;
    Ok(lanes)
}

/// Spawns all tasks from inside the runtime and waits for the last one. (A `JoinSet` would wake its owner for each.)
async fn all<F: Future<Output = ()> + Send + 'static>(
    tasks: usize,
    make: impl Fn(usize) -> F + Send + 'static,
) -> Tried<Duration> {
    let start = Instant::now();
    let generator = tokio::spawn(async move {
        let left = Arc::new((AtomicUsize::new(tasks), Notify::new()));
        for number in 0..tasks {
            let (work, left) = (make(number), Arc::clone(&left));
            tokio::spawn(async move {
                work.await;
                if left.0.fetch_sub(1, Ordering::SeqCst) == 1 {
                    left.1.notify_one();
                }
            });
        }
        left.1.notified().await;
    });
    generator.await?;
    Ok(start.elapsed())
}

/// Tasks that each take a permit of a semaphore of eight and give it back.
async fn with_semaphores(tasks: usize, count: usize) -> Tried<Duration> {
    let semaphores: Vec<_> = (0..count).map(|_| Arc::new(Semaphore::new(8))).collect();
    let make = move |number: usize| {
        let semaphore = Arc::clone(&semaphores[number % count]);
        async move { drop(semaphore.acquire_owned().await) }
    };
    all(tasks, make).await
}

/// The same in lanes of eight.
async fn with_lanes(tasks: usize, count: usize) -> Tried<Duration> {
    let lanes = lanes(8).await?;
    let asked: Vec<Task> = (0..count).map(|number| Task::new(format!("lane{number}"))).collect();
    let make = move |number: usize| {
        let (lanes, task) = (lanes.clone(), asked[number % count].clone());
        async move { lanes.run(task, async {}).await.unwrap_or_else(|error| println!("{error}")) }
    };
    all(tasks, make).await
}

/// Tasks that do nothing, in lanes of eight: each is spawned and waits for its slot. The two take turns, and the ratio
/// is the median of those within a round.
async fn no_ops(count: usize, bound: Option<f64>) -> Tried<bool> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let semaphore = with_semaphores(TASKS, count).await?.as_nanos() as f64 / TASKS as f64;
        let own = with_lanes(TASKS, count).await?.as_nanos() as f64 / TASKS as f64;
        rounds.push((semaphore / own, own, semaphore));
    }
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, own, semaphore) = rounds[ROUNDS / 2];
    let (low, high) = (rounds[0].0, rounds[ROUNDS - 1].0);
    let verdict = match bound {
        Some(bound) if ratio >= bound => format!("at least {bound}   holds"),
        Some(bound) => format!("at least {bound}   BROKEN"),
        None => "several threads, no bound".to_owned(),
    };
    println!(
        "{TASKS} no-ops, {count} lanes of 8: {own:.0} ns each, semaphore + spawn {semaphore:.0} ns; \
         ratio {ratio:.2} ({low:.2} to {high:.2})   {verdict}"
    );
    Ok(bound.is_none_or(|bound| ratio >= bound))
}

/// What callgrind counts: this many tasks of one sort on one thread.
fn counted(what: &str, tasks: usize) -> Tried<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let run = async {
        match what {
            "lanes" => with_lanes(tasks, 1).await,
            _ => with_semaphores(tasks, 1).await,
        }
    };
    runtime.block_on(run).map(drop)
}

/// Instructions of one task, from the difference of two sizes, beside those of the semaphore.
fn instructions() -> Tried<bool> {
    let count = |what: &str, tasks: &str| -> Tried<f64> {
        let output = std::process::Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe()?)
            .args(["counted", what, tasks])
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let line =
            text.lines().find(|line| line.contains("Collected :")).ok_or("callgrind counted nothing")?;
        let digits = line.rsplit(':').next().unwrap_or_default().trim();
        Ok(digits.parse()?)
    };
    let each = |what: &str| Tried::Ok((count(what, "20000")? - count(what, "10000")?) / 10_000.0);
    let (own, semaphore) = (each("lanes")?, each("semaphore")?);
    let ratio = semaphore / own;
    let verdict = if ratio >= 0.5 { "holds" } else { "BROKEN" };
    println!(
        "instructions of a no-op: {own:.0}, semaphore + spawn {semaphore:.0}; \
         ratio {ratio:.2}   at least 0.5   {verdict}"
    );
    Ok(ratio >= 0.5)
}

/// As many tasks of 20 ms as there are slots.
async fn fan_out() -> Tried<()> {
    let nap = Duration::from_millis(20);
    for slots in [8, 64, 256] {
        let start = Instant::now();
        let mut set = JoinSet::new();
        (0..slots).for_each(|_| drop(set.spawn(tokio::time::sleep(nap))));
        set.join_all().await;
        let raw = start.elapsed();
        let lanes = lanes(slots).await?;
        let start = Instant::now();
        let mut set = JoinSet::new();
        for _ in 0..slots {
            let lanes = lanes.clone();
            set.spawn(async move { lanes.run(Task::new("lane"), tokio::time::sleep(nap)).await });
        }
        set.join_all().await.into_iter().collect::<Result<(), RunError>>()?;
        println!("{slots} naps of 20 ms on {slots} slots: {:.1?}; tokio alone {raw:.1?}", start.elapsed());
    }
    Ok(())
}

/// From submission to result on an idle queue.
async fn latency() -> Tried<()> {
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let mut raw = Vec::new();
    for _ in 0..20_000 {
        let start = Instant::now();
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move { tell.send(1) });
        told.await?;
        raw.push(start.elapsed());
    }
    let lanes = lanes(8).await?;
    let mut own = Vec::new();
    for _ in 0..20_000 {
        let start = Instant::now();
        lanes.run(Task::new("lane"), async { 1 }).await?;
        own.push(start.elapsed());
    }
    let (own, raw) = (median(own), median(raw));
    println!("idle queue, submit to result, p50: {own:.2?}; spawn + oneshot {raw:.2?}");
    Ok(())
}

/// A million tasks of a handler that wait.
async fn waiting() -> Tried<()> {
    let lanes = lanes(1).await?;
    let forever = |_: Context, _: Value| std::future::pending::<Result<(), Failure>>();
    lanes.handler("wait", forever)?;
    let before = resident();
    let start = Instant::now();
    let mut set = JoinSet::new();
    for _ in 0..100 {
        let lanes = lanes.clone();
        set.spawn(async move {
            for _ in 0..10_000 {
                lanes.submit(Task::new("lane").kind("wait")).await?.detach();
            }
            Ok(())
        });
    }
    set.join_all().await.into_iter().collect::<Result<(), Error>>()?;
    let each = (resident() - before) as f64 / 1e6;
    println!("1 000 000 waiting: {each:.0} bytes each, {:.2?} to submit", start.elapsed());
    Ok(())
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Durable submit, run and finish, from 256 callers.
async fn on_disk() -> Tried<()> {
    let place = tempfile::tempdir()?;
    let lanes = Handle::open(Arc::new(SqliteStore::open(place.path())?), Options::default()).await?;
    lanes.configure(vec![block("lane", 256)?]).await?;
    lanes.handler("echo", |_: Context, payload: Value| async move { Ok(payload) })?;
    let start = Instant::now();
    let mut set = JoinSet::new();
    for caller in 0..256 {
        let lanes = lanes.clone();
        set.spawn(async move {
            for _ in 0..40 {
                lanes.submit(Task::new("lane").kind("echo").payload(caller)).await?.wait().await?;
            }
            Ok(())
        });
    }
    set.join_all().await.into_iter().collect::<Result<(), RunError>>()?;
    let per_second = 256.0 * 40.0 / start.elapsed().as_secs_f64();
    println!("on disk, 256 callers: {per_second:.0} tasks a second submitted, run and finished");
    lanes.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
