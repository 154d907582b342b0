//! The machines that may have the log: those that the address names, and those that they told of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ConnectionInfo, RedisError, Value, cmd, from_redis_value};
use tokio::sync::watch;

use crate::address::{Address, Sentinel};

/// The host and port of a machine, as `host:port`.
pub(crate) type Node = Arc<str>;

/// The most machines that are remembered besides those of the address.
const LEARNED_MAX: usize = 64;

/// A machine to ask for the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A Redis, which has the log or names the node of its cluster that has.
    Redis(Node),
    /// A Sentinel, which names the Redis.
    Sentinel(Node),
}

/// What all connections of a store know together.
pub(crate) struct Nodes {
    redis: ConnectionInfo,
    sentinel: Option<Sentinel>,
    seeds: Vec<Node>,
    /// The other machines that these told of, the newest first.
    learned: Mutex<Vec<Node>>,
    /// The Redis that had the log when it was last looked for.
    owner: watch::Sender<Option<Node>>,
}

impl Nodes {
    pub(crate) fn of(address: Address) -> Nodes {
        let Address { redis, sentinel, seeds, .. } = address;
        Nodes { redis, sentinel, seeds, learned: Mutex::default(), owner: watch::Sender::new(None) }
    }

    /// Whom to ask for the log, in this order. A Redis that had it may be wrong about that after a failover, so Sentinels
    /// alone are asked where there are any.
    pub(crate) fn places(&self) -> Vec<Place> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if self.sentinel.is_some() {
            return self.seeds.iter().cloned().chain(learned).map(Place::Sentinel).collect();
        }
        let owner = self.owner.borrow().clone();
        owner.into_iter().chain(learned).chain(self.seeds.iter().cloned()).map(Place::Redis).collect()
    }

    /// Whether the address names several machines, and no Sentinel says which of them counts.
    pub(crate) fn names_cluster(&self) -> bool {
        self.sentinel.is_none() && self.seeds.len() > 1
    }

    /// What the Sentinels watch, if the address names Sentinels.
    pub(crate) fn service(&self) -> Option<&str> {
        self.sentinel.as_ref().map(|sentinel| &*sentinel.service)
    }

    /// How to connect to a machine.
    pub(crate) fn connection_to(&self, place: &Place) -> ConnectionInfo {
        let (settings, node) = match (place, &self.sentinel) {
            (Place::Sentinel(node), Some(sentinel)) => (&sentinel.connection, node),
            (Place::Redis(node) | Place::Sentinel(node), _) => (&self.redis, node),
        };
        let Some((host, port)) = host_and_port(node) else { return settings.clone() };
        let address = match settings.addr() {
            ConnectionAddr::Tcp(..) => ConnectionAddr::Tcp(host, port),
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            other => other.clone(),
        };
        settings.clone().set_addr(address)
    }

    /// The Redis that has the log.
    pub(crate) fn owner(&self) -> watch::Receiver<Option<Node>> {
        self.owner.subscribe()
    }

    /// Notes that a Redis has the log. Connections to another one are made again.
    pub(crate) fn note_owner(&self, node: &Node) {
        self.owner.send_if_modified(|owner| {
            let is_new = owner.as_ref() != Some(node);
            *owner = Some(Arc::clone(node));
            is_new
        });
    }

    /// Remembers more machines, in front of those that are known.
    pub(crate) fn learn(&self, nodes: impl IntoIterator<Item = Node>) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest: Vec<Node> = Vec::new();
        for node in nodes.into_iter().chain(learned.drain(..)) {
            if newest.len() < LEARNED_MAX && !newest.contains(&node) && !self.seeds.contains(&node) {
                newest.push(node);
            }
        }
        *learned = newest;
    }

    /// The machine that an error names. A node that does not know its own host leaves that out.
    pub(crate) fn redirection(&self, error: &RedisError, from: &Node) -> Option<Node> {
        let (node, _) = error.redirect_node()?;
        at_host_of(from, node)
    }
}

