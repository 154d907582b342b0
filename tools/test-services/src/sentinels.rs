//! Three Sentinels that watch a Redis with two replicas.

use std::path::Path;

use tempfile::TempDir;

use crate::free_port;
use crate::process::{Process, Signal};
use crate::redis::{Access, Redis};
use crate::wait::until;

/// The name of the service that they watch.
const SERVICE: &str = "lanes";
const SENTINELS: usize = 3;

/// Three Sentinels, and the Redis servers that they watch. Each can be killed, stopped and started again.
pub struct Sentinels {
    servers: Vec<Redis>,
    sentinels: Vec<Sentinel>,
    access: Access,
}

struct Sentinel {
    port: u16,
    process: Process,
    _dir: TempDir,
}

impl Sentinels {
    /// Starts them all.
    pub fn start() -> Sentinels {
        Sentinels::start_with(&Access::default())
    }

    /// Starts them with servers that need what `access` says.
    pub fn start_with(access: &Access) -> Sentinels {
        let first = Redis::start_for(access, &["--repl-diskless-sync-delay", "0"]);
        let port = first.port();
        let follow = |_| {
            let port = port.to_string();
            Redis::start_for(access, &["--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", &port])
        };
        let servers: Vec<Redis> = std::iter::once(first).chain((0..2).map(follow)).collect();
        let sentinels = (0..SENTINELS).map(|_| Sentinel::start(access, port)).collect();
        let started = Sentinels { servers, sentinels, access: access.clone() };
        started.await_whole();
        started
    }

    /// The address of all Sentinels, for a client without passwords.
    pub fn url(&self) -> String {
        self.url_for("")
    }

    /// The address of all Sentinels, for a user of the servers such as `user:password@`.
    pub fn url_for(&self, user: &str) -> String {
        let hosts: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("{}+sentinel://{user}{}/{SERVICE}", self.servers[0].scheme(), hosts.join(","))
    }

    /// The servers.
    pub fn servers(&self) -> &[Redis] {
        &self.servers
    }

    /// One of the servers, to kill it or start it again.
    pub fn server(&mut self, number: usize) -> &mut Redis {
        &mut self.servers[number]
    }

    /// Sends a signal to one of the Sentinels.
    pub fn signal_sentinel(&self, number: usize, signal: Signal) {
        self.sentinels[number].process.signal(signal);
    }

    /// The number of the server that the Sentinels take for the master.
    pub fn master(&self) -> usize {
        let told = self.ask(0, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
        let port = told.lines().nth(1).and_then(|port| port.parse().ok()).unwrap_or_default();
        self.servers.iter().position(|server| server.port() == port).unwrap_or_default()
    }

    /// Waits until every Sentinel names another master than this one, and that takes writes.
    pub fn await_failover(&self, from: usize) {
        until("another server is the master", || {
            let master = self.master();
            let named = self.servers[master].port().to_string();
            let agrees =
                |number| self.ask(number, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]).contains(&named);
            master != from && self.servers[master].role() == "master" && (0..SENTINELS).all(agrees)
        });
    }

    /// Has the Sentinels replace the master, in order.
    pub fn fail_over(&self) {
        self.ask(0, &["SENTINEL", "FAILOVER", SERVICE]);
    }

    /// Waits until the Sentinels know each other and both replicas, which follow the master.
    pub fn await_whole(&self) {
        until("the Sentinels know each other", || self.is_whole());
    }

    /// Whether the Sentinels know each other and both replicas, which follow the master.
    pub fn is_whole(&self) -> bool {
        let master = self.master();
        let follows =
            |(number, server): (usize, &Redis)| number == master || server.info("master_link_status") == "up";
        let knows = |number| {
            let told = self.ask(number, &["SENTINEL", "MASTER", SERVICE]);
            let field = |name| told.lines().skip_while(|line| *line != name).nth(1).map(str::to_owned);
            field("num-slaves").as_deref() == Some("2")
                && field("num-other-sentinels").as_deref() == Some("2")
                && field("flags").as_deref() == Some("master")
        };
        self.servers.iter().enumerate().all(follows) && (0..SENTINELS).all(knows)
    }

    fn ask(&self, number: usize, words: &[&str]) -> String {
        self.access.command(self.sentinels[number].port, words)
    }
}

impl Sentinel {
    fn start(access: &Access, watched: u16) -> Sentinel {
        let dir = TempDir::new().expect("there is room for a directory");
        let mut last = String::new();
        // Another process may take the port before the start.
        for _ in 0..10 {
            let port = free_port();
            match run(access, &dir.path().join("sentinel.conf"), port, watched) {
                Ok(process) => return Sentinel { port, process, _dir: dir },
                Err(error) => last = error,
            }
        }
        panic!("no Sentinel started: {last}")
    }
}

fn run(access: &Access, file: &Path, port: u16, watched: u16) -> Result<Process, String> {
    let mut lines = vec![
        format!("sentinel monitor {SERVICE} 127.0.0.1 {watched} 2"),
        format!("sentinel down-after-milliseconds {SERVICE} 1000"),
        format!("sentinel failover-timeout {SERVICE} 2000"),
        "bind 127.0.0.1".to_owned(),
    ];
    lines.extend(access.sentinel_lines(SERVICE));
    let line = |pair: &[String]| pair.join(" ").trim_start_matches("--").to_owned();
    lines.extend(access.listen_on(port).chunks(2).map(line));
    std::fs::write(file, lines.join("\n")).expect("there is room for a file");
    let file = file.to_str().expect("a readable path");
    Process::start("redis-server", &[file, "--sentinel"], "Sentinel ID is")
}
