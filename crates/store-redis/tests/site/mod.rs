//! Namespaces of one Redis, as tests need them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use laneway_store::conformance::Site;
use laneway_store::{Answer, Record, Store};
use laneway_store_redis::{Options, RedisStore};
use laneway_test_services::Redis;
use redis::{Connection, cmd};

/// A namespace for one case, in a Redis that other cases use too.
pub(crate) struct Namespace {
    redis: Arc<Redis>,
    name: String,
    /// A Redis with little room, if one was asked for.
    small: OnceLock<Redis>,
}

/// With time for a machine that is busy.
pub(crate) fn options(namespace: &str) -> Options {
    let timeout = Duration::from_secs(30);
    Options { namespace: namespace.to_owned(), timeout, ..Options::default() }
}

impl Namespace {
    pub(crate) fn new(redis: &Arc<Redis>) -> Namespace {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Characters that would end a hash tag or a key if they were taken as they are.
        let name = format!("it's {{number}}: {}", MADE.fetch_add(1, Ordering::Relaxed));
        Namespace { redis: Arc::clone(redis), name, small: OnceLock::new() }
    }

    fn key(&self, name: &str) -> String {
        let encoded = self.name.replace(['\'', ' ', '{', '}', ':'], "*");
        let mut connection = connect(&self.redis);
        let pattern = format!("laneway:{{{encoded}}}:{name}");
        let found: Vec<String> = cmd("KEYS").arg(pattern).query(&mut connection).unwrap();
        found.into_iter().next().unwrap_or_default()
    }
}

pub(crate) fn connect(redis: &Redis) -> Connection {
    redis::Client::open(redis.url()).unwrap().get_connection().unwrap()
}

fn as_dyn(store: RedisStore) -> Arc<dyn Store> {
    Arc::new(store)
}

impl Site for Namespace {
    fn has_append_turn(&self) -> bool {
        true
    }

    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        let (url, options) = (self.redis.url(), options(&self.name));
        Box::pin(async move { RedisStore::open_with(&url, options).await.map(as_dyn) })
    }

    fn open_small(&self) -> Option<Answer<'_, Arc<dyn Store>>> {
        let small = self.small.get_or_init(|| Redis::start_with(&["--maxmemory", "5mb"]));
        let (url, options) = (small.url(), options(&self.name));
        Some(Box::pin(async move { RedisStore::open_with(&url, options).await.map(as_dyn) }))
    }

    fn tamper(&self, record: Record, change: &(dyn Fn(&mut Vec<u8>) + Sync)) -> bool {
        let mut connection = connect(&self.redis);
        let connection = &mut connection;
        let hash = |key: String, field: &str, connection: &mut Connection| {
            let found: Option<Vec<u8>> = cmd("HGET").arg(&key).arg(field).query(connection).unwrap();
            let Some(mut bytes) = found else { return false };
            change(&mut bytes);
            cmd("HSET").arg(&key).arg(field).arg(bytes).exec(connection).unwrap();
            true
        };
        match record {
            Record::Batch(version) => rewrite_log(&self.key("log"), version.0, change, connection),
            Record::Snapshot(_) => {
                let key = self.key("parts:*");
                let found: Option<Vec<u8>> = cmd("LINDEX").arg(&key).arg(0).query(connection).unwrap();
                let Some(mut bytes) = found else { return false };
                change(&mut bytes);
                cmd("LSET").arg(&key).arg(0).arg(bytes).exec(connection).unwrap();
                true
            }
            Record::Payload(id) => {
                let key = self.key(&format!("blob:{:032x}", id.0));
                let found: Option<Vec<u8>> = cmd("GET").arg(&key).query(connection).unwrap();
                let Some(mut bytes) = found else { return false };
                change(&mut bytes);
                cmd("SET").arg(&key).arg(bytes).exec(connection).unwrap();
                true
            }
            Record::Finished(task) => hash(self.key(&format!("done:{:032x}", task.0)), "r", connection),
            Record::Result(task) => hash(self.key(&format!("done:{:032x}", task.0)), "s", connection),
            other => panic!("there is no key for {other}"),
        }
    }
}

type Entry = (String, Vec<Vec<u8>>);

/// An entry of a stream cannot be changed, so the stream is written again.
fn rewrite_log(
    key: &str,
    version: u64,
    change: &(dyn Fn(&mut Vec<u8>) + Sync),
    connection: &mut Connection,
) -> bool {
    let entries: Vec<Entry> = cmd("XRANGE").arg(key).arg("-").arg("+").query(connection).unwrap();
    cmd("DEL").arg(key).exec(connection).unwrap();
    let mut was_there = false;
    for (id, mut fields) in entries {
        if id == format!("{version}-0") {
            change(&mut fields[3]);
            was_there = true;
        }
        cmd("XADD").arg(key).arg(id).arg(fields).exec(connection).unwrap();
    }
    was_there
}
