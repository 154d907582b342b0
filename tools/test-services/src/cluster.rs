//! A Redis Cluster: three masters with a replica each.

use crate::free_port;
use crate::redis::{Access, Redis};
use crate::wait::until;

/// How long a node may be silent before the others replace it, in milliseconds.
const NODE_TIMEOUT: &str = "1000";
const MASTERS: usize = 3;
/// The first slot of each master, and the end.
const SLOTS: [u32; MASTERS + 1] = [0, 5461, 10923, 16384];

/// A Redis Cluster. Each of its nodes can be killed, stopped and started again.
pub struct Cluster {
    nodes: Vec<Redis>,
}

impl Cluster {
    /// Starts six nodes and joins them.
    pub fn start() -> Cluster {
        Cluster::start_with(&Access::default())
    }

    /// Starts one whose nodes and clients need what `access` says.
    pub fn start_with(access: &Access) -> Cluster {
        let node = || {
            let bus = free_port().to_string();
            let mut settings = vec!["--cluster-enabled", "yes", "--cluster-port", &bus];
            settings.extend(["--cluster-node-timeout", NODE_TIMEOUT, "--repl-diskless-sync-delay", "0"]);
            (Redis::start_for(access, &settings), bus)
        };
        let (nodes, buses): (Vec<_>, Vec<_>) = (0..2 * MASTERS).map(|_| node()).unzip();
        let cluster = Cluster { nodes };
        let port = cluster.nodes[0].port().to_string();
        for (number, node) in cluster.nodes.iter().enumerate() {
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            if number < MASTERS {
                let (first, last) = (SLOTS[number].to_string(), (SLOTS[number + 1] - 1).to_string());
                node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
            if number > 0 {
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &buses[0]]);
            }
        }
        let knows_all = |node: &Redis| node.info("cluster_known_nodes") == (2 * MASTERS).to_string();
        until("the nodes know each other", || cluster.nodes.iter().all(knows_all));
        for (master, replica) in cluster.nodes.iter().zip(&cluster.nodes[MASTERS..]) {
            let id = master.command(&["CLUSTER", "MYID"]);
            replica.command(&["CLUSTER", "REPLICATE", &id]);
        }
        cluster.await_whole();
        cluster
    }

    /// The address of all nodes, for a client without a password.
    pub fn url(&self) -> String {
        self.url_for("")
    }

    /// The address of all nodes, for a user such as `user:password@`.
    pub fn url_for(&self, user: &str) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("{}://{user}{}/0", self.nodes[0].scheme(), nodes.join(","))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// One of the nodes, to kill it or start it again.
    pub fn node(&mut self, number: usize) -> &mut Redis {
        &mut self.nodes[number]
    }

    /// The number of the node that has a key, as the others see it.
    pub fn owner_of(&self, key: &str) -> usize {
        let mut owner = None;
        until("a node has the key", || {
            owner = self.nodes.iter().position(|node| {
                node.is_up() && node.role() == "master" && !node.command(&["EXISTS", key]).contains("MOVED")
            });
            owner.is_some()
        });
        owner.unwrap_or_default()
    }

    /// Waits until a node says that the cluster can be used, and that another node than this one has its keys.
    pub fn await_failover(&self, from: usize, key: &str) {
        until("another node has the keys", || {
            let others = || self.nodes.iter().enumerate().filter(|(number, _)| *number != from);
            let is_ok = |node: &Redis| node.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            let has_key = |node: &Redis| {
                let answer = node.command(&["EXISTS", key]);
                node.role() == "master" && (answer == "0" || answer == "1")
            };
            others().any(|(_, node)| node.is_up() && has_key(node) && is_ok(node))
        });
    }

    /// Has a replica take over from the node that has a key, in order.
    pub fn fail_over(&self, key: &str) {
        let owner = self.nodes[self.owner_of(key)].command(&["CLUSTER", "MYID"]);
        let follows =
            |node: &&Redis| node.command(&["CLUSTER", "NODES"]).contains(&format!("myself,slave {owner}"));
        if let Some(replica) = self.nodes.iter().find(follows) {
            replica.command(&["CLUSTER", "FAILOVER"]);
        }
    }

    /// Waits until every node is up, and every replica follows its master.
    pub fn await_whole(&self) {
        until("the cluster is whole", || self.is_whole());
    }

    /// Whether every node is up, and every replica follows its master.
    pub fn is_whole(&self) -> bool {
        let is_whole = |node: &Redis| {
            node.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && !node.command(&["CLUSTER", "NODES"]).contains("fail")
                && (node.role() == "master" || node.info("master_link_status") == "up")
        };
        let replicas = || self.nodes.iter().filter(|node| node.role() == "slave").count();
        self.nodes.iter().all(is_whole) && replicas() == MASTERS
    }
}
