//! What a Redis can do to a store: forget scripts, lose replies, go away, come back with less, throw keys away.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test stops at anything unexpected, and shares code with others"
)]

mod site;

use std::sync::Arc;
use std::time::Duration;

use laneway_core::Timestamp;
use laneway_store::{
    Batch, BatchId, Damage, Durability, Entry, ErrorKind, Head, HistoryQuery, Log, Store, StoreError, Version,
};
use laneway_store_redis::{Options, RedisStore};
use laneway_test_services::{Proxy, Redis, Signal};
use redis::cmd;

use crate::site::{connect, options};

fn entry(number: u128) -> Entry {
    Entry::of(Batch { id: BatchId(number), at: Timestamp(0), events: vec![] })
}

async fn open(url: &str) -> Log {
    Log::new(Arc::new(RedisStore::open(url).await.unwrap()))
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
async fn a_redis_that_would_evict_keys_is_refused() {
    let redis = Redis::start();
    for policy in ["allkeys-lru", "volatile-ttl"] {
        cmd("CONFIG").arg("SET").arg("maxmemory-policy").arg(policy).exec(&mut connect(&redis)).unwrap();
        let refused = RedisStore::open(&redis.url()).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Corrupt);
        let text = refused.to_string();
        assert!(text.contains(policy) && text.contains("set maxmemory-policy to noeviction"), "{text}");
    }
    // One that becomes so later goes on, and is complained about until it is repaired.
    cmd("CONFIG").arg("SET").arg("maxmemory-policy").arg("noeviction").exec(&mut connect(&redis)).unwrap();
    let log = open(&redis.url()).await;
    log.append(Head::EMPTY, &entry(1)).await.unwrap();
    let mut warnings = log.store().warnings().unwrap();
    let set = |policy: &str| {
        let mut other = connect(&redis);
        cmd("CONFIG").arg("SET").arg("maxmemory-policy").arg(policy).exec(&mut other).unwrap();
        let kill = cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes").to_owned();
        kill.exec(&mut other).unwrap();
    };
    set("allkeys-random");
    let warning = warnings.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert!(warning.contains("allkeys-random") && warning.contains("set maxmemory-policy"), "{warning}");
    assert_eq!(log.store().head().await.unwrap().version, Version(1));
    set("noeviction");
    warnings.wait_for(Option::is_none).await.unwrap();
}

