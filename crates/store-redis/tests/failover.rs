//! A Redis that another one replaces: in a cluster, and behind Sentinels.

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
use laneway_store::{Batch, BatchId, Entry, ErrorKind, Head, Log, StoreError, Version};
use laneway_store_redis::{Options, RedisStore};
use laneway_test_services::{Access, Certificates, Cluster, Redis, Sentinels, Signal};
use tokio::task::{JoinHandle, block_in_place};

/// A key of the log, which tells its slot.
const HEAD: &str = "laneway:{default}:head";
/// How long to wait after a failure. The servers have one core each in the worst case.
const PAUSE: Duration = Duration::from_millis(20);

fn entry(number: u128) -> Entry {
    Entry::of(Batch { id: BatchId(number), at: Timestamp(0), events: vec![] })
}

async fn open(url: &str) -> Arc<Log> {
    let options = Options { timeout: Duration::from_secs(2), ..Options::default() };
    Arc::new(Log::new(Arc::new(RedisStore::open_with(url, options).await.unwrap())))
}

/// Adds what makes the address of a cluster or of Sentinels right for TLS and for the user of tests.
fn with_ca(url: &str, certificates: &Certificates) -> String {
    format!("{url}?ca={}", certificates.ca().display())
}

/// Appends a batch that a replica of Redis has, too.
async fn append_safely(url: &str, head: Head, number: u128) -> Head {
    let mark = if url.contains('?') { '&' } else { '?' };
    let log = open(&format!("{url}{mark}replicas=1")).await;
    loop {
        match log.append(head, &entry(number)).await {
            Err(StoreError::Unavailable { .. }) => tokio::time::sleep(PAUSE).await,
            appended => return appended.unwrap(),
        }
    }
}

/// Tries to append until the store is back.
fn appending(log: &Arc<Log>, head: Head, number: u128) -> JoinHandle<Head> {
    let log = Arc::clone(log);
    tokio::spawn(async move {
        loop {
            match log.append(head, &entry(number)).await {
                Err(StoreError::Unavailable { .. }) => tokio::time::sleep(PAUSE).await,
                appended => return appended.unwrap(),
            }
        }
    })
}

