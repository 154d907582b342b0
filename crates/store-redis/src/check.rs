//! Checks whether a Redis can keep a log.

use laneway_store::{Damage, Durability, StoreError};
use redis::aio::MultiplexedConnection;
use redis::{RedisError, cmd};

use crate::error::from_redis;
use crate::keys::{Keys, LAYOUT};

/// The oldest Redis that is known to work.
const REDIS_MIN: u32 = 7;

/// What a Redis says about itself.
pub(crate) struct Info(String);

impl Info {
    pub(crate) async fn read(connection: &mut MultiplexedConnection) -> Result<Info, RedisError> {
        cmd("INFO").query_async(connection).await.map(Info)
    }

    fn field(&self, name: &str) -> &str {
        let value = |line: &'_ str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim).map(str::len);
        let line = self.0.lines().find(|line| value(line).is_some());
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.field("cluster_enabled") == "1"
    }

    /// What to repair, if it would throw keys away.
    pub(crate) fn eviction(&self) -> Option<String> {
        let policy = self.field("maxmemory_policy");
        (policy != "noeviction").then(|| {
            format!(
                "it would throw away keys when its memory is full (maxmemory-policy {policy}), and with them accepted \
                 work; set maxmemory-policy to noeviction, or use another Redis"
            )
        })
    }
}

/// Refuses a Redis that is too old, follows another one, or holds what a newer program wrote. Called for each connection,
/// because after a failover it may be another Redis.
pub(crate) async fn check(
    store: &str,
    keys: &Keys,
    info: &Info,
    connection: &mut MultiplexedConnection,
) -> Result<(), StoreError> {
    let version = info.field("redis_version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < REDIS_MIN) {
        let reason = format!("it is Redis {version}, and {REDIS_MIN} is the oldest that works");
        return Err(StoreError::unfit(store, reason));
    }
    if info.field("role") != "master" {
        return Err(StoreError::unavailable(store, "it is a replica of another Redis, and takes no writes"));
    }
    check_layout(store, keys, connection).await
}

async fn check_layout(
    store: &str,
    keys: &Keys,
    connection: &mut MultiplexedConnection,
) -> Result<(), StoreError> {
    let failed = |error: RedisError| from_redis(store, &error);
    let get = cmd("GET").arg(&keys.layout).to_owned();
    let mut found: Option<String> = get.query_async(connection).await.map_err(failed)?;
    if found.is_none() {
        // Another replica may do the same at the same time.
        let set = cmd("SET").arg(&keys.layout).arg(LAYOUT).arg("NX").to_owned();
        set.query_async::<redis::Value>(connection).await.map_err(failed)?;
        found = get.query_async(connection).await.map_err(failed)?;
    }
    let layout = found.as_deref().and_then(|found| found.parse::<u32>().ok());
    match layout {
        Some(LAYOUT) => Ok(()),
        Some(found) => Err(StoreError::damaged(store, Damage::UnknownFormat { found, known: LAYOUT })),
        None => {
            let reason = format!("{} does not hold the number of a layout", keys.layout);
            Err(StoreError::unreadable(store, reason))
        }
    }
}

/// What an acknowledged write means, as Redis is configured now: the least, where it refuses to show its configuration.
pub(crate) async fn durability(connection: &mut MultiplexedConnection, replicas: u32) -> Durability {
    if replicas > 0 {
        return Durability::Replicated;
    }
    let setting = async |name: &str, connection: &mut MultiplexedConnection| {
        let answer = cmd("CONFIG").arg("GET").arg(name).query_async::<Vec<String>>(connection).await;
        answer.ok().and_then(|pair| pair.into_iter().nth(1))
    };
    let append_only = setting("appendonly", connection).await;
    let flush = setting("appendfsync", connection).await;
    match (append_only.as_deref(), flush.as_deref()) {
        (Some("yes"), Some("always")) => Durability::Disk,
        _ => Durability::Backend,
    }
}
