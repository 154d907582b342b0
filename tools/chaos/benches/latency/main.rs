//! How fast a running turn hears of messages and interrupts, for each sort of agent.
//!
//! `cargo xtask bench latency` installs what the agents need and runs this. The servers and agents are programs of their
//! own. An agent says by UDP that it begins a turn, takes a message, or stops. A latency lasts from the request until then.
//! The last line says whether all bounds hold.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark stops at anything unexpected")]

mod rust_worker;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use laneway_client::{Client, Error};
use laneway_protocol::MessageRequest;
use laneway_test_services::{Process, Redis, free_port};
use tokio::net::UdpSocket;

/// Turns of each agent; each is steered once and interrupted once.
const TURNS: usize = 40;
const MOST: Duration = Duration::from_millis(250);
/// Something that takes this long will not happen.
const PATIENCE: Duration = Duration::from_secs(60);
const AGENTS: [&str; 5] = ["rust", "python", "typescript", "jsonl", "http"];

struct Setup {
    binary: String,
    python: String,
    socket: UdpSocket,
    dir: tempfile::TempDir,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if runtime.block_on(measure()) {
        println!("all bounds hold");
        return ExitCode::SUCCESS;
    }
    println!("a bound does not hold");
    ExitCode::FAILURE
}

async fn measure() -> bool {
    let needed = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| panic!("set {name}, as cargo xtask bench latency does"))
    };
    let setup = Setup {
        binary: needed("LANEWAY_BINARY"),
        python: needed("LANEWAY_PYTHON"),
        socket: UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        dir: tempfile::tempdir().unwrap(),
    };
    println!("{:<34} {:>10} {:>10} {:>10}   bound of p95", "what", "p50, ms", "p95, ms", "max, ms");
    let embedded = setup.dir.path().join("store");
    let mut holds = setup.all_agents("embedded store", &[&embedded.to_string_lossy()]).await;
    let redis = Redis::start();
    holds &= setup.all_agents("Redis, 3 replicas", &[&redis.url(), &redis.url(), &redis.url()]).await;
    holds
}

impl Setup {
    /// Starts a server for each store, and measures each sort of agent. The workers use the first server and the user the last.
    async fn all_agents(&self, what: &str, stores: &[&str]) -> bool {
        let http_port = free_port();
        let servers: Vec<(Process, String)> =
            stores.iter().enumerate().map(|(number, store)| self.server(number, store, http_port)).collect();
        let (first, last) = (&servers[0].1, &servers[servers.len() - 1].1);
        let port = self.socket.local_addr().unwrap().port();
        let rust = tokio::spawn(rust_worker::run(first.clone(), port));
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/latency");
        let start = |program: &str, script: &str, arguments: [&str; 2]| {
            let script = here.join(script).to_string_lossy().into_owned();
            Process::start(program, &[&script, arguments[0], arguments[1]], "ready").unwrap()
        };
        let (port_text, http_port) = (port.to_string(), http_port.to_string());
        let _agents = [
            start(&self.python, "worker.py", [first, &port_text]),
            start("node", "worker.mjs", [first, &port_text]),
            start(&self.python, "http_agent.py", [&port_text, &http_port]),
        ];
        let user = Client::new(last, None).unwrap();
        let mut holds = true;
        for agent in AGENTS {
            let (steered, interrupted) = self.turns(&user, agent).await;
            holds &= row(&format!("{what}, {agent}, steer"), steered);
            holds &= row(&format!("{what}, {agent}, interrupt"), interrupted);
        }
        rust.abort();
        holds
    }

