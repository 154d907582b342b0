//! What the engine costs beside what tokio alone costs, in one run.
//!
//! `cargo bench -p laneway-engine`. Each figure is the best of three.

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    runtime.block_on(async {
        let wanted = std::env::args().nth(1).filter(|word| !word.starts_with('-'));
        let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
        if is_wanted("no-ops") {
            no_ops(1).await?;
            no_ops(6).await?;
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
        Ok(())
    })
}

fn block(lanes: &str, slots: u32) -> Result<Block, Box<dyn std::error::Error>> {
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", &slots.to_string())?;
    settings.set("max_queued", "10000000")?;
    Ok(Block { lanes: Pattern::new(lanes)?, settings: Some(settings) })
}

async fn lanes(slots: u32) -> Result<Handle, Box<dyn std::error::Error>> {
    let lanes = Handle::in_memory(Options::default());
    let names = ["global", "lane", "lane0", "lane1", "lane2", "lane3", "lane4", "lane5"];
    let slots_of = |name: &str| if name == "global" { 1_000_000 } else { slots };
    let blocks = names.map(|name| block(name, slots_of(name)));
    lanes.configure(blocks.into_iter().collect::<Result<_, _>>()?).await?;
    Ok(lanes)
}

/// Spawns all tasks from inside the runtime and waits for the last one. (A `JoinSet` would wake its owner for each.)
async fn all<F: Future<Output = ()> + Send + 'static>(
    make: impl Fn(usize) -> F + Send + 'static,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let generator = tokio::spawn(async move {
        let left = Arc::new((AtomicUsize::new(TASKS), Notify::new()));
        for number in 0..TASKS {
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

/// Tasks that do nothing, in lanes of eight: each is spawned and waits for its slot.
async fn no_ops(count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (mut tokio_best, mut own_best) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let semaphores: Vec<_> = (0..count).map(|_| Arc::new(Semaphore::new(8))).collect();
        let time = all(move |number| {
            let semaphore = Arc::clone(&semaphores[number % count]);
            async move { drop(semaphore.acquire_owned().await) }
        });
        tokio_best = tokio_best.min(time.await?);
        let lanes = lanes(8).await?;
        let tasks: Vec<Task> = (0..count).map(|number| Task::new(format!("lane{number}"))).collect();
        let time = all(move |number| {
            let (lanes, task) = (lanes.clone(), tasks[number % count].clone());
            async move { lanes.run(task, async {}).await.unwrap_or_else(|error| println!("{error}")) }
        });
        own_best = own_best.min(time.await?);
    }
    let per_task = |time: Duration| time.as_nanos() as f64 / TASKS as f64;
    println!(
        "{TASKS} no-ops, {count} lanes of 8: {:.0} ns each; semaphore + spawn {:.0} ns; ratio {:.2}",
        per_task(own_best),
        per_task(tokio_best),
        per_task(tokio_best) / per_task(own_best)
    );
    Ok(())
}

/// As many tasks of 20 ms as there are slots.
async fn fan_out() -> Result<(), Box<dyn std::error::Error>> {
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
async fn latency() -> Result<(), Box<dyn std::error::Error>> {
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
async fn waiting() -> Result<(), Box<dyn std::error::Error>> {
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
async fn on_disk() -> Result<(), Box<dyn std::error::Error>> {
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
