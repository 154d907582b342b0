//! Making connections to Redis, and following it to another node of a cluster.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_store::StoreError;
use laneway_store_remote::{Connect, Recent, Verdict};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError, Value, cmd};

use crate::check;
use crate::error::{from_redis, tls_hint, verdict};
use crate::keys::Keys;

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes connections to one Redis.
pub struct Connector {
    pub(crate) name: Arc<str>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) recent: Arc<Recent>,
    /// A node of a cluster may name another one.
    address: Mutex<ConnectionInfo>,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(
        name: Arc<str>,
        keys: Arc<Keys>,
        address: ConnectionInfo,
        timeout: Duration,
    ) -> Connector {
        Connector { name, keys, recent: Arc::default(), address: Mutex::new(address), timeout }
    }

    /// The same with another timeout.
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Connector {
        Connector {
            name: Arc::clone(&self.name),
            keys: Arc::clone(&self.keys),
            recent: Arc::clone(&self.recent),
            address: Mutex::new(self.address()),
            timeout,
        }
    }

    fn address(&self) -> ConnectionInfo {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn client(&self) -> Result<Client, StoreError> {
        Client::open(self.address()).map_err(|error| from_redis(&self.name, &error))
    }

    async fn open(&self) -> Result<MultiplexedConnection, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(self.timeout));
        let connected = self.client()?.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(|error| match tls_hint(self.address().addr(), &error) {
            Some(hint) => StoreError::unavailable(&self.name, format!("{error}; {hint}")),
            None => from_redis(&self.name, &error),
        })
    }

    /// Takes the address of the node that has our keys from an error; returns whether the error names one.
    fn redirect(&self, error: &RedisError) -> bool {
        let node = error.redirect_node().and_then(|(node, _)| node.rsplit_once(':'));
        let Some((host, port)) = node.and_then(|(host, port)| Some((host, port.parse().ok()?))) else {
            return false;
        };
        let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = match address.addr() {
            ConnectionAddr::Tcp(..) => ConnectionAddr::Tcp(host.to_owned(), port),
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: host.to_owned(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            other => other.clone(),
        };
        *address = address.clone().set_addr(moved);
        true
    }
}

impl Connect for Connector {
    type Connection = MultiplexedConnection;
    type Error = RedisError;

    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let mut connection = self.open().await?;
        let layout = cmd("GET").arg(&self.keys.layout).to_owned();
        if let Err(error) = layout.query_async::<Value>(&mut connection).await
            && self.redirect(&error)
        {
            connection = self.open().await?;
        }
        check::check(&self.name, &self.keys, &mut connection).await?;
        Ok(connection)
    }

    fn verdict(&self, error: &RedisError) -> Verdict {
        verdict(error)
    }

    /// The Redis behind the next connection may know less than this one.
    fn on_lost(&self, error: &RedisError) {
        self.recent.clear();
        self.redirect(error);
    }

    fn error(&self, error: RedisError) -> StoreError {
        from_redis(&self.name, &error)
    }
}
