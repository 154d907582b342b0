//! Instructions of one task, counted by callgrind: the same to the digit on the busiest machine.

use std::process::Command;

use laneway_engine::Task;
use tokio::sync::oneshot;

use crate::Failed;
use crate::compare::queue::{Kind, Queue};
use crate::compare::workloads;
use crate::lanes;
use crate::noops;
use crate::table::{Bound, Table};

/// The argument that starts this program as the counted process.
pub const CHILD: &str = "counted";
/// Two sizes. Their difference leaves out work that is done once.
const SIZES: [f64; 2] = [10_000.0, 20_000.0];

/// The bounds only show when something gets slower; the aim is the time.
pub fn measure(table: &mut Table) -> Result<(), Failed> {
    for lanes in ["1", "6"] {
        row(table, lanes, "semaphore + spawn", ("ours", "semaphore"), 3.0)?;
        row(table, lanes, "a3s-lane", ("ours", "a3s-lane"), 0.33)?;
    }
    row(table, "idle", "spawn + oneshot", ("idle", "oneshot"), 3.0)
}

/// A row that compares two workloads of the child.
fn row(table: &mut Table, lanes: &str, other: &str, words: (&str, &str), most: f64) -> Result<(), Failed> {
    let name = match lanes {
        "idle" => format!("instructions, idle queue, {other}"),
        _ => format!("instructions, no-op in {lanes} lanes, {other}"),
    };
    if table.wants(&name) {
        let round = (each(words.0, lanes)?, each(words.1, lanes)?);
        table.add(&name, "", &[round], Bound::AtMost(most));
    }
    Ok(())
}

fn each(what: &str, lanes: &str) -> Result<f64, Failed> {
    let [few, many] = SIZES;
    Ok((count(what, lanes, many)? - count(what, lanes, few)?) / (many - few))
}

fn count(what: &str, lanes: &str, tasks: f64) -> Result<f64, Failed> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([CHILD, what, lanes, &tasks.to_string()])
        .output()
        .map_err(|error| format!("cannot run valgrind, which counts instructions: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let line = told.lines().find(|line| line.contains("Collected :"));
    let line = line.filter(|_| output.status.success()).ok_or_else(|| format!("callgrind: {told}"))?;
    Ok(line.rsplit(':').next().unwrap_or_default().trim().parse()?)
}

/// Runs the counted workload: which one, in how many lanes, how many tasks.
pub fn child(words: &[String]) -> Result<(), Failed> {
    let [what, lanes, tasks] = words else {
        return Err("a child needs a workload, how many lanes and how many tasks".into());
    };
    let (lanes, tasks) = (lanes.parse().unwrap_or(1), tasks.parse()?);
    lanes::runtime(1)?.block_on(async {
        match what.as_str() {
            "ours" => noops::ours(tasks, lanes).await.map(drop),
            "contended" => contended(tasks).await,
            "semaphore" => noops::semaphore(tasks, lanes).await.map(drop),
            "a3s-lane" => noops::a3s_lane(tasks, lanes).await.map(drop),
            "idle" => idle(tasks).await,
            "oneshot" => oneshots(tasks).await,
            other => Err(format!("there is no workload {other}").into()),
        }
    })
}

/// The no-ops of `compare`, from many callers.
async fn contended(tasks: usize) -> Result<(), Failed> {
    let queue = Queue::open(Kind::Memory, workloads::WIDTH, 0).await?;
    workloads::no_ops(&queue, tasks).await.map(drop)
}

async fn idle(times: usize) -> Result<(), Failed> {
    let lanes = lanes::in_memory(8).await?;
    for _ in 0..times {
        lanes.run(Task::new("lane0"), async { 1 }).await?;
    }
    Ok(())
}

async fn oneshots(times: usize) -> Result<(), Failed> {
    for _ in 0..times {
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move { tell.send(1) });
        told.await?;
    }
    Ok(())
}
