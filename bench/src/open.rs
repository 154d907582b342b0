//! Opening a store with a hundred thousand waiting tasks, compared with reading and decoding its bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_store::{Head, Log};
use laneway_store_sqlite::SqliteStore;

use crate::Failed;
use crate::disk::{left_behind, reopen};
use crate::lanes::runtime;
use crate::table::{Bound, ROUNDS, Table};

pub fn measure(table: &mut Table) -> Result<(), Failed> {
    let name = "opening with 100 000 waiting, read and decode";
    if !table.wants(name) {
        return Ok(());
    }
    let runtime = runtime(1)?;
    let rounds = runtime.block_on(async {
        let place = tempfile::tempdir()?;
        left_behind(place.path()).await?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let log = Log::new(Arc::new(SqliteStore::open(place.path())?));
            let decoded = decode(&log).await?;
            let read = start.elapsed().as_secs_f64() * 1e3;
            if decoded == 0 {
                return Err("the store holds nothing".into());
            }
            drop(log);
            let start = Instant::now();
            let lanes = reopen(place.path()).await?;
            let ours = start.elapsed().as_secs_f64() * 1e3;
            lanes.shutdown(Duration::ZERO).await;
            rounds.push((ours, read));
        }
        Ok::<_, Failed>(rounds)
    })?;
    table.add(name, "ms", &rounds, Bound::AtMost(2.0));
    Ok(())
}

/// Reads and decodes what opening reads, and builds nothing from it. Returns the number of records.
async fn decode(log: &Log) -> Result<usize, Failed> {
    let mut records = 0;
    let mut head = match log.load().await? {
        Some((head, state)) => {
            records += 1;
            drop(std::hint::black_box(state));
            head
        }
        None => Head::EMPTY,
    };
    loop {
        let batches = log.read(head).await?;
        let Some((last, _)) = batches.last() else { return Ok(records) };
        head = *last;
        records += std::hint::black_box(batches).len();
    }
}
