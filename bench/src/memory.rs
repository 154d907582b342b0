//! What a waiting task costs in total: the growth of a process that holds a million of them.

use std::process::Command;

use laneway_engine::{Context, Failure, Task};
use serde_json::Value;

use crate::Failed;
use crate::lanes;
use crate::table::{Bound, Table};

/// The argument that starts this program as the measured process.
pub const CHILD: &str = "waiting-tasks";
const WAITING: u64 = 1_000_000;
const BYTES_MAX: f64 = 400.0;

pub fn measure(table: &mut Table) -> Result<(), Failed> {
    let name = "1 000 000 waiting, bytes each, allowed";
    if table.wants(name) {
        let mut rounds = Vec::new();
        for _ in 0..3 {
            // A process of its own has no memory left over from other rows.
            let output = Command::new(std::env::current_exe()?).args([CHILD, "1000000"]).output()?;
            let told = String::from_utf8(output.stdout)?;
            let bytes: f64 =
                told.trim().parse().map_err(|_| format!("the child printed {told:?} instead of a number"))?;
            rounds.push((bytes, BYTES_MAX));
        }
        table.add(name, "B", &rounds, Bound::AtMost(1.0));
    }
    Ok(())
}

/// Lets `count` tasks wait and prints the growth of the process per task.
pub fn child(count: &str) -> Result<(), Failed> {
    let count: u64 = count.parse().unwrap_or(WAITING);
    lanes::runtime(1)?.block_on(async {
        let lanes = lanes::in_memory(1).await?;
        let forever = |_: Context, _: Value| std::future::pending::<Result<(), Failure>>();
        lanes.handler("wait", forever)?;
        // The first task does the setup that happens once.
        lanes.submit(Task::new("lane0").kind("wait")).await?.detach();
        let before = resident()?;
        for _ in 0..count {
            lanes.submit(Task::new("lane0").kind("wait")).await?.detach();
        }
        println!("{:.1}", resident()?.saturating_sub(before) as f64 / count as f64);
        Ok(())
    })
}

pub fn resident() -> Result<u64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("an empty VmRSS")?.parse()?;
    Ok(kilobytes * 1024)
}
