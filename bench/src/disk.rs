//! Durable tasks, compared with plain SQLite; and a long queue, compared with an empty one.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use laneway_engine::{Context, Failure, Handle, Options, RunError, Task};
use laneway_store_sqlite::SqliteStore;
use rusqlite::{Connection, params};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::Failed;
use crate::lanes::{block, runtime};
use crate::table::{Bound, ROUNDS, Table, median, sorted};

const CALLERS: usize = 256;
const TASKS_EACH: usize = 40;
const WAITING: usize = 100_000;

/// Durable submit, run and finish from many callers. Plain SQLite inserts, claims and completes the same tasks, one batch
/// for all callers.
pub fn throughput(table: &mut Table) -> Result<(), Failed> {
    let name = "on disk, 256 callers, plain SQLite in batches";
    if !table.wants(name) {
        return Ok(());
    }
    let before = syncs_per_second()?;
    let runtime = runtime(1)?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let tasks = (CALLERS * TASKS_EACH) as f64 / 1000.0;
        let place = tempfile::tempdir()?;
        let ours = runtime.block_on(ours(place.path()))?;
        let place = tempfile::tempdir()?;
        rounds.push((tasks / ours, tasks / plain(place.path())?));
    }
    table.add(name, "k/s", &rounds, Bound::AtLeast(0.5));
    println!("    the disk did {before:.0} syncs a second before and {:.0} after", syncs_per_second()?);
    Ok(())
}

async fn open(place: &Path, slots: u32) -> Result<Handle, Failed> {
    let options =
        Options::default().handler("echo", |_: Context, payload: Value| async move { Ok(payload) })?;
    let forever = |_: Context, _: Value| std::future::pending::<Result<(), Failure>>();
    let lanes = Handle::open(Arc::new(SqliteStore::open(place)?), options.handler("wait", forever)?).await?;
    lanes.configure(vec![block("global", 1_000_000)?, block("lane", slots)?]).await?;
    Ok(lanes)
}

async fn ours(place: &Path) -> Result<f64, Failed> {
    let lanes = open(place, CALLERS as u32).await?;
    let start = Instant::now();
    let mut set = JoinSet::new();
    for caller in 0..CALLERS {
        let lanes = lanes.clone();
        set.spawn(async move {
            for _ in 0..TASKS_EACH {
                lanes.submit(Task::new("lane").kind("echo").payload(caller)).await?.wait().await?;
            }
            Ok(())
        });
    }
    set.join_all().await.into_iter().collect::<Result<(), RunError>>()?;
    let seconds = start.elapsed().as_secs_f64();
    lanes.shutdown(std::time::Duration::from_secs(5)).await;
    Ok(seconds)
}

fn plain(place: &Path) -> Result<f64, Failed> {
    let mut db = Connection::open(place.join("plain.db"))?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch(
        "CREATE TABLE task (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload BLOB NOT NULL, result BLOB);
         CREATE INDEX waiting ON task (state, id)",
    )?;
    let start = Instant::now();
    for batch in 0..TASKS_EACH {
        let ids = (0..CALLERS).map(|caller| (batch * CALLERS + caller) as i64);
        let insert = db.transaction()?;
        for id in ids.clone() {
            let sql = "INSERT INTO task (id, state, payload) VALUES (?, 0, ?)";
            insert.prepare_cached(sql)?.execute(params![id, b"255"])?;
        }
        insert.commit()?;
        let claim = db.transaction()?;
        for id in ids.clone() {
            claim.prepare_cached("UPDATE task SET state = 1 WHERE id = ? AND state = 0")?.execute([id])?;
        }
        claim.commit()?;
        let complete = db.transaction()?;
        for id in ids {
            let sql = "UPDATE task SET state = 2, result = ? WHERE id = ? AND state = 1";
            complete.prepare_cached(sql)?.execute(params![b"255", id])?;
        }
        complete.commit()?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// One durable submit after another, in turns with an empty queue.
pub fn submit(table: &mut Table) -> Result<(), Failed> {
    const SUBMITS: usize = 100;
    let name = "durable submit, 100 000 waiting, none waiting";
    if !table.wants(name) {
        return Ok(());
    }
    let runtime = runtime(1)?;
    let rounds = runtime.block_on(async {
        let (full_place, empty_place) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let (full, empty) = (open(full_place.path(), 1).await?, open(empty_place.path(), 1).await?);
        fill(&full, WAITING).await?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let (mut of_full, mut of_empty) = (Vec::new(), Vec::new());
            for _ in 0..SUBMITS {
                of_full.push(one(&full).await?);
                of_empty.push(one(&empty).await?);
            }
            rounds.push((median(&sorted(of_full.into_iter())), median(&sorted(of_empty.into_iter()))));
        }
        for lanes in [full, empty] {
            lanes.shutdown(std::time::Duration::ZERO).await;
        }
        Ok::<_, Failed>(rounds)
    })?;
    table.add(name, "us", &rounds, Bound::AtMost(1.2));
    Ok(())
}

async fn one(lanes: &Handle) -> Result<f64, Failed> {
    let start = Instant::now();
    lanes.submit(Task::new("lane").kind("wait").payload(1)).await?.detach();
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Adds `count` waiting tasks from many callers at once.
pub async fn fill(lanes: &Handle, count: usize) -> Result<(), Failed> {
    let mut set = JoinSet::new();
    for _ in 0..CALLERS {
        let lanes = lanes.clone();
        set.spawn(async move {
            for _ in 0..count.div_ceil(CALLERS) {
                lanes.submit(Task::new("lane").kind("wait").payload("something to do")).await?.detach();
            }
            Ok(())
        });
    }
    set.join_all().await.into_iter().collect::<Result<(), laneway_engine::Error>>()?;
    Ok(())
}

/// Leaves a closed store on disk in which [`WAITING`] tasks wait.
pub async fn left_behind(place: &Path) -> Result<(), Failed> {
    let lanes = open(place, 1).await?;
    fill(&lanes, WAITING).await?;
    lanes.shutdown(std::time::Duration::ZERO).await;
    Ok(())
}

/// Opens the store that [`left_behind`] left.
pub async fn reopen(place: &Path) -> Result<Handle, Failed> {
    let forever = |_: Context, _: Value| std::future::pending::<Result<(), Failure>>();
    let options = Options::default().handler("wait", forever)?;
    Ok(Handle::open(Arc::new(SqliteStore::open(place)?), options).await?)
}

/// How many small writes a second the disk can flush.
pub fn syncs_per_second() -> Result<f64, Failed> {
    use std::io::Write;
    const SYNCS: u32 = 200;
    let mut file = tempfile::tempfile()?;
    let start = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[0; 512])?;
        file.sync_data()?;
    }
    Ok(f64::from(SYNCS) / start.elapsed().as_secs_f64())
}
