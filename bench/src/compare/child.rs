//! Work in a separate process, which grows or is killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use a3s_lane::{JobOptions, JobQueueBackend, LocalJobQueue};
use laneway_core::Retry;
use laneway_engine::{Context, Failure, Handle, Options, Task};
use laneway_store::Store;
use laneway_store_redis::RedisStore;
use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::Failed;
use crate::compare::queue::{Kind, Queue, Work};
use crate::lanes::{block, runtime};
use crate::memory::resident;

/// The argument that starts this program as such a process.
pub const CHILD: &str = "compare-child";
/// How many tasks wait when memory is measured.
pub const WAITING: usize = 100_000;
/// How many tasks are accepted before the kill.
pub const ACCEPTED: usize = 1000;

/// `memory|accept|count KIND PLACE`: prints one number.
pub fn child(words: &[String]) -> Result<(), Failed> {
    let [verb, kind, place] = words else { return Err("a child needs a verb, a queue and a place".into()) };
    runtime(1)?.block_on(async {
        match verb.as_str() {
            "memory" => memory(kind, place).await,
            "accept" => accept(kind, place).await,
            "count" => count(kind, place).await,
            _ => Err(format!("no verb {verb:?}").into()),
        }
    })
}

/// Starts a child, whose output this process reads.
pub fn start(words: [&str; 3]) -> Result<Child, Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.arg(CHILD).args(words).stdout(Stdio::piped()).spawn()?)
}

/// The number that the child prints first.
pub fn number(child: &mut Child) -> Result<f64, Failed> {
    let out = child.stdout.take().ok_or("the child has no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    Ok(line.trim().parse().map_err(|_| format!("a child printed {line:?} instead of a number"))?)
}

async fn store(kind: &str, place: &str) -> Result<Arc<dyn Store>, Failed> {
    Ok(match kind {
        "disk" => Arc::new(SqliteStore::open(Path::new(place))?),
        _ => Arc::new(RedisStore::open(place).await?),
    })
}

async fn open(kind: &str, place: &str) -> Result<Handle, Failed> {
    let forever = |_: Context, _: Value| std::future::pending::<Result<(), Failure>>();
    let options = Options::default().handler("wait", forever)?;
    let lanes = match kind {
        "memory" => Handle::in_memory(options),
        "disk" => Handle::open(store(kind, place).await?, options).await?,
        _ => Handle::join(store(kind, place).await?, options).await?,
    };
    lanes.configure(vec![block("global", 1_000_000)?, block("lane", 4)?]).await?;
    Ok(lanes)
}

/// Lets many tasks wait and prints the growth of the process per task, in bytes.
async fn memory(kind: &str, place: &str) -> Result<(), Failed> {
    let forever = || Work::new(std::future::pending());
    let grown = match kind {
        "a3s" | "apalis" => {
            let queue = Queue::open(if kind == "a3s" { Kind::A3s } else { Kind::Apalis }, 1, 0).await?;
            queue.submit(forever()).await?;
            let before = resident()?;
            for _ in 0..WAITING {
                queue.submit(forever()).await?;
            }
            resident()?.saturating_sub(before)
        }
        _ => {
            let lanes = open(kind, place).await?;
            submit(&lanes, 10, Retry::NONE).await?;
            let before = resident()?;
            submit(&lanes, WAITING, Retry::NONE).await?;
            resident()?.saturating_sub(before)
        }
    };
    println!("{:.1}", grown as f64 / WAITING as f64);
    Ok(())
}

/// Submits from several callers at once, because each submission waits until its task is stored.
async fn submit(lanes: &Handle, count: usize, retry: Retry) -> Result<(), Failed> {
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..256 {
        let lanes = lanes.clone();
        callers.spawn(async move {
            for _ in (caller..count).step_by(256) {
                let task = Task::new("lane").kind("wait");
                // A task need not store what its lane already says.
                let task = if retry == Retry::NONE { task } else { task.retry(retry) };
                lanes.submit(task).await?.detach();
            }
            Ok::<_, laneway_engine::Error>(())
        });
    }
    Ok(callers.join_all().await.into_iter().collect::<Result<(), _>>()?)
}

/// Accepts tasks, prints their number, and waits to be killed.
async fn accept(kind: &str, place: &str) -> Result<(), Failed> {
    match kind {
        "a3s" => {
            let queue = LocalJobQueue::open("kill", Path::new(place).join("jobs.json")).await?;
            for number in 0..ACCEPTED {
                queue.add("wait", json!({"number": number}), JobOptions::default()).await?;
            }
        }
        _ => submit(&open(kind, place).await?, ACCEPTED, Retry::STANDARD).await?,
    }
    println!("{ACCEPTED}");
    std::future::pending().await
}

/// Prints how many tasks the queue still has.
async fn count(kind: &str, place: &str) -> Result<(), Failed> {
    let there = match kind {
        "a3s" => {
            LocalJobQueue::open("kill", Path::new(place).join("jobs.json")).await?.stats().await?.waiting
        }
        _ => open(kind, place).await?.tasks().await?.len(),
    };
    println!("{there}");
    Ok(())
}