#[tokio::test]
async fn a_layout_of_a_newer_program_is_refused() {
    let redis = Redis::start();
    cmd("SET").arg("laneway:{default}:layout").arg(9).exec(&mut connect(&redis)).unwrap();
    let refused = RedisStore::open(&redis.url()).await.err().unwrap();
    let StoreError::Corrupt { damage, record: None, .. } = refused else { panic!("{refused}") };
    assert_eq!(damage, Damage::UnknownFormat { found: 9, known: 1 });
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_without_repeating_it() {
    for url in ["redis:/secret", "http://secret@host", "redis://127.0.0.1:1/secret"] {
        let refused = RedisStore::open(url).await.err().unwrap().to_string();
        assert!(!refused.contains("secret") && refused.contains("looks like redis://"), "{refused}");
    }
    let refused = RedisStore::open_with("redis://127.0.0.1", options("")).await.err().unwrap().to_string();
    assert!(refused.contains("a namespace has 1 to 128 bytes"), "{refused}");
    let closed = format!("redis://user:secret@127.0.0.1:{}", laneway_test_services::free_port());
    let refused = RedisStore::open(&closed).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(!refused.to_string().contains("secret"), "{refused}");
}

#[tokio::test]
async fn scripts_that_were_flushed_are_sent_again() {
    let redis = Redis::start();
    let log = open(&redis.url()).await;
    let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    cmd("SCRIPT").arg("FLUSH").exec(&mut connect(&redis)).unwrap();
    let head = log.append(head, &entry(2)).await.unwrap();
    cmd("SCRIPT").arg("FLUSH").exec(&mut connect(&redis)).unwrap();
    log.save(head, &laneway_core::Scheduler::new(0).snapshot()).await.unwrap();
    assert_eq!(log.read(Head::EMPTY).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_reply_lost_after_the_commit_is_found_out_and_nothing_is_written_twice() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let log = open(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    let mut head = Head::EMPTY;
    for number in 1..=20 {
        proxy.lose_replies(u64::from(number % 2 == 0));
        head = log.append(head, &entry(number)).await.unwrap();
        assert_eq!(proxy.replies_to_lose(), 0, "the reply of batch {number} was lost");
    }
    // As a connection without the proxy sees it.
    let other = open(&redis.url()).await;
    let ids: Vec<u128> = other.read(Head::EMPTY).await.unwrap().iter().map(|(_, batch)| batch.id.0).collect();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_redis_that_was_killed_is_away_and_then_back_with_everything() {
    let mut redis = Redis::start_with(&["--appendfsync", "always"]);
    let log = open(&redis.url()).await;
    assert_eq!(log.store().durability(), Durability::Disk);
    let head = log.append(Head::EMPTY, &entry(1)).await.unwrap();
    let tail = tokio::spawn({
        let store = Arc::clone(log.store());
        async move { store.tail(Version(1)).await }
    });
    redis.kill();
    assert_eq!(kind(log.append(head, &entry(2)).await), Err(ErrorKind::Unavailable));
    assert_eq!(kind(log.read(Head::EMPTY).await), Err(ErrorKind::Unavailable));
    redis.restart();
    let head = log.append(head, &entry(2)).await.unwrap();
    assert_eq!(head.version, Version(2));
    assert_eq!(log.read(Head::EMPTY).await.unwrap().len(), 2);
    // The follower gets the new version or an error; it does not wait for ever.
    match tail.await.unwrap() {
        Ok(version) => assert_eq!(version, Version(2)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
    }
    assert_eq!(tail_of(&log, Version(1)).await, Ok(Version(2)));
}

/// Ends the connections over which commands go, and not the one over which the log is followed.
fn end_connections(redis: &Redis) {
    let mut connection = connect(redis);
    let list: String = cmd("CLIENT").arg("LIST").query(&mut connection).unwrap();
    let others =
        list.lines().filter(|client| !client.contains("cmd=xread") && !client.contains("cmd=client|list"));
    for id in others.filter_map(|client| client.strip_prefix("id=")?.split(' ').next()) {
        cmd("CLIENT").arg("KILL").arg("ID").arg(id).exec(&mut connection).unwrap();
    }
}

#[tokio::test]
async fn a_follower_that_is_not_polled_keeps_no_other_caller_from_redis() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let log = open(&format!("redis://127.0.0.1:{}/0", proxy.port())).await;
    log.append(Head::EMPTY, &entry(1)).await.unwrap();
    assert_eq!(log.store().tail(Version(0)).await, Ok(Version(1)));
    proxy.delay(Duration::from_millis(200));
    end_connections(&redis);
    // Beyond what the follower knows: it asks Redis, over a new connection.
    let store = Arc::clone(log.store());
    let mut tail = std::pin::pin!(store.tail(Version(9)));
    let is_asking = tokio::time::timeout(Duration::from_millis(300), tail.as_mut()).await.is_err();
    assert!(is_asking, "a new connection takes several answers");
    let head = tokio::time::timeout(Duration::from_secs(60), log.store().head()).await;
    assert_eq!(head.unwrap().unwrap().version, Version(1));
    assert_eq!(kind(tail.await), Err(ErrorKind::Conflict));
}

#[tokio::test]
async fn a_redis_that_does_not_answer_is_away_after_a_while() {
    let redis = Redis::start();
    let options = Options { timeout: Duration::from_secs(2), ..Options::default() };
    let log = Log::new(Arc::new(RedisStore::open_with(&redis.url(), options).await.unwrap()));
    redis.signal(Signal::Stop);
    let answer = log.append(Head::EMPTY, &entry(1)).await;
    redis.signal(Signal::Continue);
    assert_eq!(kind(answer), Err(ErrorKind::Unavailable));
    // Whether or not the first one got there, the second is right.
    assert_eq!(log.append(Head::EMPTY, &entry(1)).await.unwrap().version, Version(1));
    assert_eq!(log.read(Head::EMPTY).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_redis_that_came_back_older_is_noticed_by_every_caller() {
    let mut redis = Redis::start();
    let log = open(&redis.url()).await;
    let second = log.append(log.append(Head::EMPTY, &entry(1)).await.unwrap(), &entry(2)).await.unwrap();
    let older = redis.copy();
    let fourth = log.append(log.append(second, &entry(3)).await.unwrap(), &entry(4)).await.unwrap();
    assert_eq!(log.store().tail(Version(3)).await, Ok(Version(4)));
    redis.restart_from(&older);
    assert_eq!(kind(log.append(fourth, &entry(5)).await), Err(ErrorKind::Conflict));
    assert_eq!(kind(log.read(fourth).await), Err(ErrorKind::Conflict));
    assert_eq!(tail_of(&log, Version(4)).await, Err(ErrorKind::Conflict));
    // Another log grows over the lost one: a reader of the lost one gets a conflict, and never reads on.
    let other = open(&redis.url()).await;
    let third = other.append(second, &entry(33)).await.unwrap();
    let fourth_again = other.append(third, &entry(44)).await.unwrap();
    assert_eq!(kind(log.append(fourth, &entry(5)).await), Err(ErrorKind::Conflict));
    other.append(fourth_again, &entry(55)).await.unwrap();
    assert_eq!(kind(log.read(fourth).await), Err(ErrorKind::Conflict));
    redis.restart_empty();
    assert_eq!(kind(log.read(second).await), Err(ErrorKind::Conflict));
    assert_eq!(log.store().head().await, Ok(Head::EMPTY));
}

#[tokio::test]
async fn batches_of_a_log_that_was_thrown_away_are_not_mixed_with_those_of_the_next() {
    let redis = Redis::start();
    let (a, b) = (open(&redis.url()).await, open(&redis.url()).await);
    let mut head = Head::EMPTY;
    for number in 1..=3 {
        // The one follows, and so has each of them at hand.
        let entry = entry(number);
        let (grown, appended) = tokio::join!(a.store().tail(head.version), b.append(head, &entry));
        head = appended.unwrap();
        assert_eq!(grown.unwrap(), head.version);
    }
    cmd("FLUSHALL").exec(&mut connect(&redis)).unwrap();
    let mut head = Head::EMPTY;
    for number in 11..=14 {
        head = b.append(head, &entry(number)).await.unwrap();
    }
    assert_eq!(a.store().tail(Version(3)).await.unwrap(), Version(4));
    let (restored, _) = a.restore(7).await.unwrap();
    assert_eq!(restored, head);
}

#[tokio::test]
async fn namespaces_are_logs_of_their_own() {
    let redis = Redis::start();
    for namespace in ["a", "b", "a}:log", "a%7d"] {
        let store = RedisStore::open_with(&redis.url(), options(namespace)).await.unwrap();
        let log = Log::new(Arc::new(store));
        log.append(Head::EMPTY, &entry(1)).await.unwrap();
    }
}

#[tokio::test]
async fn in_a_cluster_the_node_that_has_the_keys_is_found() {
    let start = || {
        let bus = laneway_test_services::free_port().to_string();
        (Redis::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus]), bus)
    };
    let ((without, _), (owner, bus)) = (start(), start());
    cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16383).exec(&mut connect(&owner)).unwrap();
    let mut connection = connect(&without);
    cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(owner.port()).arg(bus).exec(&mut connection).unwrap();
    // The nodes have to learn of each other before they can send anybody anywhere.
    let log = loop {
        match RedisStore::open(&without.url()).await {
            Ok(store) => break Log::new(Arc::new(store)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    };
    let mut whole = entry(1);
    whole.payloads.push((laneway_core::BlobId(std::num::NonZeroU128::MIN), "payload".into()));
    whole.finished.push((finished(), None));
    let head = log.append(Head::EMPTY, &whole).await.unwrap();
    log.save(head, &laneway_core::Scheduler::new(0).snapshot()).await.unwrap();
    assert_eq!(log.store().tail(Version(0)).await, Ok(Version(1)));
    assert_eq!(log.history(HistoryQuery { max: 10, ..HistoryQuery::default() }).await.unwrap().len(), 1);
    let there: u64 = cmd("XLEN").arg("laneway:{default}:log").query(&mut connect(&owner)).unwrap();
    assert_eq!(there, 1);
}

#[tokio::test]
async fn the_clock_is_that_of_redis() {
    let redis = Redis::start();
    let store = RedisStore::open(&redis.url()).await.unwrap();
    let time = store.time().await.unwrap().unwrap();
    let (seconds, _): (u64, u64) = cmd("TIME").query(&mut connect(&redis)).unwrap();
    assert!(time.0 / 1000 <= seconds && seconds <= time.0 / 1000 + 5, "{time:?} at {seconds}");
}

#[tokio::test]
async fn with_replicas_an_append_is_done_when_they_have_it() {
    let redis = Redis::start();
    let options = Options { replicas: 1, timeout: Duration::from_secs(2), ..Options::default() };
    let log = Log::new(Arc::new(RedisStore::open_with(&redis.url(), options).await.unwrap()));
    assert_eq!(log.store().durability(), Durability::Replicated);
    // Without a replica the fate of the batch is unknown, so the append fails.
    assert_eq!(kind(log.append(Head::EMPTY, &entry(1)).await), Err(ErrorKind::Unavailable));
    let port = redis.port().to_string();
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &port]);
    let head = loop {
        // Until the replica has caught up.
        if let Ok(head) = log.append(Head::EMPTY, &entry(1)).await {
            break head;
        }
    };
    let head = log.append(head, &entry(2)).await.unwrap();
    let there: u64 = cmd("XLEN").arg("laneway:{default}:log").query(&mut connect(&replica)).unwrap();
    assert_eq!((head.version, there), (Version(2), 2));
}

#[tokio::test]
async fn finished_work_goes_by_itself_and_nothing_else_does() {
    let redis = Redis::start();
    let options = Options { history_ttl: Some(Duration::from_secs(600)), ..Options::default() };
    let log = Log::new(Arc::new(RedisStore::open_with(&redis.url(), options).await.unwrap()));
    let mut whole = entry(1);
    whole.payloads.push((laneway_core::BlobId(std::num::NonZeroU128::MIN), "payload".into()));
    whole.finished.push((finished(), Some("result".into())));
    let head = log.append(Head::EMPTY, &whole).await.unwrap();
    log.save(head, &laneway_core::Scheduler::new(0).snapshot()).await.unwrap();
    let mut connection = connect(&redis);
    let keys: Vec<String> = cmd("KEYS").arg("laneway:*").query(&mut connection).unwrap();
    assert_eq!(keys.len(), 8, "{keys:?}");
    for key in keys {
        let ttl: i64 = cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert_eq!(ttl > 0 && ttl <= 600_000, key.contains("done:"), "{key} goes after {ttl}");
    }
    // An expired task is not listed, and its place in the list does no harm.
    cmd("DEL").arg(format!("laneway:{{default}}:done:{:032x}", 5)).exec(&mut connection).unwrap();
    assert_eq!(log.finished(laneway_core::TaskId(5)).await, Ok(None));
    assert_eq!(log.history(HistoryQuery { max: 10, ..HistoryQuery::default() }).await, Ok(vec![]));
}

fn finished() -> laneway_store::Finished {
    laneway_store::Finished {
        task: laneway_core::TaskId(5),
        kind: laneway_core::Name::new("chat").unwrap(),
        lanes: vec![laneway_core::LaneName::main()],
        source: laneway_core::Source::User,
        priority: 2,
        group: None,
        parent: None,
        worker: None,
        submitted: Timestamp(1),
        started: None,
        ended: Timestamp(2),
        attempts: 1,
        end: laneway_core::End::Completed,
        tries: vec![],
        caller: None,
        trace: None,
        label: None,
        payload: None,
    }
}
