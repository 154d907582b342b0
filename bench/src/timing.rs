//! Times that should be close to the shortest possible.

use std::time::{Duration, Instant};

use laneway_engine::{RunError, Task};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::Failed;
use crate::lanes;
use crate::table::{Bound, ROUNDS, Table, median, sorted};

const NAP: Duration = Duration::from_millis(20);

/// As many naps as slots: at most 1.1 naps, plus the time that tokio alone needs in addition to the nap.
pub fn fan_out(table: &mut Table) -> Result<(), Failed> {
    for slots in [8, 64, 256] {
        let name = format!("{slots} naps of 20 ms on {slots} slots, allowed");
        if !table.wants(&name) {
            continue;
        }
        let runtime = lanes::runtime(1)?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let (ours, raw) =
                runtime.block_on(async { Ok::<_, Failed>((naps(slots).await?, raw(slots).await)) })?;
            let nap = NAP.as_secs_f64();
            rounds.push((ours * 1e3, (1.1 * nap + (raw - nap).max(0.0)) * 1e3));
        }
        table.add(&name, "ms", &rounds, Bound::AtMost(1.0));
    }
    Ok(())
}

async fn raw(slots: u32) -> f64 {
    let start = Instant::now();
    let mut set = JoinSet::new();
    (0..slots).for_each(|_| drop(set.spawn(tokio::time::sleep(NAP))));
    set.join_all().await;
    start.elapsed().as_secs_f64()
}

async fn naps(slots: u32) -> Result<f64, Failed> {
    let lanes = lanes::in_memory(slots).await?;
    let start = Instant::now();
    let mut set = JoinSet::new();
    for _ in 0..slots {
        let lanes = lanes.clone();
        set.spawn(async move { lanes.run(Task::new("lane0"), tokio::time::sleep(NAP)).await });
    }
    set.join_all().await.into_iter().collect::<Result<(), RunError>>()?;
    Ok(start.elapsed().as_secs_f64())
}

/// From submission to result on an idle queue.
pub fn idle(table: &mut Table) -> Result<(), Failed> {
    const TIMES: usize = 5000;
    let name = "idle queue, submit to result p50, spawn + oneshot";
    if !table.wants(name) {
        return Ok(());
    }
    let runtime = lanes::runtime(1)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let round = runtime.block_on(async {
            let lanes = lanes::in_memory(8).await?;
            let (mut raw, mut own) = (Vec::new(), Vec::new());
            for _ in 0..TIMES {
                let start = Instant::now();
                let (tell, told) = oneshot::channel();
                tokio::spawn(async move { tell.send(1) });
                told.await?;
                raw.push(start.elapsed().as_nanos() as f64);
                let start = Instant::now();
                lanes.run(Task::new("lane0"), async { 1 }).await?;
                own.push(start.elapsed().as_nanos() as f64);
            }
            Ok::<_, Failed>((median(&sorted(own.into_iter())), median(&sorted(raw.into_iter()))))
        })?;
        rounds.push(round);
    }
    table.add(name, "ns", &rounds, Bound::AtMost(3.0));
    Ok(())
}