/// Hears of the first batch after a version as soon as the store is back.
fn following(log: &Arc<Log>, after: Version) -> JoinHandle<Version> {
    let log = Arc::clone(log);
    tokio::spawn(async move {
        loop {
            match log.store().tail(after).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => tokio::time::sleep(PAUSE).await,
                told => return told.unwrap(),
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_failed_over_is_found_again_from_any_node() {
    let certificates = Certificates::make();
    let mut cluster = block_in_place(|| Cluster::start_with(&Access::with(&certificates, "hush")));
    let url = with_ca(&cluster.url_for("laneway:hush@"), &certificates);
    let first = append_safely(&url, Head::EMPTY, 1).await;
    // An address that names one node, which does not have the log.
    let owner = block_in_place(|| cluster.owner_of(HEAD));
    let other = cluster.nodes()[(owner + 1) % 3].port();
    let one = format!("rediss://laneway:hush@127.0.0.1:{other}/0");
    let (a, b) = (open(&with_ca(&one, &certificates)).await, open(&url).await);
    assert_eq!((a.store().head().await, b.store().head().await), (Ok(first), Ok(first)));

    let heard = following(&b, Version(1));
    cluster.node(owner).kill();
    let second = appending(&a, first, 2);
    block_in_place(|| cluster.await_failover(owner, HEAD));
    let second = second.await.unwrap();
    assert_eq!(heard.await.unwrap(), Version(2));

    // The former owner comes back as a replica, and takes over in order: no caller notices.
    block_in_place(|| {
        cluster.node(owner).restart();
        cluster.await_whole();
    });
    let third = append_safely(&url, second, 3).await;
    let heard = following(&b, Version(3));
    block_in_place(|| {
        cluster.nodes()[owner].command(&["CLUSTER", "FAILOVER"]);
        cluster.await_failover((owner + 3) % 6, HEAD);
    });
    let fourth = a.append(third, &entry(4)).await.unwrap();
    assert_eq!((fourth.version, heard.await.unwrap()), (Version(4), Version(4)));
    assert_eq!(a.read(Head::EMPTY).await.unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stands_still_is_replaced_and_its_keys_may_move() {
    let cluster = block_in_place(Cluster::start);
    let first = append_safely(&cluster.url(), Head::EMPTY, 1).await;
    let (a, b) = (open(&cluster.url()).await, open(&cluster.url()).await);
    let owner = block_in_place(|| cluster.owner_of(HEAD));
    let heard = following(&b, Version(1));
    cluster.nodes()[owner].signal(Signal::Stop);
    let second = appending(&a, first, 2);
    block_in_place(|| cluster.await_failover(owner, HEAD));
    let second = second.await.unwrap();
    assert_eq!(heard.await.unwrap(), Version(2));
    cluster.nodes()[owner].signal(Signal::Continue);
    block_in_place(|| cluster.await_whole());

    // The slot goes to another master, key by key.
    let nodes = cluster.nodes();
    let (from, to) = (&nodes[owner + 3], &nodes[(owner + 1) % 3]);
    let slot = from.command(&["CLUSTER", "KEYSLOT", HEAD]);
    let (from_id, to_id) = (from.command(&["CLUSTER", "MYID"]), to.command(&["CLUSTER", "MYID"]));
    to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    let port = to.port().to_string();
    let migrate = |key: &str| from.command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
    assert_eq!(migrate(HEAD), "OK");
    // Half of the keys are there and half are here.
    let refused = a.append(second, &entry(3)).await.err().unwrap().to_string();
    assert!(refused.contains("moves its keys"), "{refused}");
    let keys = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
    keys.lines().for_each(|key| assert_eq!(migrate(key), "OK"));
    let third = appending(&a, second, 3);
    for node in [to, from] {
        node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    }
    assert_eq!(third.await.unwrap().version, Version(3));
    assert_eq!(b.read(Head::EMPTY).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_say_which_redis_has_the_log() {
    let certificates = Certificates::make();
    let mut sentinels = block_in_place(|| Sentinels::start_with(&Access::with(&certificates, "hush")));
    let url = with_ca(&sentinels.url_for("laneway:hush@"), &certificates) + "&sentinel_password=hush";
    let first = append_safely(&url, Head::EMPTY, 1).await;
    // One Sentinel is enough to learn of the others.
    let (hosts, rest) = url.split_once(',').unwrap();
    let one = format!("{hosts}/{}", rest.split_once('/').unwrap().1);
    let (a, b) = (open(&one).await, open(&url).await);
    assert_eq!((a.store().head().await, b.store().head().await), (Ok(first), Ok(first)));
    let name = b.store().name().to_owned();
    assert!(name.starts_with("rediss+sentinel://127.0.0.1:") && !name.contains("hush"), "{name}");

    let heard = following(&b, Version(1));
    let master = block_in_place(|| sentinels.master());
    sentinels.server(master).kill();
    let second = appending(&a, first, 2);
    block_in_place(|| sentinels.await_failover(master));
    let second = second.await.unwrap();
    assert_eq!(heard.await.unwrap(), Version(2));

    // The former master comes back and takes itself for the master, for a while; the Sentinel of the address is silent.
    block_in_place(|| sentinels.server(master).restart());
    sentinels.signal_sentinel(0, Signal::Stop);
    let c = open(&url).await;
    assert_eq!(c.store().head().await, Ok(second));
    a.append(second, &entry(3)).await.unwrap();
    assert_eq!(c.read(Head::EMPTY).await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_address_of_several_machines_is_understood_or_refused_with_the_reason() {
    let (one, two) = (Redis::start(), Redis::start());
    let pair = format!("redis://127.0.0.1:{},127.0.0.1:{}/0", one.port(), two.port());
    let refused = RedisStore::open(&pair).await.err().unwrap().to_string();
    assert!(refused.contains("belongs to no cluster") && refused.contains("redis+sentinel://"), "{refused}");
    // The first is no Sentinel, and the second is away.
    let closed = laneway_test_services::free_port();
    let wrong = format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{closed}/lanes", one.port());
    let refused = RedisStore::open(&wrong).await.err().unwrap().to_string();
    let (first, second) = (format!("127.0.0.1:{}: ", one.port()), format!("127.0.0.1:{closed}: "));
    assert!(refused.contains(&first) && refused.contains(&second), "{refused}");
    let port = one.port().to_string();
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &port]);
    let refused = RedisStore::open(&replica.url()).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.to_string().contains("replica of another Redis"), "{refused}");
}
