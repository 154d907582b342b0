//! Making connections to the Redis that has the log, wherever that is now.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use laneway_store::{ErrorKind, StoreError};
use laneway_store_remote::{Connect, Recent, Verdict};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Client, RedisError, Value, cmd};
use tokio::time::{Instant, sleep};

use crate::check::{Info, check};
use crate::error::{from_redis, tls_hint, verdict};
use crate::keys::Keys;
use crate::nodes::{Node, Nodes, Place, nodes_of_cluster, sentinels_of};

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one machine may be late before others are asked too.
const LATE: Duration = Duration::from_millis(200);

/// Makes connections to the Redis that has the log.
pub struct Connector {
    pub(crate) name: Arc<str>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) recent: Arc<Recent>,
    pub(crate) nodes: Arc<Nodes>,
    timeout: Duration,
}

/// A connection, and the Redis that it leads to.
#[derive(Clone)]
pub struct Connection {
    pub(crate) redis: MultiplexedConnection,
    pub(crate) node: Node,
}

/// What a machine said.
enum Told {
    /// It has the log.
    Here(Connection),
    /// Another one may have it.
    Elsewhere(Place),
}

impl Connector {
    pub(crate) fn new(name: Arc<str>, keys: Arc<Keys>, nodes: Nodes, timeout: Duration) -> Connector {
        Connector { name, keys, recent: Arc::default(), nodes: Arc::new(nodes), timeout }
    }

    /// The same with another timeout.
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Connector {
        Connector {
            name: Arc::clone(&self.name),
            keys: Arc::clone(&self.keys),
            recent: Arc::clone(&self.recent),
            nodes: Arc::clone(&self.nodes),
            timeout,
        }
    }

    fn client(&self, place: &Place) -> Result<Client, StoreError> {
        Client::open(self.nodes.connection_to(place)).map_err(|error| from_redis(&self.name, &error))
    }

    /// A connection for messages, to the Redis of another connection.
    pub(crate) async fn messages(&self, connection: &Connection) -> Result<PubSub, StoreError> {
        let client = self.client(&Place::Redis(Arc::clone(&connection.node)))?;
        let connected = tokio::time::timeout(self.timeout, client.get_async_pubsub()).await;
        let connected = connected.map_err(|_| StoreError::unavailable(&self.name, "timed out"))?;
        connected.map_err(|error| from_redis(&self.name, &error))
    }

