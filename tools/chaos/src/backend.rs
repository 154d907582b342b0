//! The Redis or Postgres that the replicas share.

use std::sync::Arc;

use laneway_store::{Store, StoreError};
use laneway_store_postgres::PostgresStore;
use laneway_store_redis::RedisStore;
use laneway_test_services::{Postgres, Redis};

/// Which backend the replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// A Redis.
    Redis,
    /// A Postgres.
    Postgres,
}

/// A running backend.
pub(crate) enum RunningBackend {
    Redis(Redis),
    Postgres(Postgres),
}

impl RunningBackend {
    pub(crate) fn start(backend: BackendKind) -> RunningBackend {
        match backend {
            BackendKind::Redis => RunningBackend::Redis(Redis::start()),
            BackendKind::Postgres => RunningBackend::Postgres(Postgres::start()),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            RunningBackend::Redis(redis) => redis.port(),
            RunningBackend::Postgres(postgres) => postgres.port(),
        }
    }

    /// Its address by way of a port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        match self {
            RunningBackend::Redis(_) => format!("redis://127.0.0.1:{port}/0"),
            RunningBackend::Postgres(postgres) => postgres.url_at(port),
        }
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        match self {
            RunningBackend::Redis(redis) => redis.restart(),
            RunningBackend::Postgres(postgres) => postgres.restart(),
        }
    }

    /// Makes it forget what it can forget without harm: Redis its scripts.
    pub(crate) fn forget(&self) {
        if let RunningBackend::Redis(redis) = self {
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
