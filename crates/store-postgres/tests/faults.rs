//! What a Postgres can do to a store: lose replies, lose hints, go away, hold what a newer program wrote.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test stops at anything unexpected, and shares code with others"
)]

mod site;

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use laneway_core::{Scheduler, Timestamp};
use laneway_store::{
    Author, Batch, BatchId, Damage, Durability, Entry, ErrorKind, Head, Log, Store, StoreError, Version,
};
use laneway_store_postgres::{Options, PostgresStore};
use laneway_test_services::{Postgres, Proxy};

use crate::site::{connect, options};

/// One server for all who do not harm it. It ends with the last who has it.
fn shared() -> Arc<Postgres> {
    static SERVER: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
    let mut server = SERVER.lock().unwrap();
    server.upgrade().unwrap_or_else(|| {
        let started = Arc::new(Postgres::start());
        *server = Arc::downgrade(&started);
        started
    })
}

fn entry(number: u128) -> Entry {
    Entry::of(Batch { id: BatchId(number), at: Timestamp(0), events: vec![] })
}

async fn open(url: &str, namespace: &str) -> Log {
    Log::new(Arc::new(PostgresStore::open_with(url, options(namespace)).await.unwrap()))
}

/// What the tail says as soon as the engine is back.
async fn tail_of(log: &Log, after: Version) -> Result<Version, ErrorKind> {
    loop {
        match kind(log.store().tail(after).await) {
            Err(ErrorKind::Unavailable) => tokio::task::yield_now().await,
            told => return told,
        }
    }
}

fn kind<T>(answer: Result<T, StoreError>) -> Result<T, ErrorKind> {
    answer.map_err(|error| error.kind())
}

#[tokio::test]
async fn tables_of_a_newer_program_are_refused() {
    let postgres = shared();
    drop(open(&postgres.url(), "newer").await);
    connect(&postgres).await.batch_execute("INSERT INTO laneway_newer.layout VALUES (9)").await.unwrap();
    let refused = PostgresStore::open_with(&postgres.url(), options("newer")).await.err().unwrap();
    let StoreError::Corrupt { damage, record: None, .. } = refused else { panic!("{refused}") };
    assert_eq!(damage, Damage::UnknownFormat { found: 9, known: 2 });
}

#[tokio::test]
async fn tables_of_an_older_program_are_brought_up_to_date_with_what_they_hold() {
    let postgres = shared();
    let head = open(&postgres.url(), "older").await.append(Head::EMPTY, &entry(1)).await.unwrap();
    let as_before = "SET search_path TO laneway_older;
        ALTER TABLE head DROP COLUMN line, DROP COLUMN append_turn;
        ALTER TABLE log DROP COLUMN append_turn;
        DELETE FROM layout WHERE step > 1;";
    connect(&postgres).await.batch_execute(as_before).await.unwrap();
    let log = open(&postgres.url(), "older").await;
    log.append(head, &entry(2)).await.unwrap();
    let ids: Vec<u128> = log.read(Head::EMPTY).await.unwrap().iter().map(|(_, batch)| batch.id.0).collect();
    assert_eq!(ids, [1, 2]);
}

