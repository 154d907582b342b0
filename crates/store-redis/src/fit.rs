//! Looks whether a Redis can be trusted with a log.

use laneway_store::{Damage, Durability, StoreError};
use redis::aio::MultiplexedConnection;
use redis::{RedisError, cmd};

use crate::failure::{from_redis, unfit, unreadable};
use crate::keys::{Keys, LAYOUT};

/// The oldest Redis that is known to work.
const REDIS_MIN: u32 = 7;

/// Refuses a Redis that is too old, would throw keys away, or holds what a newer program wrote. Asked at each
/// connection, because after a failover it may be another one.
pub(crate) async fn check(
    store: &str,
    keys: &Keys,
    connection: &mut MultiplexedConnection,
) -> Result<(), StoreError> {
    let failed = |error: RedisError| from_redis(store, &error);
    let server: String = cmd("INFO").arg("server").query_async(connection).await.map_err(failed)?;
    let version = field(&server, "redis_version").unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < REDIS_MIN) {
        return Err(unfit(
            store,
            &format!("it is Redis {version}, and {REDIS_MIN} is the oldest that works"),
        ));
    }
    let memory: String = cmd("INFO").arg("memory").query_async(connection).await.map_err(failed)?;
    let policy = field(&memory, "maxmemory_policy").unwrap_or_default();
    if policy != "noeviction" {
        let reason = format!(
            "it would throw away keys when its memory is full (maxmemory-policy {policy}), and with them accepted \
             work; set maxmemory-policy to noeviction, or use another Redis"
        );
        return Err(unfit(store, &reason));
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
        // Somebody else may do the same at the same time.
        let set = cmd("SET").arg(&keys.layout).arg(LAYOUT).arg("NX").to_owned();
        set.query_async::<redis::Value>(connection).await.map_err(failed)?;
        found = get.query_async(connection).await.map_err(failed)?;
    }
    let layout = found.as_deref().and_then(|found| found.parse::<u32>().ok());
    match layout {
        Some(LAYOUT) => Ok(()),
        Some(found) => Err(StoreError::Corrupt {
            store: store.into(),
            record: None,
            damage: Damage::UnknownFormat { found, known: LAYOUT },
        }),
        None => Err(unreadable(store, &format!("{} does not hold the number of a layout", keys.layout))),
    }
}

/// What an acknowledged write means, as Redis is configured now. Where it does not let us see, the least.
pub(crate) async fn durability(connection: &mut MultiplexedConnection, replicas: u32) -> Durability {
    if replicas > 0 {
        return Durability::Replicated;
    }
    let setting = async |name: &str, connection: &mut MultiplexedConnection| {
        let answer = cmd("CONFIG").arg("GET").arg(name).query_async::<Vec<String>>(connection).await;
        answer.ok().and_then(|pair| pair.into_iter().nth(1))
    };
    let file = setting("appendonly", connection).await;
    let flush = setting("appendfsync", connection).await;
    match (file.as_deref(), flush.as_deref()) {
        (Some("yes"), Some("always")) => Durability::Disk,
        _ => Durability::Engine,
    }
}

/// One line of what INFO says.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
