//! How soon a server is ready after a failover of its store; only `cargo xtask chaos --failovers N` runs it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use laneway_test_services::{Cluster, Process, Sentinels};

/// How soon it must be ready.
const BAR: Duration = Duration::from_secs(2);
/// How often to ask.
const PAUSE: Duration = Duration::from_millis(10);
/// A key of the log, which tells the node of a cluster that has it.
const HEAD: &str = "laneway:{default}:head";

fn rounds() -> u32 {
    std::env::var("LANEWAY_CHAOS_FAILOVERS").map_or(2, |rounds| rounds.parse().unwrap())
}

/// A real server, and where it listens.
struct Server {
    address: String,
    _process: Process,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start(store: &str) -> Server {
        let program = std::env::var("LANEWAY_PROGRAM").unwrap();
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("laneway.hcl");
        let text = format!(
            "listen = \"127.0.0.1:0\"\nstore = \"{store}\"\nserver {{\n  state = \"{}\"\n}}\n",
            dir.path().join("state").display()
        );
        std::fs::write(&file, text).unwrap();
        let words = ["serve", "--json", "--log", "error", "--config", file.to_str().unwrap()];
        let (process, lines, _) = Process::talk(&program, &words).unwrap();
        let line = lines.iter().find(|line| line.contains("http://")).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('"').next().unwrap().to_owned();
        Server { address, _process: process, _dir: dir }
    }

    /// The status of an answer; `None` without one.
    fn status(&self, method: &str, path: &str, body: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(BAR)).ok()?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}",
            self.address
        )
        .ok()?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).ok()?;
        std::str::from_utf8(&answer[9..]).ok()?.parse().ok()
    }

    /// Waits until it is ready and accepts a task, and returns for how long.
    fn await_ready(&self) -> Duration {
        let began = Instant::now();
        let task = r#"{"kind": "work", "lanes": ["external"], "payload": 1}"#;
        while self.status("GET", "/readyz", "") != Some(200)
            || self.status("POST", "/api/tasks", task) != Some(202)
        {
            assert!(began.elapsed() < Duration::from_secs(60), "it is not ready after a minute");
            std::thread::sleep(PAUSE);
        }
        began.elapsed()
    }
}

/// Prints how long each took, and panics where one took too long.
fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let within = took.iter().filter(|took| **took <= BAR).count();
    println!("{what}: ready within {BAR:?} {within} of {}; each took {took:?}", took.len());
    assert_eq!(within, took.len(), "{what}");
}

#[test]
fn of_a_cluster() {
    let mut cluster = Cluster::start();
    let server = Server::start(&cluster.url());
    let took = (0..rounds()).map(|_| {
        server.await_ready();
        let owner = cluster.owner_of(HEAD);
        cluster.node(owner).kill();
        // As soon as a node says `cluster_state:ok`.
        cluster.await_failover(owner, HEAD);
        let took = server.await_ready();
        cluster.node(owner).restart();
        cluster.await_whole();
        took
    });
    report("Redis Cluster", took.collect());
}

#[test]
fn behind_sentinels() {
    let mut sentinels = Sentinels::start();
    let server = Server::start(&sentinels.url());
    let took = (0..rounds()).map(|_| {
        server.await_ready();
        let master = sentinels.master();
        sentinels.server(master).kill();
        sentinels.await_failover(master);
        let took = server.await_ready();
        sentinels.server(master).restart();
        sentinels.await_whole();
        took
    });
    report("Sentinel", took.collect());
}
