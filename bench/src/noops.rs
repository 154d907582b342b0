//! A hundred thousand no-op tasks in one lane of eight slots, in six such lanes, or from 256 callers in a lane of 50.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use a3s_lane::{Command, EventEmitter, LaneConfig, QueueManagerBuilder};
use apalis_core::backend::TaskSink;
use apalis_core::backend::memory::MemoryStorage;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::context::WorkerContext;
use async_trait::async_trait;
use laneway_engine::Task;
use tokio::sync::{Notify, Semaphore};
use tower::limit::ConcurrencyLimitLayer;

use crate::Failed;
use crate::compare::queue::{Kind, Queue};
use crate::compare::workloads::{self, WIDTH as WIDE};
use crate::lanes;
use crate::table::{Bound, ROUNDS, Table};

/// How many tasks there are in a round.
const TASKS: usize = 100_000;
const WIDTH: usize = 8;

pub fn measure(table: &mut Table, count: usize) -> Result<(), Failed> {
    let name = |other: &str| format!("no-ops, {count} lanes of {WIDTH}, {other}");
    let names = [
        name("semaphore + spawn"),
        name("a3s-lane"),
        name("apalis"),
        name("two threads, semaphore + spawn"),
        name("two threads, one thread"),
    ];
    if names.iter().any(|name| table.wants(name)) {
        let (mut semaphores, mut a3s, mut apalis) = (Vec::new(), Vec::new(), Vec::new());
        let (mut threads, mut scaling) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let ours = rate(1, ours(TASKS, count))?;
            semaphores.push((ours, rate(1, semaphore(TASKS, count))?));
            a3s.push((ours, rate(1, a3s_lane(TASKS, count))?));
            apalis.push((ours, rate(1, apalis_memory())?));
            let two = rate(2, self::ours(TASKS, count))?;
            threads.push((two, rate(2, semaphore(TASKS, count))?));
            scaling.push((two, ours));
        }
        table.add(&names[0], "k/s", &semaphores, Bound::AtLeast(0.3));
        table.add(&names[1], "k/s", &a3s, Bound::AtLeast(3.0));
        if count == 1 {
            table.add(&names[2], "k/s", &apalis, Bound::None);
        }
        table.add(&names[3], "k/s", &threads, Bound::None);
        table.add(&names[4], "k/s", &scaling, Bound::None);
    }
    Ok(())
}

/// Many callers at once, each of which waits for the acceptance of its task before it submits the next.
pub fn from_many_callers(table: &mut Table) -> Result<(), Failed> {
    let name = |other: &str| format!("no-ops, 256 callers, lane of {WIDE}, {other}");
    let names = [name("apalis"), name("two threads, one thread")];
    if names.iter().any(|name| table.wants(name)) {
        let (mut apalis, mut scaling) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let ours = contended(1, Kind::Memory)?;
            apalis.push((ours, contended(1, Kind::Apalis)?));
            scaling.push((contended(2, Kind::Memory)?, ours));
        }
        table.add(&names[0], "k/s", &apalis, Bound::AtLeast(1.0));
        table.add(&names[1], "k/s", &scaling, Bound::AtLeast(0.8));
    }
    Ok(())
}

/// Thousands of tasks a second, without the setup.
fn contended(threads: usize, kind: Kind<'_>) -> Result<f64, Failed> {
    lanes::runtime(threads)?.block_on(async {
        let queue = Queue::open(kind, WIDE, 0).await?;
        workloads::no_ops(&queue, TASKS).await
    })
}

/// Thousands of tasks a second, without the setup.
fn rate<F: Future<Output = Result<f64, Failed>>>(threads: usize, run: F) -> Result<f64, Failed> {
    let runtime = lanes::runtime(threads)?;
    let seconds = runtime.block_on(run)?;
    Ok(TASKS as f64 / seconds / 1000.0)
}

/// Spawns all tasks from inside the runtime and waits for the last one. (A `JoinSet` would wake its owner for each.)
async fn all<F: Future<Output = ()> + Send + 'static>(
    tasks: usize,
    make: impl Fn(usize) -> F + Send + 'static,
) -> Result<f64, Failed> {
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
    Ok(start.elapsed().as_secs_f64())
}

pub async fn ours(tasks: usize, count: usize) -> Result<f64, Failed> {
    let lanes = lanes::in_memory(WIDTH as u32).await?;
    let asked: Vec<Task> = (0..count).map(|number| Task::new(format!("lane{number}"))).collect();
    all(tasks, move |number| {
        let (lanes, task) = (lanes.clone(), asked[number % count].clone());
        async move { lanes.run(task, async {}).await.unwrap_or_else(|error| println!("{error}")) }
    })
    .await
}

pub async fn semaphore(tasks: usize, count: usize) -> Result<f64, Failed> {
    let semaphores: Vec<_> = (0..count).map(|_| Arc::new(Semaphore::new(WIDTH))).collect();
    all(tasks, move |number| {
        let semaphore = Arc::clone(&semaphores[number % count]);
        async move { drop(semaphore.acquire_owned().await) }
    })
    .await
}

struct NoOp;

#[async_trait]
impl Command for NoOp {
    async fn execute(&self) -> a3s_lane::Result<serde_json::Value> {
        Ok(serde_json::Value::Null)
    }

    fn command_type(&self) -> &str {
        "no-op"
    }
}

pub async fn a3s_lane(tasks: usize, count: usize) -> Result<f64, Failed> {
    let mut builder = QueueManagerBuilder::new(EventEmitter::new(16));
    for number in 0..count {
        builder = builder.with_lane(format!("lane{number}"), LaneConfig::new(1, WIDTH), 1);
    }
    let manager = builder.build().await?;
    manager.start().await?;
    let names: Vec<String> = (0..count).map(|number| format!("lane{number}")).collect();
    let start = Instant::now();
    let mut answers = Vec::with_capacity(tasks);
    for number in 0..tasks {
        answers.push(manager.submit(&names[number % count], Box::new(NoOp)).await?);
    }
    for answer in answers {
        answer.await??;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Pushes all tasks first, because the sink does not take them from several callers at once.
async fn apalis_memory() -> Result<f64, Failed> {
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    async fn no_op(_: u32, worker: WorkerContext) {
        if LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
            drop(worker.stop());
        }
    }
    LEFT.store(TASKS, Ordering::SeqCst);
    let mut store = MemoryStorage::new();
    let start = Instant::now();
    for number in 0..TASKS {
        store.push(number as u32).await.map_err(|error| error.to_string())?;
    }
    let worker = WorkerBuilder::new("bench").backend(store);
    let worker = worker.layer(ConcurrencyLimitLayer::new(WIDTH)).build(no_op);
    worker.run().await.map_err(|error| error.to_string())?;
    Ok(start.elapsed().as_secs_f64())
}
