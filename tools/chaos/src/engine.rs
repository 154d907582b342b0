//! The engine under test.

use std::sync::Arc;

use laneway_store::{Store, StoreError};
use laneway_store_postgres::PostgresStore;
use laneway_store_redis::RedisStore;
use laneway_test_services::{Postgres, Redis};

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Redis.
    Redis,
    /// A Postgres.
    Postgres,
}

/// A running engine.
pub(crate) enum Engine {
    Redis(Redis),
    Postgres(Postgres),
}

impl Engine {
    pub(crate) fn start(kind: Kind) -> Engine {
        match kind {
            Kind::Redis => Engine::Redis(Redis::start()),
            Kind::Postgres => Engine::Postgres(Postgres::start()),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Engine::Redis(redis) => redis.port(),
            Engine::Postgres(postgres) => postgres.port(),
        }
    }

    /// Its address by way of a port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        match self {
            Engine::Redis(_) => format!("redis://127.0.0.1:{port}/0"),
            Engine::Postgres(postgres) => postgres.url_at(port),
        }
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        match self {
            Engine::Redis(redis) => redis.restart(),
            Engine::Postgres(postgres) => postgres.restart(),
        }
    }

    /// Makes it forget what it can forget without harm: Redis its scripts.
    pub(crate) fn forget(&self) {
        if let Engine::Redis(redis) = self {
            let client = redis::Client::open(redis.url()).unwrap();
            let mut connection = client.get_connection().unwrap();
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
        }
    }
}

/// The store at an address.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    if url.starts_with("redis:") {
        return Ok(Arc::new(RedisStore::open(url).await?));
    }
    Ok(Arc::new(PostgresStore::open(url).await?))
}

/// One replica under load, as long as its input is open; what the binary does.
pub async fn be_replica(url: &str, number: u64) {
    crate::replica::be(url, number).await;
}
