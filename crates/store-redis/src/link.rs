//! The way to Redis: one connection that many share, made anew when it breaks.

use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use laneway_store::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, Script,
    ServerErrorKind, Value, cmd,
};
use tokio::sync::Mutex;

use crate::failure::{breaks_connection, from_redis, unavailable};
use crate::keys::Keys;
use crate::recent::Recent;
use crate::{fit, tls};

/// How long making a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// A command that finds its connection broken is sent again over a new one, so often. All of them may be repeated.
const TRIES: usize = 3;

/// A script, known to Redis by its hash.
pub(crate) struct Lua {
    script: Script,
    source: &'static str,
}

impl Lua {
    pub(crate) fn new(source: &'static str) -> Lua {
        Lua { script: Script::new(source), source }
    }
}

/// One connection to Redis.
pub(crate) struct Link {
    pub(crate) name: String,
    /// Where Redis is; a cluster may send us elsewhere.
    address: StdMutex<ConnectionInfo>,
    patience: Duration,
    /// Held while a connection is made, so that one is made for all who need it.
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    pub(crate) fn new(name: String, address: ConnectionInfo, patience: Duration) -> Link {
        Link { name, address: StdMutex::new(address), patience, connection: Mutex::new(None) }
    }

    fn address(&self) -> ConnectionInfo {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection, made and checked if there is none.
    pub(crate) async fn connection(&self, keys: &Keys) -> Result<MultiplexedConnection, StoreError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held {
            return Ok(connection.clone());
        }
        let mut connection = self.connect().await?;
        let layout = cmd("GET").arg(&keys.layout).to_owned();
        if let Err(error) = layout.query_async::<Value>(&mut connection).await
            && self.go_where_it_is(&error)
        {
            connection = self.connect().await?;
        }
        fit::check(&self.name, keys, &mut connection).await?;
        Ok(held.insert(connection).clone())
    }

    /// Whoever makes connections of another sort to the same Redis.
    pub(crate) fn client(&self) -> Result<Client, StoreError> {
        Client::open(self.address()).map_err(|error| from_redis(&self.name, &error))
    }

    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let client = self.client()?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(self.patience));
        let made = client.get_multiplexed_async_connection_with_config(&config).await;
        made.map_err(|error| match tls::hint(self.address().addr(), &error) {
            Some(hint) => unavailable(&self.name, &format!("{error}; {hint}")),
            None => from_redis(&self.name, &error),
        })
    }

    /// Sends a command and returns what Redis says to it.
    pub(crate) async fn send(
        &self,
        keys: &Keys,
        recent: &Recent,
        command: &Cmd,
    ) -> Result<Value, StoreError> {
        self.exchange(keys, recent, command).await?.map_err(|error| from_redis(&self.name, &error))
    }

    /// Runs a script: by its hash, or, when Redis does not know it (any more), by its text.
    pub(crate) async fn run(
        &self,
        keys: &Keys,
        recent: &Recent,
        lua: &Lua,
        call: &Call,
    ) -> Result<Value, StoreError> {
        let by_hash = call.command("EVALSHA", lua.script.get_hash());
        match self.exchange(keys, recent, &by_hash).await? {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(keys, recent, &call.command("EVAL", lua.source)).await
            }
            done => done.map_err(|error| from_redis(&self.name, &error)),
        }
    }

    /// Sends a command, over a new connection if the present one breaks. Whatever was read before is forgotten then:
    /// the Redis behind the next connection may know less.
    async fn exchange(
        &self,
        keys: &Keys,
        recent: &Recent,
        command: &Cmd,
    ) -> Result<Result<Value, RedisError>, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut connection = self.connection(keys).await?;
            let error = match command.query_async(&mut connection).await {
                Err(error) if breaks_connection(&error) => error,
                done => return Ok(done),
            };
            recent.clear();
            *self.connection.lock().await = None;
            self.go_where_it_is(&error);
            // Whoever does not answer is not asked again; whoever closed the connection may take a new one.
            if error.is_timeout() || tries == TRIES {
                return Ok(Err(error));
            }
        }
    }

    /// A node of a cluster that does not have our keys says who has; whether it did.
    fn go_where_it_is(&self, error: &RedisError) -> bool {
        let Some((host, port)) = error.redirect_node().and_then(|(address, _)| address.rsplit_once(':'))
        else {
            return false;
        };
        let Ok(port) = port.parse() else { return false };
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

/// The keys and arguments of a script.
#[derive(Default)]
pub(crate) struct Call {
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    pub(crate) fn key(&mut self, key: &str) {
        self.keys.push(key.as_bytes().to_vec());
    }

    pub(crate) fn argument(&mut self, bytes: impl Into<Vec<u8>>) {
        self.arguments.push(bytes.into());
    }

    pub(crate) fn number(&mut self, number: impl ToString) {
        self.argument(number.to_string());
    }

    fn command(&self, how: &str, which: &str) -> Cmd {
        let mut command = cmd(how);
        command.arg(which).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}