    async fn open(&self, place: &Place) -> Result<MultiplexedConnection, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(self.timeout));
        let connected = self.client(place)?.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(|error| match tls_hint(self.nodes.connection_to(place).addr(), &error) {
            Some(hint) => StoreError::unavailable(&self.name, format!("{error}; {hint}")),
            None => from_redis(&self.name, &error),
        })
    }

    /// Asks all known machines for the log until one has it. Those that answer at once are asked again while another is
    /// late, because a failover may end meanwhile.
    async fn find(&self) -> Result<Connection, StoreError> {
        let until = Instant::now() + self.timeout;
        let mut known = HashSet::new();
        let places = self.nodes.places().into_iter().filter(|place| known.insert(place.clone()));
        let (mut next, mut again) = (places.collect::<VecDeque<_>>(), Vec::new());
        let (mut asked, mut failures) = (FuturesUnordered::new(), Vec::new());
        asked.extend(next.pop_front().map(|place| self.ask(place)));
        loop {
            tokio::select! {
                Some((place, told)) = asked.next() => {
                    match told {
                        Ok(Told::Here(connection)) => return Ok(connection),
                        Ok(Told::Elsewhere(other)) if known.insert(other.clone()) => next.push_front(other),
                        Ok(Told::Elsewhere(_)) => {}
                        Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error),
                        Err(error) => failures.push((place.clone(), error)),
                    }
                    again.push(place);
                    asked.extend(next.pop_front().map(|place| self.ask(place)));
                }
                () = sleep(LATE), if !asked.is_empty() => match next.pop_front() {
                    Some(place) => asked.push(self.ask(place)),
                    None if Instant::now() < until => {
                        asked.extend(again.drain(..).map(|place| self.ask(place)));
                    }
                    None => {}
                },
                else => return Err(self.not_found(failures, known.len() == 1)),
            }
        }
    }

    /// Why none of the machines has the log.
    fn not_found(&self, failures: Vec<(Place, StoreError)>, is_one: bool) -> StoreError {
        let mut reasons: Vec<String> = Vec::new();
        for (place, error) in failures {
            let StoreError::Unavailable { reason, .. } = &error else { continue };
            let (Place::Redis(node) | Place::Sentinel(node)) = place;
            let reason = if is_one { reason.to_string() } else { format!("{node}: {reason}") };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        if reasons.is_empty() {
            reasons.push("its machines name each other, and none has the log".to_owned());
        }
        StoreError::unavailable(&self.name, reasons.join("; "))
    }

    async fn ask(&self, place: Place) -> (Place, Result<Told, StoreError>) {
        let told = match &place {
            Place::Redis(node) => self.ask_redis(&place, node).await,
            Place::Sentinel(_) => self.ask_sentinel(&place).await,
        };
        (place, told)
    }

    async fn ask_redis(&self, place: &Place, node: &Node) -> Result<Told, StoreError> {
        let failed = |error: RedisError| from_redis(&self.name, &error);
        let mut redis = self.open(place).await?;
        let layout = cmd("GET").arg(&self.keys.layout).to_owned();
        if let Err(error) = layout.query_async::<Value>(&mut redis).await {
            let other = self.nodes.redirection(&error, node).filter(|_| is_moved(&error));
            return other.map(|other| Told::Elsewhere(Place::Redis(other))).ok_or_else(|| failed(error));
        }
        let info = Info::read(&mut redis).await.map_err(failed)?;
        check(&self.name, &self.keys, &info, &mut redis).await?;
        if info.is_cluster() {
            self.nodes.learn(nodes_of_cluster(&mut redis, node).await);
        } else if self.nodes.names_cluster() {
            return Err(StoreError::unfit(
                &self.name,
                format!(
                    "{node} belongs to no cluster, so it cannot say which of several machines has the log; name one \
                     machine, or Sentinels with redis+sentinel://"
                ),
            ));
        }
        self.nodes.note_owner(node);
        Ok(Told::Here(Connection { redis, node: Arc::clone(node) }))
    }

    async fn ask_sentinel(&self, place: &Place) -> Result<Told, StoreError> {
        let service = self.nodes.service().unwrap_or_default();
        let mut sentinel = self.open(place).await?;
        let command = cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(service).to_owned();
        let answer = command.query_async::<Option<(String, String)>>(&mut sentinel).await;
        match answer.map_err(|error| from_redis(&self.name, &error))? {
            Some((host, port)) => {
                self.nodes.learn(sentinels_of(&mut sentinel, service).await);
                Ok(Told::Elsewhere(Place::Redis(format!("{host}:{port}").into())))
            }
            None => {
                let reason = format!(
                    "this Sentinel watches no service {}; the address names it after the hosts",
                    service.escape_default()
                );
                Err(StoreError::unavailable(&self.name, reason))
            }
        }
    }
}

/// Whether the keys are at another node for good, and not on their way to it.
fn is_moved(error: &RedisError) -> bool {
    error.kind() == redis::ErrorKind::Server(redis::ServerErrorKind::Moved)
}

impl Connect for Connector {
    type Connection = Connection;
    type Error = RedisError;

    async fn connect(&self) -> Result<Connection, StoreError> {
        self.find().await
    }

    /// Another connection may have found the log elsewhere.
    fn is_closed(&self, connection: &Connection) -> bool {
        self.nodes.owner().borrow().as_ref() != Some(&connection.node)
    }

    fn verdict(&self, error: &RedisError) -> Verdict {
        verdict(error)
    }

    /// The Redis behind the next connection may know less than this one.
    fn on_lost(&self, _error: &RedisError) {
        self.recent.clear();
    }

    fn error(&self, error: RedisError) -> StoreError {
        from_redis(&self.name, &error)
    }
}