#[tokio::test]
async fn the_newest_hint_tells_who_has_the_append_turn_however_many_came_before() {
    let postgres = shared();
    let (log, other) = (open(&postgres.url(), "hints").await, open(&postgres.url(), "hints").await);
    let tail = other.store().tail(Version(0));
    let mut head = Head::EMPTY;
    for number in 1..=200 {
        head = log.append(head, &entry(number)).await.unwrap();
    }
    log.store().request_append_turn(Author(7)).await.unwrap();
    log.append(head, &entry(201)).await.unwrap();
    tail.await.unwrap();
    while other.store().tail(Version(200)).await != Ok(Version(201)) {}
    assert_eq!(other.store().newest(), Some((Version(201), Some(Author(7)))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_it_for_the_first_time_at_once() {
    let _running = shared();
    let opens: Vec<_> = (0..8).map(|_| tokio::spawn(open_first())).collect();
    for open in opens {
        assert_eq!(open.await.unwrap().store().head().await, Ok(Head::EMPTY));
    }
}

async fn open_first() -> Log {
    let postgres = shared();
    open(&postgres.url(), "first").await
}

#[tokio::test]
async fn a_reply_lost_after_the_commit_is_found_out_and_nothing_is_written_twice() {
    let postgres = shared();
    let proxy = Proxy::to(postgres.port());
    let log = open(&postgres.url_at(proxy.port()), "replies").await;
    let mut head = Head::EMPTY;
    for number in 1..=20 {
        proxy.lose_replies(u64::from(number % 2 == 0));
        head = log.append(head, &entry(number)).await.unwrap();
        assert_eq!(proxy.replies_to_lose(), 0, "the reply of batch {number} was lost");
    }
    let other = open(&postgres.url(), "replies").await;
    let ids: Vec<u128> = other.read(Head::EMPTY).await.unwrap().iter().map(|(_, batch)| batch.id.0).collect();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_postgres_that_was_killed_is_away_and_then_back_with_everything() {
    let mut postgres = Postgres::start();
    let log = open(&postgres.url(), "default").await;
    let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    let tail = tokio::spawn({
        let store = Arc::clone(log.store());
        async move { store.tail(Version(1)).await }
    });
    postgres.kill();
    assert_eq!(kind(log.append(head, &entry(2)).await), Err(ErrorKind::Unavailable));
    assert_eq!(kind(log.read(Head::EMPTY).await), Err(ErrorKind::Unavailable));
    postgres.restart();
    let head = log.append(head, &entry(2)).await.unwrap();
    assert_eq!(head.version, Version(2));
    assert_eq!(log.read(Head::EMPTY).await.unwrap().len(), 2);
    match tail.await.unwrap() {
        Ok(version) => assert_eq!(version, Version(2)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
    }
    assert_eq!(tail_of(&log, Version(1)).await, Ok(Version(2)));
}

#[tokio::test]
async fn a_notification_that_is_lost_is_not_missed_for_long() {
    let postgres = shared();
    let log = open(&postgres.url(), "unheard").await;
    let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    let tail = tokio::spawn({
        let store = Arc::clone(log.store());
        async move { store.tail(Version(1)).await }
    });
    // Appended as the store does it, but for the hint.
    let sql = "UPDATE laneway_unheard.head SET version = 2, batch = decode(lpad('2', 32, '0'), 'hex')";
    connect(&postgres).await.batch_execute(sql).await.unwrap();
    assert_eq!(tail.await.unwrap(), Ok(Version(2)));
    assert_eq!(head.version, Version(1));
}

#[tokio::test]
async fn a_table_that_is_locked_is_away_after_a_while_and_a_snapshot_half_saved_leaves_nothing() {
    let postgres = shared();
    let options = Options { timeout: Duration::from_secs(3), ..options("locked") };
    let log = Log::new(Arc::new(PostgresStore::open_with(&postgres.url(), options).await.unwrap()));
    let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    let other = connect(&postgres).await;
    other.batch_execute("BEGIN; LOCK TABLE laneway_locked.head, laneway_locked.snapshot_part").await.unwrap();
    assert_eq!(kind(log.append(head, &entry(2)).await), Err(ErrorKind::Unavailable));
    let state = Scheduler::new(0).snapshot();
    let saved = tokio::time::timeout(Duration::from_millis(300), log.save(head, &state)).await;
    assert!(saved.is_err(), "it waits for the table");
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(log.append(head, &entry(2)).await.unwrap().version, Version(2));
    log.save(head, &state).await.unwrap();
    assert_eq!(log.load().await.unwrap().unwrap().0, head);
}

#[tokio::test]
async fn a_log_that_came_back_older_is_noticed_by_everybody() {
    let postgres = shared();
    let log = open(&postgres.url(), "restored").await;
    let second = log.append(log.append(Head::EMPTY, &entry(1)).await.unwrap(), &entry(2)).await.unwrap();
    let fourth = log.append(log.append(second, &entry(3)).await.unwrap(), &entry(4)).await.unwrap();
    // As if it were restored from a backup.
    let back = "DELETE FROM laneway_restored.log WHERE version > 2;
                UPDATE laneway_restored.head SET version = 2, batch = decode(lpad('2', 32, '0'), 'hex')";
    connect(&postgres).await.batch_execute(back).await.unwrap();
    assert_eq!(kind(log.append(fourth, &entry(5)).await), Err(ErrorKind::Conflict));
    assert_eq!(kind(log.read(fourth).await), Err(ErrorKind::Conflict));
    assert_eq!(tail_of(&log, Version(4)).await, Err(ErrorKind::Conflict));
    let third = log.append(second, &entry(33)).await.unwrap();
    let fourth_again = log.append(third, &entry(44)).await.unwrap();
    log.append(fourth_again, &entry(55)).await.unwrap();
    assert_eq!(kind(log.read(fourth).await), Err(ErrorKind::Conflict));
}

#[tokio::test]
async fn durability_is_that_of_the_server() {
    let postgres = shared();
    assert_eq!(open(&postgres.url(), "durable").await.store().durability(), Durability::Backend);
    let client = connect(&postgres).await;
    for (setting, durability) in
        [("synchronous_commit = off", Durability::Backend), ("synchronous_commit = on", Durability::Backend)]
    {
        client.batch_execute(&format!("ALTER ROLE postgres SET {setting}")).await.unwrap();
        assert_eq!(open(&postgres.url(), "durable").await.store().durability(), durability);
    }
    let flushing = Postgres::start_with(&["fsync=on"]);
    assert_eq!(open(&flushing.url(), "durable").await.store().durability(), Durability::Disk);
}

#[tokio::test]
async fn the_clock_is_that_of_postgres() {
    let postgres = shared();
    let store = PostgresStore::open_with(&postgres.url(), options("clock")).await.unwrap();
    let time = store.time().await.unwrap().unwrap();
    let row = connect(&postgres).await.query_one("SELECT extract(epoch FROM now())::bigint", &[]).await;
    let seconds = row.unwrap().get::<_, i64>(0) as u64;
    assert!(time.0 / 1000 <= seconds + 1 && seconds <= time.0 / 1000 + 5, "{time:?} at {seconds}");
}