/// Asks a node of a cluster for all others. One that refuses to tell leaves us with those that are known.
pub(crate) async fn nodes_of_cluster(connection: &mut MultiplexedConnection, from: &Node) -> Vec<Node> {
    let slots = cmd("CLUSTER").arg("SLOTS").query_async::<Value>(connection).await;
    let Ok(Value::Array(ranges)) = slots else { return Vec::new() };
    let nodes = ranges.into_iter().flat_map(|range| match range {
        // The first and the last slot, and then the nodes that have them.
        Value::Array(range) => range.into_iter().skip(2).collect(),
        _ => Vec::new(),
    });
    nodes.filter_map(|node| node_of(node, from)).collect()
}

fn node_of(node: Value, from: &Node) -> Option<Node> {
    let Value::Array(node) = node else { return None };
    let mut parts = node.into_iter();
    let host = match parts.next()? {
        Value::BulkString(host) => String::from_utf8(host).ok()?,
        Value::Nil => String::new(),
        _ => return None,
    };
    let Value::Int(port) = parts.next()? else { return None };
    at_host_of(from, &format!("{host}:{port}"))
}

/// Asks a Sentinel for all others that watch the service.
pub(crate) async fn sentinels_of(connection: &mut MultiplexedConnection, service: &str) -> Vec<Node> {
    let told = cmd("SENTINEL").arg("SENTINELS").arg(service).query_async::<Value>(connection).await;
    let told = told.ok().and_then(|told| from_redis_value::<Vec<HashMap<String, String>>>(told).ok());
    let node = |fields: HashMap<String, String>| {
        Some(format!("{}:{}", fields.get("ip")?, fields.get("port")?).into())
    };
    told.unwrap_or_default().into_iter().filter_map(node).collect()
}

/// Completes `:port` with the host of the machine that said it.
fn at_host_of(from: &Node, node: &str) -> Option<Node> {
    let (host, port) = host_and_port(node)?;
    if !host.is_empty() && host != "?" {
        return Some(node.into());
    }
    let (own, _) = host_and_port(from)?;
    Some(format!("{own}:{port}").into())
}

fn host_and_port(node: &str) -> Option<(String, u16)> {
    let (host, port) = node.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(url: &str) -> Nodes {
        Nodes::of(Address::parse(url, "n").unwrap())
    }

    fn redis(names: &[&str]) -> Vec<Place> {
        names.iter().map(|&name| Place::Redis(name.into())).collect()
    }

    #[test]
    fn every_machine_that_was_ever_heard_of_is_asked_and_the_owner_first() {
        let nodes = nodes("redis://a:1,b:2");
        assert_eq!(nodes.places(), redis(&["a:1", "b:2"]));
        nodes.learn(["c:3".into(), "a:1".into()]);
        nodes.learn(["d:4".into()]);
        nodes.note_owner(&"c:3".into());
        assert_eq!(nodes.places(), redis(&["c:3", "d:4", "c:3", "a:1", "b:2"]));
        nodes.learn((0..100).map(|port| format!("e:{port}").into()));
        assert_eq!(nodes.places().len(), 1 + LEARNED_MAX + 2);
    }

    #[test]
    fn sentinels_alone_say_where_the_log_is() {
        let nodes = nodes("redis+sentinel://a:1/lanes");
        nodes.note_owner(&"c:3".into());
        nodes.learn(["b:2".into()]);
        assert_eq!(nodes.places(), ["a:1", "b:2"].map(|name| Place::Sentinel(name.into())));
    }

    #[test]
    fn a_node_without_a_host_is_at_the_host_of_the_one_that_named_it() {
        assert_eq!(at_host_of(&"a:1".into(), ":7"), Some("a:7".into()));
        assert_eq!(at_host_of(&"a:1".into(), "::1:7"), Some("::1:7".into()));
        assert_eq!(at_host_of(&"a:1".into(), "?:7"), Some("a:7".into()));
        assert_eq!(at_host_of(&"a:1".into(), "b"), None);
    }
}
