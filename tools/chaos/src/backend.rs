//! The store that the replicas share: one server, several that replace one another, or one behind a pooler.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_store::{Store, StoreError};
use laneway_store_postgres::PostgresStore;
use laneway_store_redis::RedisStore;
use laneway_test_services::{Cluster, PgBouncer, Postgres, Redis, Sentinels, Signal};

/// A key of the log, which tells the node of a cluster that has it.
const HEAD: &str = "laneway:{default}:head";
/// How long a master is away before it comes back: longer than the others need to replace it.
const AWAY: Duration = Duration::from_secs(4);

/// Which backend the replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// A Redis.
    Redis,
    /// A Postgres.
    Postgres,
    /// A Redis Cluster, whose masters fail.
    Cluster,
    /// A Redis behind Sentinels, whose masters fail.
    Sentinel,
    /// A Postgres behind a PgBouncer in transaction mode.
    PgBouncer,
}

/// A running backend.
pub(crate) enum RunningBackend {
    Redis(Redis),
    Postgres(Postgres),
    Cluster(Cluster, Option<Away>),
    Sentinel(Sentinels, Option<Away>),
    PgBouncer(Postgres, PgBouncer),
}

/// A master that is away.
pub(crate) struct Away {
    server: usize,
    is_frozen: bool,
    until: Instant,
}

impl Away {
    fn begin(redis: &mut Redis, server: usize, is_frozen: bool) -> Away {
        if is_frozen {
            redis.signal(Signal::Stop);
        } else {
            redis.kill();
        }
        Away { server, is_frozen, until: Instant::now() + AWAY }
    }

    fn end(&self, redis: &mut Redis) {
        if self.is_frozen {
            redis.signal(Signal::Continue);
        } else {
            redis.restart();
        }
    }
}

impl RunningBackend {
    pub(crate) fn start(backend: BackendKind) -> RunningBackend {
        match backend {
            BackendKind::Redis => RunningBackend::Redis(Redis::start()),
            BackendKind::Postgres => RunningBackend::Postgres(Postgres::start()),
            BackendKind::Cluster => RunningBackend::Cluster(Cluster::start(), None),
            BackendKind::Sentinel => RunningBackend::Sentinel(Sentinels::start(), None),
            BackendKind::PgBouncer => {
                let postgres = Postgres::start();
                let bouncer = PgBouncer::start(&postgres, "transaction");
                RunningBackend::PgBouncer(postgres, bouncer)
            }
        }
    }

    /// The port of the server that a proxy stands in front of. Several servers name each other, past any proxy.
    pub(crate) fn port(&self) -> u16 {
        match self {
            RunningBackend::Redis(redis) => redis.port(),
            RunningBackend::Postgres(postgres) => postgres.port(),
            RunningBackend::PgBouncer(_, bouncer) => bouncer.port(),
            RunningBackend::Cluster(cluster, _) => cluster.nodes()[0].port(),
            RunningBackend::Sentinel(sentinels, _) => sentinels.servers()[0].port(),
        }
    }

    /// Its address by way of a port. Several servers have their own, and each append waits for one replica of Redis: a
    /// failover must not lose what was accepted.
    pub(crate) fn url_at(&self, port: u16) -> String {
        match self {
            RunningBackend::Redis(_) => format!("redis://127.0.0.1:{port}/0"),
            RunningBackend::Postgres(postgres) | RunningBackend::PgBouncer(postgres, _) => {
                postgres.url_at(port)
            }
            RunningBackend::Cluster(cluster, _) => cluster.url() + "?replicas=1",
            RunningBackend::Sentinel(sentinels, _) => sentinels.url() + "?replicas=1",
        }
    }

    /// Whether it is several servers, which replace one another.
    pub(crate) fn fails_over(&self) -> bool {
        matches!(self, RunningBackend::Cluster(..) | RunningBackend::Sentinel(..))
    }

    /// Has another server take over from the master, which is killed or stands still. Does nothing while one is away.
    /// Returns whether it did something.
    pub(crate) fn fail_over(&mut self, is_frozen: bool) -> bool {
        match self {
            RunningBackend::Cluster(cluster, away @ None) if cluster.is_whole() => {
                let server = cluster.owner_of(HEAD);
                *away = Some(Away::begin(cluster.node(server), server, is_frozen));
            }
            RunningBackend::Sentinel(sentinels, away @ None) if sentinels.is_whole() => {
                let server = sentinels.master();
                *away = Some(Away::begin(sentinels.server(server), server, is_frozen));
            }
            _ => return false,
        }
        true
    }

    /// Brings back the master that is away if it is time, or in any case.
    pub(crate) fn mend(&mut self, is_end: bool) {
        let is_due = |away: &mut Away| is_end || away.until <= Instant::now();
        match self {
            RunningBackend::Cluster(cluster, away) => {
                away.take_if(is_due).into_iter().for_each(|away| away.end(cluster.node(away.server)));
            }
            RunningBackend::Sentinel(sentinels, away) => {
                away.take_if(is_due).into_iter().for_each(|away| away.end(sentinels.server(away.server)));
            }
            _ => {}
        }
    }

    /// Ends every connection of clients to the servers.
    pub(crate) fn cut(&self) {
        for redis in self.servers() {
            redis.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        }
    }

    /// Kills it and starts it again. Of several servers one takes over from another, in order. Returns whether it was a
    /// restart.
    pub(crate) fn restart(&mut self, is_pooler: bool) -> bool {
        match self {
            RunningBackend::Redis(redis) => redis.restart(),
            RunningBackend::Postgres(postgres) => postgres.restart(),
            RunningBackend::PgBouncer(_, bouncer) if is_pooler => bouncer.restart(),
            RunningBackend::PgBouncer(postgres, _) => postgres.restart(),
            RunningBackend::Cluster(cluster, None) if cluster.is_whole() => cluster.fail_over(HEAD),
            RunningBackend::Sentinel(sentinels, None) if sentinels.is_whole() => sentinels.fail_over(),
            _ => return false,
        }
        true
    }

    /// Lets every Redis stand still, or go on.
    pub(crate) fn signal(&self, signal: Signal) {
        self.servers().iter().for_each(|redis| redis.signal(signal));
    }

    /// Makes it forget what it can forget without harm: Redis its scripts.
    pub(crate) fn forget(&self) {
        for redis in self.servers() {
            redis.command(&["SCRIPT", "FLUSH"]);
        }
    }

    /// The Redis servers.
    fn servers(&self) -> &[Redis] {
        match self {
            RunningBackend::Redis(redis) => std::slice::from_ref(redis),
            RunningBackend::Cluster(cluster, _) => cluster.nodes(),
            RunningBackend::Sentinel(sentinels, _) => sentinels.servers(),
            RunningBackend::Postgres(_) | RunningBackend::PgBouncer(..) => &[],
        }
    }
}

/// The store at an address.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    if url.starts_with("redis") {
        return Ok(Arc::new(RedisStore::open(url).await?));
    }
    Ok(Arc::new(PostgresStore::open(url).await?))
}

/// One replica under load, as long as its input is open; what the binary does.
pub async fn be_replica(url: &str, number: u64, run_ms_max: u64) {
    crate::replica::be(url, number, run_ms_max).await;
}