    fn server(&self, number: usize, store: &str, http_port: u16) -> (Process, String) {
        let (port, kind) = (free_port(), if store.contains("://") { "redis" } else { "disk" });
        let dir = self.dir.path().join(format!("{kind}-{number}"));
        std::fs::create_dir_all(&dir).unwrap();
        let mut config = format!(
            "listen = \"127.0.0.1:{port}\"\nstore = \"{store}\"\nserver {{ state = \"{}\" }}\n",
            dir.display()
        );
        for worker in ["rust", "python", "typescript"] {
            writeln!(config, "agent \"{worker}\" {{ external = true }}").unwrap();
        }
        let service = format!("http://127.0.0.1:{http_port}");
        writeln!(
            config,
            "agent \"http\" {{\n  url = \"{service}/\"\n  steer_url = \"{service}/steer\"\n  cancel_url = \"{service}/cancel\"\n}}"
        )
        .unwrap();
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/latency/agent.py");
        let udp = self.socket.local_addr().unwrap().port();
        writeln!(
            config,
            "agent \"jsonl\" {{\n  command = [\"{}\", \"{}\", \"{udp}\"]\n  protocol = \"jsonl\"\n}}",
            self.python,
            agent.display()
        )
        .unwrap();
        let file = dir.join("laneway.hcl");
        std::fs::write(&file, config).unwrap();
        let arguments = ["serve", "--config", &file.to_string_lossy()];
        let process = Process::start(&self.binary, &arguments, "http://").unwrap();
        (process, format!("http://127.0.0.1:{port}"))
    }

    /// Steers and interrupts one turn after another.
    async fn turns(&self, user: &Client, agent: &str) -> (Vec<Duration>, Vec<Duration>) {
        let session = format!("of-{agent}");
        let (mut steered, mut interrupted) = (Vec::new(), Vec::new());
        send(user, &session, agent, "turn 0").await;
        self.heard("begins turn 0").await;
        for turn in 0..TURNS {
            let text = format!("message {turn}");
            let asked = steer(user, &session, &text).await;
            self.heard(&format!("takes {text}")).await;
            steered.push(asked.elapsed());
            let asked = Instant::now();
            send(user, &session, agent, &format!("turn {}", turn + 1)).await;
            // The order of these two shows that no two turns run at once.
            self.heard(&format!("stops turn {turn}")).await;
            interrupted.push(asked.elapsed());
            self.heard(&format!("begins turn {}", turn + 1)).await;
        }
        user.interrupt(&session).await.unwrap();
        self.heard(&format!("stops turn {TURNS}")).await;
        (steered, interrupted)
    }

    /// Waits for the next words of an agent, which must be these.
    async fn heard(&self, expected: &str) {
        let mut room = [0; 256];
        let length = tokio::time::timeout(PATIENCE, self.socket.recv(&mut room)).await;
        let length = length.unwrap_or_else(|_| panic!("no agent says {expected:?}")).unwrap();
        assert_eq!(String::from_utf8_lossy(&room[..length]), expected);
    }
}

async fn send(user: &Client, session: &str, agent: &str, text: &str) {
    let message = serde_json::json!({"agent": agent, "text": text, "mode": "interrupt", "debounce_ms": 0});
    let message: MessageRequest = serde_json::from_value(message).unwrap();
    user.send_message(session, &message).await.unwrap();
}

/// Passes a message into the running turn, as soon as it takes any. Returns when that was asked.
async fn steer(user: &Client, session: &str, text: &str) -> Instant {
    loop {
        let asked = Instant::now();
        match user.steer(session, text).await {
            Ok(_) => return asked,
            Err(Error::Refused(problem)) if problem.status == 409 => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Prints what was measured, and says whether the bound holds.
fn row(what: &str, mut latencies: Vec<Duration>) -> bool {
    latencies.sort();
    let at = |part: usize| latencies[(latencies.len() - 1) * part / 100].as_secs_f64() * 1e3;
    let holds = at(95) <= MOST.as_secs_f64() * 1e3;
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    println!(
        "{what:<34} {:>10.1} {:>10.1} {:>10.1}   <= {} ms {verdict}",
        at(50),
        at(95),
        at(100),
        MOST.as_millis()
    );
    holds
}
