//! How many events a second reach the disk, compared with a bare log in SQLite on the same disk.
//!
//! The contestants take turns, because the speed of a shared disk changes from second to second. Report only:
//! nothing fails here.

#![allow(clippy::unwrap_used, reason = "a benchmark may stop at anything unexpected")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_core::{Event, Fence, LaneName, Millis, Name, Owner, ReplicaId, TaskId, TaskSpec, Timestamp};
use laneway_store::{Batch, BatchId, Entry, Head, Log, MemoryStore, Store};
use laneway_store_sqlite::SqliteStore;
use rusqlite::Connection;

/// For all contestants together.
const HOW_LONG: Duration = Duration::from_secs(6);
/// Appends of one pipeline that are under way together.
const DEPTH: u128 = 64;

/// A third each of accepted, started and ended.
fn events(count: usize) -> Vec<Event> {
    let event = |number: usize| {
        let task = TaskId((1_790_000_000_000 << 80) + number as u128 / 3);
        match number % 3 {
            0 => Event::Submitted {
                task,
                spec: Box::new(TaskSpec::new(
                    Name::new("chat").unwrap(),
                    vec![LaneName::main(), LaneName::session("alice").unwrap()],
                )),
                priority: 2,
                handler: laneway_core::Handler::Internal,
                wait_until: None,
                deadline: None,
            },
            1 => Event::Granted {
                task,
                attempt: 1,
                fence: Fence(number as u64),
                lease_until: Timestamp(1_790_000_030_000),
                lease: Millis(30_000),
                timeout_at: None,
                owner: Owner::Replica(ReplicaId::SOLE),
                borrowed: vec![],
            },
            _ => Event::Ended { task, end: laneway_core::End::Completed },
        }
    };
    (0..count).map(event).collect()
}

/// Appends something for the n-th time; how many batches that were.
type Turn = Box<dyn FnMut(u128) -> u128>;

fn race(events: usize, mut contestants: Vec<(&str, Turn)>) {
    let start = Instant::now();
    let mut times = vec![(0, Vec::new()); contestants.len()];
    for number in 1.. {
        for ((_, turn), (batches, times)) in contestants.iter_mut().zip(&mut times) {
            let before = Instant::now();
            *batches += turn(number);
            times.push(before.elapsed());
        }
        if start.elapsed() > HOW_LONG {
            break;
        }
    }
    for ((name, _), (batches, mut times)) in contestants.into_iter().zip(times) {
        let rate = batches as f64 / times.iter().sum::<Duration>().as_secs_f64();
        times.sort();
        let (half, most) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!(
            "{events:>7} {name:>8} {rate:>12.0} {:>12.0} {half:>10.1?} {most:>10.1?}",
            rate * events as f64
        );
    }
}

fn through(store: Arc<dyn Store>, events: Vec<Event>) -> Turn {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let log = Log::new(store);
    let mut head = Head::EMPTY;
    Box::new(move |number| {
        let batch = Batch { id: BatchId(number), at: Timestamp(1), events: events.clone() };
        head = runtime.block_on(log.append(head, &Entry::of(batch))).unwrap();
        1
    })
}

/// Appends that do not wait for each other: what writing them together is worth.
fn piped(store: Arc<dyn Store>, events: Vec<Event>) -> Turn {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let log = Log::new(store);
    let mut head = Head::EMPTY;
    Box::new(move |round| {
        runtime.block_on(async {
            let mut answers = Vec::new();
            for number in 0..DEPTH {
                let id = BatchId(round * DEPTH + number);
                let batch = Batch { id, at: Timestamp(1), events: events.clone() };
                let append = log.seal(head, &Entry::of(batch)).unwrap();
                head = append.outcome();
                let store = Arc::clone(log.store());
                answers.push(tokio::spawn(async move { store.append(append).await }));
            }
            for answer in answers {
                answer.await.unwrap().unwrap();
            }
        });
        DEPTH
    })
}

fn bare(dir: &Path, events: Vec<Event>) -> Turn {
    let db = Connection::open(dir.join("bare.db")).unwrap();
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    db.pragma_update(None, "synchronous", "FULL").unwrap();
    db.execute_batch("CREATE TABLE log (version INTEGER PRIMARY KEY, record BLOB NOT NULL)").unwrap();
    let batch = Batch { id: BatchId(1), at: Timestamp(1), events };
    let record = Log::new(Arc::new(MemoryStore::new())).seal(Head::EMPTY, &Entry::of(batch)).unwrap().record;
    Box::new(move |number| {
        let mut insert = db.prepare_cached("INSERT INTO log VALUES (?, ?)").unwrap();
        insert.execute(rusqlite::params![number as i64, &record[..]]).unwrap();
        1
    })
}

fn main() {
    println!("{:>7} {:>8} {:>12} {:>12} {:>10} {:>10}", "events", "", "batches/s", "events/s", "p50", "p99");
    for count in [1, 32, 256] {
        let events = events(count);
        let dir = tempfile::TempDir::new_in(".").unwrap();
        let open = |name: &str| Arc::new(SqliteStore::open(dir.path().join(name)).unwrap());
        race(
            count,
            vec![
                ("memory", through(Arc::new(MemoryStore::new()), events.clone())),
                ("bare", bare(dir.path(), events.clone())),
                ("sqlite", through(open("one"), events.clone())),
                ("piped", piped(open("piped"), events.clone())),
            ],
        );
    }
}
